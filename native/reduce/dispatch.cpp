// Which kernels this processor can run, and running one.
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "reduce/reduce.hpp"
#include "reduce/tables.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#include <xmmintrin.h>
#endif

namespace roundelay::reduce {
namespace {

// Kernels treat the bytes of a wider lane as elements in this order.
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);

#if defined(__x86_64__)
bool has_f16c() {
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}
#endif

std::vector<Isa> detect() {
    std::vector<Isa> found;
#if defined(__x86_64__)
    __builtin_cpu_init();  // its answers include whether the system keeps the registers
    found.push_back({"sse2", &baseline_table});
    if (!__builtin_cpu_supports("avx2") || !has_f16c()) return found;
    found.push_back({"avx2", &avx2_table});
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
        found.push_back({"avx512", &avx512_table});
    }
#elif defined(__aarch64__)
    found.push_back({"neon", &neon_table});
#else
    found.push_back({"generic", &baseline_table});
#endif
    return found;
}

const Isa& choose() {
    const char* wanted = std::getenv("ROUNDELAY_ISA");
    if (wanted == nullptr || *wanted == '\0') return isas().back();
    const Isa* isa = find_isa(wanted);
    if (isa != nullptr) return *isa;
    std::string names;
    for (const Isa& each : isas()) names += (names.empty() ? "" : ", ") + std::string(each.name);
    throw std::invalid_argument("ROUNDELAY_ISA is '" + std::string(wanted) +
                                "'; this processor can run: " + names +
                                ". Unset it to use the last of these");
}

// From this many bytes on, aligning the destination is worth its own short block.
constexpr std::size_t kAlignFrom = 8192;

// Rounding to nearest and no flushing of subnormals while it lives; then as it was.
class UsualFloats {
   public:
    UsualFloats() noexcept : saved_(read()) {
        if (saved_ != kUsual) write(kUsual);
    }
    ~UsualFloats() {
        if (saved_ != kUsual) write(saved_);
    }
    UsualFloats(const UsualFloats&) = delete;
    UsualFloats& operator=(const UsualFloats&) = delete;

   private:
#if defined(__x86_64__)
    using Word = unsigned;
    static constexpr Word kUsual = 0x1f80;  // every exception masked
    static constexpr Word kFlags = 0x3f;    // of past exceptions, which change nothing
    static Word read() noexcept { return _mm_getcsr() & ~kFlags; }
    static void write(Word word) noexcept { _mm_setcsr(word); }
#elif defined(__aarch64__)
    using Word = std::uint64_t;
    static constexpr Word kUsual = 0;
    static Word read() noexcept {
        Word word;
        asm volatile("mrs %0, fpcr" : "=r"(word));
        return word;
    }
    static void write(Word word) noexcept { asm volatile("msr fpcr, %0" : : "r"(word)); }
#else
    using Word = int;
    static constexpr Word kUsual = 0;
    static Word read() noexcept { return 0; }
    static void write(Word) noexcept {}
#endif
    Word saved_;
};

}  // namespace

std::span<const Isa> isas() {
    static const std::vector<Isa> found = detect();
    return found;
}

const Isa* find_isa(std::string_view name) {
    for (const Isa& isa : isas()) {
        if (isa.name == name) return &isa;
    }
    return nullptr;
}

const Isa& chosen_isa() {
    static const Isa& isa = choose();
    return isa;
}

void run(const Isa& isa, Op op, Type type, std::byte* to, const std::byte* const* from,
         std::size_t sources, std::size_t count, const Scale& scale, Store store) noexcept {
    const UsualFloats usual;
    const std::size_t item = item_size(type);
    const std::size_t bytes = count * item;
    // Where the destination lies between elements no element begins with a line.
    const bool even = reinterpret_cast<std::uintptr_t>(to) % item == 0;
    std::size_t head = 0;
    if (even && bytes >= kAlignFrom) head = -reinterpret_cast<std::uintptr_t>(to) % kLine;
    if (!even || bytes < kAlignFrom) store = Store::cached;
    isa.kernel(op, type)(to, from, sources, bytes, head, scale, store);
}

}  // namespace roundelay::reduce
