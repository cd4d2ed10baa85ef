// Pieces that are handed on along chains and rings, in closed form.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace roundelay::clock {

// When repetition `steps` - 1 of each message begins, where
//
//     begin(m, k) = max(begin(m, k - 1) + busy, begin(before(m), k - 1) + whole(before(m)))
//
// and begin(m, 0) = begin[m], and whole >= busy. A message is the `before` of one at most, maybe of
// itself; that of one that waits for none is kNone.
constexpr std::size_t kNone = SIZE_MAX;
std::vector<std::int64_t> relayed(const std::vector<std::int64_t>& begin,
                                  const std::vector<std::size_t>& before,
                                  std::span<const std::int64_t> whole, std::int64_t busy,
                                  std::int64_t steps);

}  // namespace roundelay::clock
