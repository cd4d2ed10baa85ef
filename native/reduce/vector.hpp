// Vectors of one width, ROUNDELAY_WIDTH bytes, as the compilers' vector extension gives them.
//
// This header, floats.hpp, ops.hpp and kernel.hpp are compiled once for each processor family.
// All they define is in an unnamed namespace: were it shared between files, the linker could
// keep the copy with instructions that the processor at hand lacks.
#pragma once

#include <cstddef>
#include <cstdint>

#include "reduce/types.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#ifdef __FAST_MATH__
#error "reductions must give the same bits everywhere: build without -ffast-math"
#endif

#define ROUNDELAY_INLINE [[gnu::always_inline]] inline
#define ROUNDELAY_LAMBDA_INLINE __attribute__((always_inline))

namespace roundelay::reduce {
namespace {

constexpr std::size_t kWidth = ROUNDELAY_WIDTH;

template <class T>
struct VecOf {
    typedef T type __attribute__((vector_size(ROUNDELAY_WIDTH)));
};
template <class T>
using Vec = typename VecOf<T>::type;

// The bytes of one vector, whatever they mean.
using Raw = Vec<std::uint32_t>;

template <class T>
constexpr std::size_t kLanes = kWidth / sizeof(T);

template <class T>
ROUNDELAY_INLINE Vec<T> splat(T value) {
    return value - Vec<T>{};  // not +: -0.0 + 0.0 is 0.0
}

ROUNDELAY_INLINE Raw get(const std::byte* from) {
    Raw raw;
    __builtin_memcpy(&raw, from, kWidth);
    return raw;
}

// The address may lie beyond the end: nothing is read.
ROUNDELAY_INLINE void prefetch(const std::byte* place) { __builtin_prefetch(place); }

ROUNDELAY_INLINE Raw get_part(const std::byte* from, std::size_t bytes) {
    Raw raw{};
    __builtin_memcpy(&raw, from, bytes);
    return raw;
}

ROUNDELAY_INLINE void put(std::byte* to, Raw raw) { __builtin_memcpy(to, &raw, kWidth); }

ROUNDELAY_INLINE void put_part(std::byte* to, Raw raw, std::size_t bytes) {
    __builtin_memcpy(to, &raw, bytes);
}

// Past the cache; `to` is aligned to the width.
ROUNDELAY_INLINE void put_streamed(std::byte* to, Raw raw) {
#if defined(__x86_64__) && ROUNDELAY_WIDTH == 64
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to), reinterpret_cast<__m512i>(raw));
#elif defined(__x86_64__) && ROUNDELAY_WIDTH == 32
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to), reinterpret_cast<__m256i>(raw));
#elif defined(__x86_64__)
    _mm_stream_si128(reinterpret_cast<__m128i*>(to), reinterpret_cast<__m128i>(raw));
#else
    put(to, raw);
#endif
}

// Streamed stores are ordered with nothing; later ones wait for them here.
ROUNDELAY_INLINE void fence_streamed() {
#if defined(__x86_64__)
    _mm_sfence();
#endif
}

}  // namespace
}  // namespace roundelay::reduce
