// A ring of the last things done, kept in memory that is there before they are.
#pragma once

#include <cstdint>
#include <exception>
#include <vector>

#include "engine/call.hpp"
#include "engine/clock.hpp"
#include "engine/task.hpp"

namespace roundelay::engine {

enum class Did : std::uint8_t { received, sent, called };

// Times in ns of CLOCK_MONOTONIC. Of a call, `bytes` are its elements, `stage` its plan, and
// `slice` its root.
struct Event {
    std::uint64_t begun;
    std::uint64_t ready;  // what it waited for was there
    std::uint64_t ended;
    std::uint64_t call;
    std::uint64_t bytes;
    std::uint32_t stage;
    std::uint32_t slice;
    std::int32_t peer;     // the first of them
    std::uint32_t peers;
    Did did;
    std::uint8_t collective;
    std::uint8_t type;
    std::uint8_t op;
    std::uint8_t spare[4];
};
static_assert(sizeof(Event) == 64);

class Trace {
   public:
    explicit Trace(std::size_t events) : ring_(events) {}

    void add(const Event& event) { ring_[count_++ % ring_.size()] = event; }
    std::uint64_t count() const { return count_; }
    const std::vector<Event>& ring() const { return ring_; }

   private:
    std::vector<Event> ring_;
    std::uint64_t count_ = 0;
};

// Notes a stage, or a call, when it is left; by an error too, and then it has waited to the end.
class Noted {
   public:
    // `ready` is when the last wait of the stage has ended. Without a trace nothing is noted.
    Noted(Trace* trace, std::uint64_t& ready) : trace_(trace), ready_(ready) {
        if (trace_ == nullptr) return;
        event_ = Event{};
        ready_ = event_.begun = now();
    }
    Noted(const Noted&) = delete;
    Noted& operator=(const Noted&) = delete;
    ~Noted() {
        if (trace_ == nullptr) return;
        event_.ended = now();
        event_.ready = std::uncaught_exceptions() > 0 ? event_.ended : ready_;
        if (event_.did == Did::called) event_.ready = event_.begun;
        trace_->add(event_);
    }

    void stage(std::uint64_t call, std::size_t index, std::size_t slice, const Stage& stage,
               std::size_t bytes) {
        if (trace_ == nullptr) return;
        event_.call = call;
        event_.bytes = bytes;
        event_.stage = static_cast<std::uint32_t>(index);
        event_.slice = static_cast<std::uint32_t>(slice);
        event_.peer = stage.peers[0];
        event_.peers = static_cast<std::uint32_t>(stage.peers.size());
        event_.did = stage.send ? Did::sent : Did::received;
    }
    void call(const Call& call) {
        if (trace_ == nullptr) return;
        event_.call = call.sequence;
        event_.bytes = call.elements;
        event_.stage = call.plan;
        event_.slice = call.root;
        event_.peer = -1;
        event_.did = Did::called;
        event_.collective = call.collective;
        event_.type = call.type;
        event_.op = call.op;
    }

   private:
    Trace* trace_;
    std::uint64_t& ready_;
    Event event_;  // set only where there is a trace
};

}  // namespace roundelay::engine
