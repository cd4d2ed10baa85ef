// When every message of a schedule begins and ends, in picoseconds: the max-plus recurrence of
// roundelay.simulate.recurrence, which says what it means.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace roundelay::clock {

using Time = std::int64_t;

constexpr Time kLatest = -(Time{1} << 62);

// As in roundelay.simulate.waits: ends are 0 for the source, 1 for the destination.
struct Wait {
    std::int64_t round, end, other, side;
    Time lag;
};

// As in roundelay.simulate.phases; messages stand by round, then by first step.
struct Phase {
    std::int64_t first;
    std::vector<std::int64_t> times;    // [round]
    std::vector<std::size_t> messages;  // [round + 1], where those of a round begin
    std::vector<std::int32_t> src, dst;
    std::vector<std::int64_t> start;
    std::vector<Wait> waits, before;
    std::int64_t steps = 0;
};

struct Schedule {
    std::size_t participants = 0;
    std::size_t rounds = 0;
    std::size_t messages = 0;
    std::vector<Phase> phases;
};

// What each message costs, [message] over all phases. `whole`: from begin to end. `busy`: from begin
// to when the next between the same two may begin.
struct Costs {
    std::span<const Time> whole, busy;
};

// Factors of times that are drawn anew in every sample. A table holds factors of equal likelihood;
// an empty one is no variation. `link`: [message], the link whose factor it has; may be empty.
struct Variation {
    std::span<const float> step, card, link;
    std::span<const std::int64_t> links;
    std::uint64_t seed = 0;
};

// The last end of each participant. With `steady`, repetitions that go on alike are multiplied, not
// gone through; the result is equal.
std::vector<Time> run(const Schedule& schedule, const Costs& costs, bool steady);

// The last end of each sample.
std::vector<Time> sample(const Schedule& schedule, const Costs& costs, const Variation& variation,
                         std::uint64_t samples, unsigned threads);

}  // namespace roundelay::clock
