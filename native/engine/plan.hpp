// What one participant (a rank, or a switch that adds) does for a collective, in order.
// Python works it out (roundelay.plan) and hands it over as a flat array of whole numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace roundelay::engine {

enum class Space : std::uint8_t { none, input, output, scratch };
inline constexpr std::size_t kSpaces = 4;

// Among the sources of an entry: the participant's own value.
inline constexpr int kOwn = -1;

// Chunks first .. first + count - 1: where their value lies, and where a new one is written.
struct Segment {
    std::int64_t first;
    std::int64_t count;
    Space space;
    Space home;
};

// An earlier send that reads what this entry overwrites.
struct After {
    std::size_t entry;
    bool only_in_place;
};

// Whether the chunks of a send are overwritten in the same step.
enum class Bounce : std::uint8_t { no, in_place, always };

struct Entry {
    bool send;
    Bounce bounce;
    std::int64_t step;
    std::vector<int> peers;
    std::vector<Segment> segments;
    std::vector<After> after;
};

struct Plan {
    std::int64_t chunks = 0;
    std::int64_t steps = 0;
    std::vector<Entry> entries;

    // Throws BadInput when the numbers make no plan.
    static Plan read(std::span<const std::int64_t> numbers, int participants);
};

}  // namespace roundelay::engine
