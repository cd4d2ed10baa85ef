// Time, and what to do while there is nothing to do.
#pragma once

#include <sched.h>
#include <time.h>

#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace roundelay::engine {

// ns of CLOCK_MONOTONIC, one clock for all processes of a host.
inline std::uint64_t now() {
    timespec t{};
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000u +
           static_cast<std::uint64_t>(t.tv_nsec);
}

// A counter that is cheap to read, for ratios only.
inline std::uint64_t ticks() {
#if defined(__x86_64__)
    return __rdtsc();
#elif defined(__aarch64__)
    std::uint64_t value;
    asm volatile("mrs %0, cntvct_el0" : "=r"(value));
    return value;
#else
    return now();
#endif
}

inline void relax() {
#if defined(__x86_64__)
    _mm_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

}  // namespace roundelay::engine
