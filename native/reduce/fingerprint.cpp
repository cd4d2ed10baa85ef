// Prints one number for each instruction set: of the bits that every operation on every type gives
// for fixed pseudo-random input. Equal numbers on two machines mean equal bits, without Python.
#include <cstdint>
#include <cstdio>
#include <vector>

#include "reduce/reduce.hpp"

namespace {

using namespace roundelay::reduce;

constexpr std::size_t kCount = 4099;  // elements; odd, so that there is a tail
constexpr std::size_t kSources = 3;

std::vector<std::byte> noise(std::uint64_t seed) {
    std::vector<std::byte> bytes(kCount * 16);
    for (std::byte& byte : bytes) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        byte = static_cast<std::byte>(seed >> 56);
    }
    return bytes;
}

std::uint64_t fold(std::uint64_t hash, const std::byte* bytes, std::size_t size) {
    for (std::size_t k = 0; k < size; ++k) {
        hash = (hash ^ static_cast<std::uint64_t>(bytes[k])) * 1099511628211u;
    }
    return hash;
}

Scale scale_of(Op op, Type type) {
    if (op == Op::premul_sum && !is_integer(type)) return {0.3, 1};
    return {3.0, 3};
}

}  // namespace

int main() {
    const std::vector<std::byte> inputs[kSources]{noise(1), noise(2), noise(3)};
    const std::byte* from[kSources]{inputs[0].data(), inputs[1].data(), inputs[2].data()};
    std::vector<std::byte> to(kCount * 16);
    for (const Isa& isa : isas()) {
        std::uint64_t hash = 14695981039346656037u;
        for (std::size_t o = 0; o < kOps; ++o) {
            for (std::size_t t = 0; t < kTypes; ++t) {
                const Op op = static_cast<Op>(o);
                const Type type = static_cast<Type>(t);
                if (isa.kernel(op, type) == nullptr) continue;
                for (std::size_t sources = 1; sources <= kSources; ++sources) {
                    run(isa, op, type, to.data(), from, sources, kCount, scale_of(op, type),
                        Store::cached);
                    hash = fold(hash, to.data(), kCount * item_size(type));
                }
            }
        }
        std::printf("%s %016llx\n", isa.name.data(), static_cast<unsigned long long>(hash));
    }
}
