// What is always counted: calls, waits, and when the last calls began and ended.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "engine/clock.hpp"

namespace roundelay::engine {

// One thread at a time counts, and any may read: no two need to be in order.
using Count = std::atomic<std::uint64_t>;

inline void add(Count& to, std::uint64_t more) {
    to.store(to.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
}

// Calls of one kind that have ended well.
struct Counts {
    Count calls{0};
    Count bytes{0};
    Count ticks{0};  // in which they were under way

    void ended(std::uint64_t moved, std::uint64_t took) {
        add(calls, 1);
        add(bytes, moved);
        add(ticks, took);
    }
};

// Waits for one participant: those that were longer than its flag is spun on.
struct Waits {
    Count times{0};
    Count ns{0};
    Count longest{0};  // ns
};

// Notes a wait when it is left, by an error too.
class Waited {
   public:
    // `begun`: ns, as of now(). Without `waits` nothing is noted.
    Waited(Waits* waits, std::uint64_t begun) : waits_(waits), begun_(begun) {}
    Waited(const Waited&) = delete;
    Waited& operator=(const Waited&) = delete;
    ~Waited() {
        if (waits_ == nullptr) return;
        const std::uint64_t took = now() - begun_;
        add(waits_->times, 1);
        add(waits_->ns, took);
        const std::uint64_t most = waits_->longest.load(std::memory_order_relaxed);
        waits_->longest.store(std::max(most, took), std::memory_order_relaxed);
    }

   private:
    Waits* waits_;
    std::uint64_t begun_;
};

// When the last calls began and ended, in ticks. Calls have numbers from 1.
class Spans {
   public:
    struct Span {
        Count begun, ended;
    };
    static constexpr std::size_t kKept = 1024;

    Spans() : ring_(new Span[kKept]{}) {}
    Span& of(std::uint64_t call) { return ring_[call % kKept]; }
    const Span& of(std::uint64_t call) const { return ring_[call % kKept]; }

   private:
    std::unique_ptr<Span[]> ring_;
};

}  // namespace roundelay::engine
