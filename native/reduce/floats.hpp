// 16- and 8-bit floats as lanes of float32, and back with one rounding to nearest even.
//
// A format unpacks one vector of elements to kParts vectors of lanes and packs them again. Which
// element goes to which lane is the format's own business: elements do not interact.
#pragma once

#include <utility>

#include "reduce/vector.hpp"

namespace roundelay::reduce {
namespace {

using Bits = Vec<std::uint32_t>;
using Ints = Vec<std::int32_t>;
using Floats = Vec<float>;

ROUNDELAY_INLINE Bits bits(Floats value) { return reinterpret_cast<Bits>(value); }
ROUNDELAY_INLINE Floats floats(Bits value) { return reinterpret_cast<Floats>(value); }

// Lane by lane; for values below 2^31, which every processor compares as signed numbers.
ROUNDELAY_INLINE Ints less(Bits a, Bits b) {
    return reinterpret_cast<Ints>(a) < reinterpret_cast<Ints>(b);
}

template <class T>
struct Plain {
    using Lane = T;
    static constexpr std::size_t kParts = 1;
    ROUNDELAY_INLINE static void unpack(Raw raw, Vec<T>* part) {
        *part = reinterpret_cast<Vec<T>>(raw);
    }
    ROUNDELAY_INLINE static Raw pack(const Vec<T>* part) { return reinterpret_cast<Raw>(*part); }
};

// A byte that is not 0 is true, and true is written as 1.
struct Bool {
    using Lane = std::uint8_t;
    static constexpr std::size_t kParts = 1;
    ROUNDELAY_INLINE static void unpack(Raw raw, Vec<Lane>* part) {
        *part = reinterpret_cast<Vec<Lane>>(reinterpret_cast<Vec<Lane>>(raw) != 0) & 1;
    }
    ROUNDELAY_INLINE static Raw pack(const Vec<Lane>* part) { return reinterpret_cast<Raw>(*part); }
};

// The upper half of a float32: even elements are the lower halves of the 32-bit lanes.
struct Bfloat16 {
    using Lane = float;
    static constexpr std::size_t kParts = 2;
    ROUNDELAY_INLINE static void unpack(Raw raw, Floats* part) {
        part[0] = floats(raw << 16);
        part[1] = floats(raw & 0xffff0000u);
    }
    // The one NaN, 0x7fc00000, stays what it is: rounding adds at most 0x7fff.
    ROUNDELAY_INLINE static Bits round(Floats value) {
        const Bits b = bits(value);
        return b + 0x7fffu + ((b >> 16) & 1u);
    }
    ROUNDELAY_INLINE static Raw pack(const Floats* part) {
        return (round(part[0]) >> 16) | (round(part[1]) & 0xffff0000u);
    }
};

// Formats with kExponent bits of exponent and kMantissa bits of mantissa. With kFinite there is
// no infinity, and all ones is NaN (e4m3fn); else they are like IEEE 754.
template <unsigned kExponent, unsigned kMantissa, bool kFinite>
struct Minifloat {
    using Lane = float;
    static constexpr std::size_t kParts = 32 / (1 + kExponent + kMantissa);

    static constexpr std::uint32_t kSize = 1 + kExponent + kMantissa;
    static constexpr std::uint32_t kSign = 1u << (kSize - 1);
    static constexpr std::uint32_t kShift = 23 - kMantissa;
    static constexpr std::uint32_t kBias = (1u << (kExponent - 1)) - 1;
    static constexpr std::uint32_t kRebias = (127 - kBias) << 23;
    static constexpr std::uint32_t kLeastNormal = (128 - kBias) << 23;  // as a float32
    static constexpr std::uint32_t kTop = ((1u << kExponent) - 1) << kMantissa;
    static constexpr std::uint32_t kNan =
        kFinite ? kSign - 1 : kTop | (1u << (kMantissa - 1));
    // What is too large becomes this.
    static constexpr std::uint32_t kOverflow = kFinite ? kNan : kTop;
    // A float32 whose unit in the last place is the least subnormal of the format.
    static constexpr std::uint32_t kMagic = kLeastNormal + (kShift << 23);

