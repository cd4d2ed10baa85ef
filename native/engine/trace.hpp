// A ring of the last things done, kept in memory that is there before they are.
#pragma once

#include <cstdint>
#include <vector>

namespace roundelay::engine {

// Times in ns of CLOCK_MONOTONIC.
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
    std::uint8_t send;
    std::uint8_t spare[7];
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

}  // namespace roundelay::engine
