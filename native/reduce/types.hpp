// Element types, operations, and what a kernel is.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace roundelay::reduce {

enum class Op : std::uint8_t { sum, product, min, max, band, bor, bxor, avg, premul_sum };

enum class Type : std::uint8_t {
    float64,
    float32,
    float16,
    bfloat16,
    float8_e4m3fn,
    float8_e5m2,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
    boolean,
    complex64,
    complex128,
};

inline constexpr std::array<std::string_view, 9> kOpNames{
    "sum", "product", "min", "max", "band", "bor", "bxor", "avg", "premul_sum"};

inline constexpr std::array<std::string_view, 17> kTypeNames{
    "float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2",
    "int8",    "int16",   "int32",   "int64",    "uint8",         "uint16",
    "uint32",  "uint64",  "bool",    "complex64", "complex128"};

inline constexpr std::array<std::uint8_t, 17> kItemSizes{8, 4, 2, 2, 1, 1, 1, 2, 4,
                                                         8, 1, 2, 4, 8, 1, 8, 16};

inline constexpr std::size_t kOps = kOpNames.size();
inline constexpr std::size_t kTypes = kTypeNames.size();

constexpr std::size_t index(Op op) { return static_cast<std::size_t>(op); }
constexpr std::size_t index(Type type) { return static_cast<std::size_t>(type); }
constexpr std::size_t item_size(Type type) { return kItemSizes[index(type)]; }

constexpr bool is_integer(Type type) { return type >= Type::int8 && type <= Type::uint64; }
constexpr bool is_signed(Type type) { return type >= Type::int8 && type <= Type::int64; }
constexpr bool is_complex(Type type) { return type >= Type::complex64; }

// What avg divides by and premul_sum multiplies with. Float and complex types take `real`.
// Integer types take `whole`: the divisor, or the factor modulo 2^64.
struct Scale {
    double real = 1.0;
    std::uint64_t whole = 1;
};

// How the destination is written: through the cache, or past it. The latter is for a
// destination that is not read and is too large to stay in the cache until it is.
enum class Store : std::uint8_t { cached, streamed };

// to[i] = from[0][i] op from[1][i] op ... in this order, over `bytes` bytes, `sources` >= 1.
// `to` may be one of the sources; other overlap is forbidden. The first `head` bytes, a whole
// number of elements, are done apart and cached: vectors are fastest where to + head is a multiple
// of kLine, and a streamed `to` needs that.
using Kernel = void (*)(std::byte* to, const std::byte* const* from, std::size_t sources,
                        std::size_t bytes, std::size_t head, const Scale& scale,
                        Store store) noexcept;

// Bytes of a cache line.
inline constexpr std::size_t kLine = 64;

// The kernels of one processor family. nullptr: the operation is not defined for the type.
using Table = std::array<std::array<Kernel, kTypes>, kOps>;

}  // namespace roundelay::reduce