    // Element in the low bits of each lane, zeros above it.
    ROUNDELAY_INLINE static Floats widen(Bits element) {
        const Bits sign = (element & kSign) << (32 - kSize);
        const Bits magnitude = element & (kSign - 1);
        const Bits placed = magnitude << kShift;
        // A subnormal has no leading one: give it one, and subtract it as a number.
        const Floats subnormal = floats(placed + kLeastNormal) - floats(Bits{} + kLeastNormal);
        Bits result = less(placed, Bits{} + (1u << 23)) ? bits(subnormal) : placed + kRebias;
        if constexpr (kFinite) {
            result = magnitude == kNan ? Bits{} + 0x7fc00000u : result;
        } else {
            result = less(magnitude, Bits{} + kTop) ? result : (placed | 0x7f800000u);
        }
        return floats(result | sign);
    }

    // A NaN must be the one that canonical() in ops.hpp gives.
    ROUNDELAY_INLINE static Bits narrow(Floats value) {
        const Bits sign = (bits(value) >> (32 - kSize)) & kSign;
        const Bits magnitude = bits(value) & 0x7fffffffu;
        const Bits rounded = magnitude + ((1u << (kShift - 1)) - 1) + ((magnitude >> kShift) & 1u);
        const Bits normal = (rounded - kRebias) >> kShift;
        const Bits subnormal = bits(floats(magnitude) + floats(Bits{} + kMagic)) - kMagic;
        Bits result = less(magnitude, Bits{} + kLeastNormal) ? subnormal : normal;
        const Ints fits = less(rounded, Bits{} + ((kOverflow << kShift) + kRebias));
        if constexpr (kFinite) {
            return fits ? result | sign : Bits{} + kNan;
        } else {
            result = (fits ? result : Bits{} + kTop) | sign;
            return less(Bits{} + 0x7f800000u, magnitude) ? Bits{} + kNan : result;
        }
    }

    ROUNDELAY_INLINE static void unpack(Raw raw, Floats* part) {
        constexpr std::uint32_t mask = static_cast<std::uint32_t>((1ull << kSize) - 1);
        for (std::size_t k = 0; k < kParts; ++k) part[k] = widen((raw >> (k * kSize)) & mask);
    }
    ROUNDELAY_INLINE static Raw pack(const Floats* part) {
        Raw raw = narrow(part[0]);
        for (std::size_t k = 1; k < kParts; ++k) raw |= narrow(part[k]) << (k * kSize);
        return raw;
    }
};

#if (defined(__F16C__) && ROUNDELAY_WIDTH >= 32) || defined(__aarch64__)
// By the processor's own conversions, which round in the same way.
struct Float16 {
    using Lane = float;
    static constexpr std::size_t kParts = 2;
#if defined(__aarch64__)
    ROUNDELAY_INLINE static void unpack(Raw raw, Floats* part) {
        const float16x8_t half = reinterpret_cast<float16x8_t>(raw);
        part[0] = reinterpret_cast<Floats>(vcvt_f32_f16(vget_low_f16(half)));
        part[1] = reinterpret_cast<Floats>(vcvt_high_f32_f16(half));
    }
    ROUNDELAY_INLINE static Raw pack(const Floats* part) {
        const float16x4_t low = vcvt_f16_f32(reinterpret_cast<float32x4_t>(part[0]));
        return reinterpret_cast<Raw>(
            vcvt_high_f16_f32(low, reinterpret_cast<float32x4_t>(part[1])));
    }
#else
    typedef std::uint32_t Half __attribute__((vector_size(ROUNDELAY_WIDTH / 2)));
    template <std::size_t... k>
    ROUNDELAY_INLINE static void unpack(Raw raw, Floats* part, std::index_sequence<k...>) {
        part[0] = widen(__builtin_shufflevector(raw, raw, k...));
        part[1] = widen(__builtin_shufflevector(raw, raw, (k + sizeof...(k))...));
    }
    template <std::size_t... k>
    ROUNDELAY_INLINE static Raw pack(const Floats* part, std::index_sequence<k...>) {
        return __builtin_shufflevector(narrow(part[0]), narrow(part[1]), k...);
    }
#if ROUNDELAY_WIDTH == 64
    // maskz: GCC takes what the plain forms leave undefined for an uninitialised variable.
    static constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
    ROUNDELAY_INLINE static Floats widen(Half half) {
        return _mm512_maskz_cvtph_ps(0xffff, reinterpret_cast<__m256i>(half));
    }
    ROUNDELAY_INLINE static Half narrow(Floats value) {
        return reinterpret_cast<Half>(_mm512_maskz_cvtps_ph(0xffff, value, kNearest));
    }
#else
    ROUNDELAY_INLINE static Floats widen(Half half) {
        return _mm256_cvtph_ps(reinterpret_cast<__m128i>(half));
    }
    ROUNDELAY_INLINE static Half narrow(Floats value) {
        return reinterpret_cast<Half>(_mm256_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT));
    }
#endif
    ROUNDELAY_INLINE static void unpack(Raw raw, Floats* part) {
        unpack(raw, part, std::make_index_sequence<kWidth / 8>{});
    }
    ROUNDELAY_INLINE static Raw pack(const Floats* part) {
        return pack(part, std::make_index_sequence<kWidth / 4>{});
    }
#endif
};

using Halves = Vec<std::uint16_t>;

// 8-bit floats by way of float16, which holds every e5m2 as it is and every e4m3fn times 2^-8.
// F is the Minifloat, whose constants say where to round.
template <class F, bool kFinite>
struct Float8 {
    using Lane = float;
    static constexpr std::size_t kParts = 4;

