// CRC-32C (Castagnoli, the one of iSCSI: RFC 3720, section 12.1) of bytes in memory.
#pragma once

#include <cstddef>
#include <cstdint>

namespace roundelay::engine {

// The sum of what `before` is the sum of (0: of nothing) and of the bytes behind it.
std::uint32_t crc32c(std::uint32_t before, const void* data, std::size_t size);

// The same, without the processor's instruction for it.
std::uint32_t crc32c_portable(std::uint32_t before, const void* data, std::size_t size);

}  // namespace roundelay::engine
