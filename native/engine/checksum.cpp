#include "engine/checksum.hpp"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

namespace roundelay::engine {
namespace {

// Sums in this file are not inverted: they are linear in the bits of what is summed.
using Table = std::array<std::uint32_t, 256>;

constexpr std::uint32_t kPolynomial = 0x82F63B78;  // reflected

// [k][b] is the sum of the byte b and k bytes of 0 behind it.
constexpr std::array<Table, 8> kBytes = [] {
    std::array<Table, 8> made{};
    for (std::uint32_t b = 0; b < 256; ++b) {
        std::uint32_t sum = b;
        for (int bit = 0; bit < 8; ++bit) sum = sum >> 1 ^ (sum & 1 ? kPolynomial : 0);
        made[0][b] = sum;
    }
    for (std::size_t k = 1; k < 8; ++k) {
        for (std::size_t b = 0; b < 256; ++b) {
            made[k][b] = made[k - 1][b] >> 8 ^ made[0][made[k - 1][b] & 0xFF];
        }
    }
    return made;
}();

std::uint64_t load(const unsigned char* at) {
    std::uint64_t word;
    std::memcpy(&word, at, sizeof(word));
    return word;
}

std::uint32_t by_table(std::uint32_t sum, const unsigned char* at, std::size_t size) {
    for (; size >= 8; at += 8, size -= 8) {
        const std::uint64_t word = load(at) ^ sum;
        sum = 0;
        for (std::size_t k = 0; k < 8; ++k) sum ^= kBytes[7 - k][word >> (8 * k) & 0xFF];
    }
    for (; size > 0; ++at, --size) sum = sum >> 8 ^ kBytes[0][(sum ^ *at) & 0xFF];
    return sum;
}

#if defined(__x86_64__) || defined(__aarch64__)
#if defined(__x86_64__)
#define ROUNDELAY_CRC __attribute__((target("sse4.2")))
ROUNDELAY_CRC inline std::uint32_t step(std::uint32_t sum, std::uint64_t word) {
    return static_cast<std::uint32_t>(_mm_crc32_u64(sum, word));
}
ROUNDELAY_CRC inline std::uint32_t step(std::uint32_t sum, unsigned char byte) {
    return _mm_crc32_u8(sum, byte);
}
bool has_instruction() {
    __builtin_cpu_init();
    return __builtin_cpu_supports("sse4.2");
}
#else
#define ROUNDELAY_CRC
inline std::uint32_t step(std::uint32_t sum, std::uint64_t word) {
    asm(".arch_extension crc\n\tcrc32cx %w0, %w0, %x1" : "+r"(sum) : "r"(word));
    return sum;
}
inline std::uint32_t step(std::uint32_t sum, unsigned char byte) {
    asm(".arch_extension crc\n\tcrc32cb %w0, %w0, %w1" : "+r"(sum) : "r"(byte));
    return sum;
}
bool has_instruction() { return (getauxval(AT_HWCAP) & 1 << 7) != 0; }  // HWCAP_CRC32
#endif

// The instruction takes three cycles and one can begin in each: three stretches go side by side.
constexpr std::size_t kStretch = 1024;

// What a sum becomes by a stretch of 0 behind it, byte by byte of the sum.
using Skip = std::array<Table, 4>;

Skip make_skip() {
    constexpr unsigned char zeros[kStretch] = {};
    Skip made;
    for (std::size_t k = 0; k < 4; ++k) {
        for (std::uint32_t b = 0; b < 256; ++b) {
            made[k][b] = by_table(b << (8 * k), zeros, kStretch);
        }
    }
    return made;
}

std::uint32_t behind(const Skip& skip, std::uint32_t sum) {
    return skip[0][sum & 0xFF] ^ skip[1][sum >> 8 & 0xFF] ^ skip[2][sum >> 16 & 0xFF] ^
           skip[3][sum >> 24];
}

ROUNDELAY_CRC std::uint32_t by_instruction(std::uint32_t sum, const unsigned char* at,
                                           std::size_t size) {
    static const Skip skip = make_skip();
    for (; size >= 3 * kStretch; at += 3 * kStretch, size -= 3 * kStretch) {
        std::uint32_t second = 0;
        std::uint32_t third = 0;
        for (std::size_t i = 0; i < kStretch; i += 8) {
            sum = step(sum, load(at + i));
            second = step(second, load(at + kStretch + i));
            third = step(third, load(at + 2 * kStretch + i));
        }
        sum = behind(skip, behind(skip, sum) ^ second) ^ third;
    }
    for (; size >= 8; at += 8, size -= 8) sum = step(sum, load(at));
    for (; size > 0; ++at, --size) sum = step(sum, *at);
    return sum;
}
#else
constexpr auto by_instruction = by_table;
bool has_instruction() { return false; }
#endif

}  // namespace

std::uint32_t crc32c(std::uint32_t before, const void* data, std::size_t size) {
    static const auto chosen = has_instruction() ? by_instruction : by_table;
    return ~chosen(~before, static_cast<const unsigned char*>(data), size);
}

std::uint32_t crc32c_portable(std::uint32_t before, const void* data, std::size_t size) {
    return ~by_table(~before, static_cast<const unsigned char*>(data), size);
}

}  // namespace roundelay::engine