    // The element in the upper byte, zeros below.
    ROUNDELAY_INLINE static Halves widen(Halves element) {
        if constexpr (kFinite) {
            const Halves magnitude = element & 0x7f00;
            const Halves nan = reinterpret_cast<Halves>(magnitude == 0x7f00) & 0x7c00;
            return (element & 0x8000) | (magnitude >> 1) | nan;
        } else {
            return element;
        }
    }
    ROUNDELAY_INLINE static Halves narrow(Halves half) {
        if constexpr (kFinite) {
            Halves magnitude = half & 0x7fff;
            const auto beyond = reinterpret_cast<Vec<std::int16_t>>(magnitude) >= 0x3f80;
            magnitude = beyond ? Halves{} + 0x3f80 : magnitude;
            const Halves sign = half & 0x8000 & ~reinterpret_cast<Halves>(beyond);
            return sign | (magnitude << 1);
        } else {
            return half;
        }
    }

    // To the nearest number of the format, subnormal or not: added to a number whose unit in the
    // last place is the format's there, and taken off again. What overflows need not be exact.
    ROUNDELAY_INLINE static Floats round(Floats value) {
        const Ints exponent = reinterpret_cast<Ints>(bits(value) & 0x7f800000u);
        const Ints least = Ints{} + static_cast<std::int32_t>(F::kLeastNormal);
        const Ints most = Ints{} + (0xbf << 23);
        Ints clamped = exponent > least ? exponent : least;
        clamped = clamped < most ? clamped : most;
        const Ints magic = clamped + static_cast<std::int32_t>((F::kShift << 23) + (1u << 22));
        const Floats large = reinterpret_cast<Floats>(magic);
        const Floats rounded = (value + large) - large;
        return floats(bits(rounded) | (bits(value) & 0x80000000u));  // -0 stays
    }

    ROUNDELAY_INLINE static void unpack(Raw raw, Floats* part) {
        const Halves both = reinterpret_cast<Halves>(raw);
        Float16::unpack(reinterpret_cast<Raw>(widen(both << 8)), part);
        Float16::unpack(reinterpret_cast<Raw>(widen(both & 0xff00)), part + 2);
        if constexpr (kFinite) {
            for (std::size_t k = 0; k < kParts; ++k) part[k] *= 256.0f;
        }
    }
    ROUNDELAY_INLINE static Raw pack(const Floats* part) {
        Floats rounded[kParts];
        for (std::size_t k = 0; k < kParts; ++k) {
            rounded[k] = round(part[k]) * (kFinite ? 0x1p-8f : 1.0f);
        }
        const Halves even = narrow(reinterpret_cast<Halves>(Float16::pack(rounded)));
        const Halves odd = narrow(reinterpret_cast<Halves>(Float16::pack(rounded + 2)));
        return reinterpret_cast<Raw>((even >> 8) | (odd & 0xff00));
    }
};
using Float8E4m3fn = Float8<Minifloat<4, 3, true>, true>;
using Float8E5m2 = Float8<Minifloat<5, 2, false>, false>;
#else
using Float16 = Minifloat<5, 10, false>;
using Float8E4m3fn = Minifloat<4, 3, true>;
using Float8E5m2 = Minifloat<5, 2, false>;
#endif

}  // namespace
}  // namespace roundelay::reduce
