// A plan with sizes: every chunk of every entry as bytes in a space, cut into slices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/call.hpp"
#include "engine/counts.hpp"
#include "engine/plan.hpp"
#include "reduce/types.hpp"

namespace roundelay::engine {

// How the pieces of the collective lie in the caller's buffers, in elements; -1: not there.
struct Layout {
    std::span<const std::int64_t> input;   // [pieces]
    std::span<const std::int64_t> output;  // [pieces]
    std::span<const std::int64_t> length;  // [pieces]
};

struct Settings {
    reduce::Op op = reduce::Op::sum;
    reduce::Type type = reduce::Type::uint8;
    std::size_t slices = 1;  // parts into which every chunk is cut; they go through one by one
    std::size_t lag = 0;     // slices that a reception runs behind its send
    std::uint64_t divisor = 0;  // what the output is divided by at the end; 0: nothing
    bool streamed = false;   // the output is too large for the cache
    std::size_t attach_from = SIZE_MAX;  // bytes of a message from which readers attach to the
                                         // sender's memory instead of a copy of it
};

inline constexpr std::size_t kNone = SIZE_MAX;

// `size` bytes: where their value lies, and where a new one is written.
struct Piece {
    std::size_t at;
    std::size_t to;
    std::size_t size;
    Space space;
    Space home;
};

struct Stage {
    bool send;
    Bounce bounce;
    std::size_t skew;  // slices it runs behind the first stage
    std::vector<int> peers;
    std::vector<Piece> pieces;
    std::vector<After> after;
    // Of a send to one peer: the reception that answers it, when nothing touches these chunks in
    // between. The peer may then put the answer where it is wanted, if it can see that memory.
    std::size_t answer = kNone;
    // Of a send: the reception of the same chunks just before it, from peers that this answers.
    std::size_t answers = kNone;
};

struct Task {
    Call call;
    Settings settings;
    std::vector<Stage> stages;
    std::size_t scratch = 0;      // bytes
    std::size_t input_size = 0;   // bytes that must be there
    std::size_t output_size = 0;  // bytes
    std::shared_ptr<Counts> counts;  // where its calls count; nullptr: nowhere
    std::uint64_t counted = 0;       // bytes of a call there

    // Throws BadInput when plan and layout do not fit together.
    static Task make(const Plan& plan, const Layout& layout, const Settings& settings, Call call);
};

// Where part k of `parts` of `size` bytes begins: on a whole element, and on a whole cache line
// where the parts are much longer than one.
std::size_t cut(std::size_t size, std::size_t item, std::size_t k, std::size_t parts);

}  // namespace roundelay::engine
