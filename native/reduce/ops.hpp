// The operations on vectors of lanes of type T.
//
// first() prepares what the first source holds, operator() takes in another source, last() turns
// the accumulated lanes into the result. Floating-point results hold one NaN only, so that its
// payload and sign cannot depend on the processor.
#pragma once

#include <type_traits>
#include <utility>

#include "reduce/vector.hpp"

namespace roundelay::reduce {
namespace {

template <class T>
constexpr bool kFloating = std::is_floating_point_v<T>;

template <class T>
using BitsOf = std::conditional_t<
    sizeof(T) == 8, std::uint64_t,
    std::conditional_t<sizeof(T) == 4, std::uint32_t,
                       std::conditional_t<sizeof(T) == 2, std::uint16_t, std::uint8_t>>>;

template <class T>
ROUNDELAY_INLINE void canonical(Vec<T>& value) {
    if constexpr (kFloating<T>) {
        constexpr BitsOf<T> nan = sizeof(T) == 8 ? static_cast<BitsOf<T>>(0x7ff8ull << 48)
                                                 : static_cast<BitsOf<T>>(0x7fc0u << 16);
        value = value == value ? value : reinterpret_cast<Vec<T>>(Vec<BitsOf<T>>{} + nan);
    }
}

// What most operations share. Integers wrap, so lanes of integers are unsigned here.
template <class T>
struct Basic {
    explicit Basic(const Scale&) {}
    ROUNDELAY_INLINE void first(Vec<T>&) const {}
    ROUNDELAY_INLINE void last(Vec<T>& total) const { canonical<T>(total); }
};

template <class T>
struct Sum : Basic<T> {
    using Basic<T>::Basic;
    ROUNDELAY_INLINE void operator()(Vec<T>& total, Vec<T> x) const { total += x; }
};

template <class T>
struct Product : Basic<T> {
    using Basic<T>::Basic;
    ROUNDELAY_INLINE void operator()(Vec<T>& total, Vec<T> x) const { total *= x; }
};

// Real and imaginary parts side by side; (a + bi)(c + di) = (ac - bd) + (ad + bc)i, where every
// product is rounded before the sum.
template <class T>
struct ComplexProduct : Basic<T> {
    using Basic<T>::Basic;
    template <std::size_t... k>
    ROUNDELAY_INLINE static Vec<T> product(Vec<T> a, Vec<T> b, std::index_sequence<k...>) {
        constexpr BitsOf<T> sign = BitsOf<T>{1} << (8 * sizeof(T) - 1);
        const Vec<BitsOf<T>> minus{(k % 2 == 0 ? sign : 0)...};
        const Vec<T> real = __builtin_shufflevector(a, a, (k & ~std::size_t{1})...);
        const Vec<T> imaginary = __builtin_shufflevector(a, a, (k | 1)...);
        const Vec<T> crossed = imaginary * __builtin_shufflevector(b, b, (k ^ 1)...);
        return real * b +
               reinterpret_cast<Vec<T>>(reinterpret_cast<Vec<BitsOf<T>>>(crossed) ^ minus);
    }
    ROUNDELAY_INLINE void operator()(Vec<T>& total, Vec<T> x) const {
        total = product(total, x, std::make_index_sequence<kLanes<T>>{});
    }
};

// IEEE 754-2019 minimum and maximum: NaN wins over numbers, and -0 is less than +0. So neither
// depends on the order of the sources.
template <class T, bool kMax>
struct Extreme : Basic<T> {
    using Basic<T>::Basic;
    ROUNDELAY_INLINE void operator()(Vec<T>& total, Vec<T> x) const {
        if constexpr (kFloating<T>) {
            using B = Vec<BitsOf<T>>;
            const B a = reinterpret_cast<B>(total), b = reinterpret_cast<B>(x);
            // Equal numbers have equal bits, but for zeros, which differ in the sign.
            const Vec<T> same = reinterpret_cast<Vec<T>>(kMax ? a & b : a | b);
            Vec<T> result = kMax ? (total > x ? total : x) : (total < x ? total : x);
            result = total == x ? same : result;
            total = total == total ? result : total;
        } else {
            total = kMax ? (total > x ? total : x) : (total < x ? total : x);
        }
    }
};

template <class T>
using Min = Extreme<T, false>;
template <class T>
using Max = Extreme<T, true>;

template <class T>
struct And : Basic<T> {
    using Basic<T>::Basic;
    ROUNDELAY_INLINE void operator()(Vec<T>& total, Vec<T> x) const { total &= x; }
};

template <class T>
struct Or : Basic<T> {
    using Basic<T>::Basic;
    ROUNDELAY_INLINE void operator()(Vec<T>& total, Vec<T> x) const { total |= x; }
};

template <class T>
struct Xor : Basic<T> {
    using Basic<T>::Basic;
    ROUNDELAY_INLINE void operator()(Vec<T>& total, Vec<T> x) const { total ^= x; }
};

// The sum, then one division: of floats in T, of integers towards zero.
template <class T>
struct Average {
    // A divisor up to 2^31 - 1 need not fit into T.
    using Wide = std::conditional_t<
        kFloating<T>, T,
        std::conditional_t<sizeof(T) == 8, T,
                           std::conditional_t<std::is_same_v<T, std::uint32_t>, T, std::int32_t>>>;
    using Adding = std::conditional_t<kFloating<T>, T, BitsOf<T>>;
    Wide divisor;

    explicit Average(const Scale& scale) {
        if constexpr (kFloating<T>) {
            divisor = static_cast<T>(scale.real);
        } else {
            divisor = static_cast<Wide>(scale.whole);
        }
    }
    ROUNDELAY_INLINE void first(Vec<T>&) const {}
    ROUNDELAY_INLINE void operator()(Vec<T>& total, Vec<T> x) const {
        using A = Vec<Adding>;
        total = reinterpret_cast<Vec<T>>(reinterpret_cast<A>(total) + reinterpret_cast<A>(x));
    }
    ROUNDELAY_INLINE void last(Vec<T>& total) const {
        if constexpr (kFloating<T>) {
            total /= splat<T>(divisor);
            canonical<T>(total);
        } else {
            for (std::size_t k = 0; k < kLanes<T>; ++k) {
                total[k] = static_cast<T>(static_cast<Wide>(total[k]) / divisor);
            }
        }
    }
};

// Each source times a factor, rounded, then summed.
template <class T>
struct PremulSum : Basic<T> {
    Vec<T> factor;

    explicit PremulSum(const Scale& scale) : Basic<T>(scale) {
        if constexpr (kFloating<T>) {
            factor = splat<T>(static_cast<T>(scale.real));
        } else {
            factor = splat<T>(static_cast<T>(scale.whole));
        }
    }
    ROUNDELAY_INLINE void first(Vec<T>& total) const { total *= factor; }
    ROUNDELAY_INLINE void operator()(Vec<T>& total, Vec<T> x) const { total += x * factor; }
};

}  // namespace
}  // namespace roundelay::reduce
