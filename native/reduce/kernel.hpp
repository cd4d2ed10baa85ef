// The loop that every kernel is, and the table of all kernels of one processor family.
#pragma once

#include "reduce/floats.hpp"
#include "reduce/ops.hpp"

namespace roundelay::reduce {
namespace {

// Four vectors of lanes are held in registers while the sources are gone through.
constexpr std::size_t kHeld = 4;

// Narrow floats take so many instructions a line that the processor cannot see far enough ahead to
// keep memory busy; asking early makes large reductions of them up to a third faster. Plain types
// gain nothing in place and lose out of place.
constexpr std::size_t kAhead = 2048;

// Reduces kVectors vectors at `at`; all sources are read before the destination is written.
// With kPart it is one vector of which only `part` bytes exist.
template <class F, class O, std::size_t kVectors, bool kPart>
ROUNDELAY_INLINE void block(const O& op, std::byte* to, const std::byte* const* from,
                            std::size_t sources, std::size_t at, Store store, std::size_t part) {
    using V = Vec<typename F::Lane>;
    constexpr std::size_t parts = F::kParts;
    V total[kVectors * parts];
    const auto read = [&](const std::byte* source, V* lanes) ROUNDELAY_LAMBDA_INLINE {
        for (std::size_t k = 0; k < kVectors; ++k) {
            const std::byte* place = source + at + k * kWidth;
            if constexpr (!kPart && parts > 1) {
                if (k * kWidth % kLine == 0) prefetch(place + kAhead);
            }
            F::unpack(kPart ? get_part(place, part) : get(place), lanes + k * parts);
        }
    };
    read(from[0], total);
    for (V& lanes : total) op.first(lanes);
    for (std::size_t j = 1; j < sources; ++j) {
        V lanes[kVectors * parts];
        read(from[j], lanes);
        for (std::size_t k = 0; k < kVectors * parts; ++k) op(total[k], lanes[k]);
    }
    for (V& lanes : total) op.last(lanes);
    for (std::size_t k = 0; k < kVectors; ++k) {
        const Raw raw = F::pack(total + k * parts);
        std::byte* place = to + at + k * kWidth;
        if constexpr (kPart) {
            put_part(place, raw, part);
        } else if (store == Store::streamed) {
            put_streamed(place, raw);
        } else {
            put(place, raw);
        }
    }
}

template <class F, class O>
void kernel(std::byte* to, const std::byte* const* from, std::size_t sources, std::size_t bytes,
            std::size_t head, const Scale& scale, Store store) noexcept {
    constexpr std::size_t vectors = kHeld / F::kParts;
    const O op(scale);
    std::size_t at = 0;
    const std::size_t ends[2]{head, bytes};
    for (const std::size_t end : ends) {
        const Store how = at < head ? Store::cached : store;
        for (; end - at >= vectors * kWidth; at += vectors * kWidth) {
            block<F, O, vectors, false>(op, to, from, sources, at, how, 0);
        }
        for (; end - at >= kWidth; at += kWidth) {
            block<F, O, 1, false>(op, to, from, sources, at, how, 0);
        }
        if (at < end) block<F, O, 1, true>(op, to, from, sources, at, how, end - at);
        at = end;
    }
    if (store == Store::streamed) fence_streamed();
}

constexpr void set(Table& table, Op op, Type type, Kernel kernel) {
    table[index(op)][index(type)] = kernel;
}

template <class F>
constexpr void set_float(Table& table, Type type) {
    using T = typename F::Lane;
    set(table, Op::sum, type, kernel<F, Sum<T>>);
    set(table, Op::product, type, kernel<F, Product<T>>);
    set(table, Op::min, type, kernel<F, Min<T>>);
    set(table, Op::max, type, kernel<F, Max<T>>);
    set(table, Op::avg, type, kernel<F, Average<T>>);
    set(table, Op::premul_sum, type, kernel<F, PremulSum<T>>);
}

template <class T>
constexpr void set_integer(Table& table, Type type) {
    using U = BitsOf<T>;  // sums and products wrap, which signed numbers may not
    set(table, Op::sum, type, kernel<Plain<U>, Sum<U>>);
    set(table, Op::product, type, kernel<Plain<U>, Product<U>>);
    set(table, Op::min, type, kernel<Plain<T>, Min<T>>);
    set(table, Op::max, type, kernel<Plain<T>, Max<T>>);
    set(table, Op::band, type, kernel<Plain<std::uint8_t>, And<std::uint8_t>>);
    set(table, Op::bor, type, kernel<Plain<std::uint8_t>, Or<std::uint8_t>>);
    set(table, Op::bxor, type, kernel<Plain<std::uint8_t>, Xor<std::uint8_t>>);
    set(table, Op::avg, type, kernel<Plain<T>, Average<T>>);
    set(table, Op::premul_sum, type, kernel<Plain<U>, PremulSum<U>>);
}

constexpr void set_bool(Table& table) {
    using T = std::uint8_t;
    for (Op op : {Op::sum, Op::max, Op::bor}) set(table, op, Type::boolean, kernel<Bool, Or<T>>);
    for (Op op : {Op::product, Op::min, Op::band}) {
        set(table, op, Type::boolean, kernel<Bool, And<T>>);
    }
    set(table, Op::bxor, Type::boolean, kernel<Bool, Xor<T>>);
}

// Sums know nothing of complex numbers: real and imaginary parts are numbers side by side.
template <class T>
constexpr void set_complex(Table& table, Type type) {
    set(table, Op::sum, type, kernel<Plain<T>, Sum<T>>);
    set(table, Op::product, type, kernel<Plain<T>, ComplexProduct<T>>);
    set(table, Op::avg, type, kernel<Plain<T>, Average<T>>);
    set(table, Op::premul_sum, type, kernel<Plain<T>, PremulSum<T>>);
}

constexpr Table all_kernels() {
    Table table{};
    set_float<Plain<double>>(table, Type::float64);
    set_float<Plain<float>>(table, Type::float32);
    set_float<Float16>(table, Type::float16);
    set_float<Bfloat16>(table, Type::bfloat16);
    set_float<Float8E4m3fn>(table, Type::float8_e4m3fn);
    set_float<Float8E5m2>(table, Type::float8_e5m2);
    set_integer<std::int8_t>(table, Type::int8);
    set_integer<std::int16_t>(table, Type::int16);
    set_integer<std::int32_t>(table, Type::int32);
    set_integer<std::int64_t>(table, Type::int64);
    set_integer<std::uint8_t>(table, Type::uint8);
    set_integer<std::uint16_t>(table, Type::uint16);
    set_integer<std::uint32_t>(table, Type::uint32);
    set_integer<std::uint64_t>(table, Type::uint64);
    set_bool(table);
    set_complex<float>(table, Type::complex64);
    set_complex<double>(table, Type::complex128);
    return table;
}

}  // namespace
}  // namespace roundelay::reduce
