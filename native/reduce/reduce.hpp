// Reductions of several buffers into one, in one pass, by the best kernels the processor can run.
//
//     const Isa& isa = chosen_isa();
//     if (isa.kernel(Op::sum, Type::bfloat16) != nullptr)
//         run(isa, Op::sum, Type::bfloat16, to, from, sources, count, {}, Store::cached);
//
// All processors give the same bits. Integers wrap. 16- and 8-bit floats are accumulated in
// float32 and rounded once, to nearest even, when all sources are in. A NaN in a result is always
// the same one: quiet, positive, without payload.
#pragma once

#include <span>
#include <string_view>

#include "reduce/types.hpp"

namespace roundelay::reduce {

// A family of processors and the kernels compiled for it.
struct Isa {
    std::string_view name;
    const Table* table;

    // nullptr where the operation is not defined for the type.
    Kernel kernel(Op op, Type type) const noexcept { return (*table)[index(op)][index(type)]; }
};

// What this processor can run, the least first.
std::span<const Isa> isas();

// nullptr when this processor cannot run it, or there is no such name.
const Isa* find_isa(std::string_view name);

// The best, or the one that the environment variable ROUNDELAY_ISA names.
// Throws std::invalid_argument when that cannot be had.
const Isa& chosen_isa();

// Runs a kernel over `count` elements under the usual rules of floating point (nearest even,
// subnormals kept), whatever the thread has set. The operation must be defined for the type.
// `from` holds `sources` >= 1 pointers; `to` may be one of them, and must not overlap otherwise.
void run(const Isa& isa, Op op, Type type, std::byte* to, const std::byte* const* from,
         std::size_t sources, std::size_t count, const Scale& scale, Store store) noexcept;

}  // namespace roundelay::reduce
