// What a rank was asked to do, as far as all ranks must agree on it.
#pragma once

#include <cstdint>

namespace roundelay::engine {

// The elements of an exchange of which each rank knows its own part alone.
constexpr std::uint64_t kUnequal = ~std::uint64_t{0};

struct Call {
    std::uint64_t sequence = 0;  // number of the call on this communicator, from 1
    std::uint64_t elements = 0;
    std::uint32_t plan = 0;   // which algorithm, and how it is cut into slices
    std::uint32_t root = 0;
    std::uint8_t collective = 0;
    std::uint8_t type = 0;
    std::uint8_t op = 0;
    std::uint8_t spare[5] = {};

    bool operator==(const Call&) const = default;
};

static_assert(sizeof(Call) == 32);

// Sixteen bits that differ between different calls, but for one chance in 65,536.
inline std::uint16_t signature(const Call& call) {
    std::uint64_t mixed = call.sequence * 0x9E3779B97F4A7C15u;
    mixed = (mixed ^ call.elements) * 0xBF58476D1CE4E5B9u;
    mixed = (mixed ^ (std::uint64_t{call.plan} << 32 | call.root)) * 0x94D049BB133111EBu;
    mixed ^= mixed >> 29;
    mixed = (mixed ^ (call.collective | call.type << 8 | call.op << 16)) * 0x9E3779B97F4A7C15u;
    return static_cast<std::uint16_t>(mixed >> 48);
}

}  // namespace roundelay::engine
