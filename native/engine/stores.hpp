// Whether to put a slice into the arena through the cache, or past it.
//
// Which is faster depends on whether writer and reader share a cache, and a virtual machine's
// processors move: a fixed choice loses up to 2.5 times. So both are measured while running, the
// writer's cost and the readers', and the cheaper is taken; now and then the other is tried again.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace roundelay::engine {

enum class Way : std::uint8_t { cached, streamed };

inline constexpr std::size_t kMeasuredFrom = 8 << 10;  // bytes of a slice worth measuring

// A running mean of ticks for 1024 bytes. One sample may change it by no more than four times
// itself: the scheduler may have come between.
inline std::uint64_t mean(std::uint64_t old, std::uint64_t ticks, std::size_t bytes) {
    const std::uint64_t sample = ticks * 1024 / bytes + 1;
    if (old == 0) return sample;
    return (old * 7 + std::min(sample, old * 4)) / 8;
}

class Stores {
   public:
    // The way for the next slice; `read_cost(way)` is the readers' mean, 0 where unknown.
    template <class ReadCost>
    Way choose(ReadCost&& read_cost) {
        const std::uint64_t costs[2] = {total(0, read_cost), total(1, read_cost)};
        const int best = costs[1] != 0 && costs[1] < costs[0] ? 1 : 0;
        if (best != best_) {
            best_ = best;
            pause_ = kLeastPause;
        }
        if (costs[1 - best] == 0 || --left_ == 0) {
            left_ = pause_;
            pause_ = std::min(pause_ * 2, kMostPause);
            return static_cast<Way>(1 - best);
        }
        return static_cast<Way>(best);
    }

    void written(Way way, std::uint64_t ticks, std::size_t bytes) {
        std::uint64_t& cost = write_[static_cast<int>(way)];
        cost = mean(cost, ticks, bytes);
    }

   private:
    static constexpr std::uint32_t kLeastPause = 8;   // slices between two trials
    static constexpr std::uint32_t kMostPause = 128;

    template <class ReadCost>
    std::uint64_t total(int way, ReadCost&& read_cost) const {
        const std::uint64_t read = read_cost(way);
        return write_[way] == 0 || read == 0 ? 0 : write_[way] + read;
    }

    std::uint64_t write_[2] = {0, 0};
    int best_ = 0;
    std::uint32_t pause_ = kLeastPause;
    std::uint32_t left_ = kLeastPause;
};

}  // namespace roundelay::engine
