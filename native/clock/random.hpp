// Random numbers that depend on what they are for, not on the order of asking.
#pragma once

#include <cstdint>

namespace roundelay::clock {

// SplitMix64 (Steele, Lea and Flood, Fast splittable pseudorandom number generators, 2014).
class Random {
   public:
    explicit Random(std::uint64_t seed) : state_(seed) {}

    std::uint64_t next() {
        std::uint64_t z = (state_ += 0x9e3779b97f4a7c15);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
        z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
        return z ^ (z >> 31);
    }

    // Of 0 to count - 1; count is far below 2**32.
    std::uint64_t below(std::uint64_t count) { return ((next() >> 32) * count) >> 32; }

   private:
    std::uint64_t state_;
};

}  // namespace roundelay::clock
