// Copies through the cache, or past it.
#pragma once

#include <cstddef>
#include <cstring>

#include "engine/stores.hpp"
#include "reduce/reduce.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace roundelay::engine {

inline void copy(std::byte* to, const std::byte* from, std::size_t size, Way way) {
    if (way == Way::cached || size < 1024) {
        std::memcpy(to, from, size);
        return;
    }
    const std::byte* sources[] = {from};
    reduce::run(reduce::chosen_isa(), reduce::Op::bor, reduce::Type::uint8, to, sources, 1, size,
                {}, reduce::Store::streamed);
}

// Streamed stores are seen by others before what is stored from now on.
inline void fence() {
#if defined(__x86_64__)
    _mm_sfence();
#endif
}

}  // namespace roundelay::engine
