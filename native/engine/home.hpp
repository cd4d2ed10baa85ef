// Where ranks share processors: each goes back to one of its own when the kernel moved it.
#pragma once

#include <sched.h>

#include <cstdint>

#include "engine/clock.hpp"

namespace roundelay::engine {

// Ranks that give the processor away while they wait look alike to the kernel wherever they are,
// so it may well leave seven of eight on one of two processors, and every call takes twice as
// long. The thread's affinity is left as it was.
class Home {
   public:
    // -1: none.
    explicit Home(int processor) : processor_(processor) {}

    // Goes there, at most once in a while.
    void go() {
        if (processor_ < 0 || sched_getcpu() == processor_) return;
        const std::uint64_t time = now();
        if (time < next_) return;
        next_ = time + kEvery;
        cpu_set_t allowed;
        if (sched_getaffinity(0, sizeof allowed, &allowed) != 0 || !CPU_ISSET(processor_, &allowed))
            return;
        cpu_set_t home;
        CPU_ZERO(&home);
        CPU_SET(processor_, &home);
        if (sched_setaffinity(0, sizeof home, &home) == 0)
            sched_setaffinity(0, sizeof allowed, &allowed);
    }

   private:
    static constexpr std::uint64_t kEvery = 1'000'000;  // moving takes some 10 us
    int processor_;
    std::uint64_t next_ = 0;
};

}  // namespace roundelay::engine
