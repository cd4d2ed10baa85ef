// Plans made by hand for the test with threads: what one rank does, and where its pieces lie.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/plan.hpp"

namespace roundelay::engine::by_hand {

struct Made {
    Plan plan;
    std::vector<std::int64_t> input, output, length;  // [pieces]
};

using Peers = std::vector<int>;
using Segments = std::vector<Segment>;
using Afters = std::vector<After>;

inline Entry sends(std::int64_t step, Peers peers, Segments segments, Bounce bounce = Bounce::no) {
    return {true, bounce, step, std::move(peers), std::move(segments), {}};
}
inline Entry receives(std::int64_t step, Peers peers, Segments segments, Afters after = {}) {
    return {false, Bounce::no, step, std::move(peers), std::move(segments), std::move(after)};
}

// Chunk c, where it lies as input and is written to the output.
inline Segments fresh(std::int64_t c) { return {{c, 1, Space::input, Space::output}}; }
inline Segments done(std::int64_t c) { return {{c, 1, Space::output, Space::output}}; }

inline Peers others(int me, int n) {
    Peers found;
    for (int k = 1; k < n; ++k) found.push_back((me + k) % n);
    return found;
}
inline Peers all_with_own(int me, int n) {
    Peers found;
    for (int r = 0; r < n; ++r) found.push_back(r == me ? kOwn : r);
    return found;
}

// `pieces` pieces of `size`, in the output one after another; of the input only number `own`.
inline Made pieces(int pieces, std::int64_t size, int own) {
    Made made{{pieces, 2, {}}, {}, {}, {}};
    for (int p = 0; p < pieces; ++p) {
        made.input.push_back(p == own ? 0 : -1);
        made.output.push_back(p * size);
        made.length.push_back(size);
    }
    return made;
}

// All-reduce: everybody adds up everything, in rank order.
inline Made one_shot(int me, int n, std::int64_t size) {
    Made made = pieces(1, size, 0);
    made.plan.entries = {sends(0, others(me, n), fresh(0), Bounce::in_place),
                         receives(0, all_with_own(me, n), fresh(0), {{0, true}})};
    return made;
}

// All-reduce: everybody adds up one chunk and hands it round.
inline Made two_shot(int me, int n, std::int64_t size) {
    Made made = pieces(1, size, 0);
    made.plan.chunks = n;
    auto& entries = made.plan.entries;
    for (const int r : others(me, n)) entries.push_back(sends(0, {r}, fresh(r)));
    entries.push_back(receives(0, all_with_own(me, n), fresh(me)));
    entries.push_back(sends(1, others(me, n), done(me)));
    std::size_t sent = 0;
    for (const int r : others(me, n)) {
        entries.push_back(receives(1, {r}, fresh(r), {{sent++, true}}));
    }
    return made;
}

// All-reduce of 2 or 4 ranks: pairs exchange what they have, and write over it in the same step.
inline Made doubling(int me, int n, std::int64_t size) {
    Made made = pieces(1, size, 0);
    for (int step = 0; 1 << step < n; ++step) {
        const int peer = me ^ 1 << step;
        const Segments chunk = step == 0 ? fresh(0) : done(0);
        const auto sent = made.plan.entries.size();
        made.plan.entries.push_back(
            sends(step, {peer}, chunk, step == 0 ? Bounce::in_place : Bounce::always));
        made.plan.entries.push_back(receives(
            step, peer < me ? Peers{peer, kOwn} : Peers{kOwn, peer}, chunk, {{sent, step == 0}}));
    }
    return made;
}

inline Made all_gather(int me, int n, std::int64_t size) {
    Made made = pieces(n, size, me);
    made.plan.entries = {sends(0, others(me, n), fresh(me)), receives(0, {kOwn}, fresh(me))};
    for (const int r : others(me, n)) made.plan.entries.push_back(receives(0, {r}, done(r)));
    return made;
}

inline Made ring(int me, int n, std::int64_t size) {
    Made made = pieces(n, size, me);
    made.plan.steps = n;
    for (int k = 0; k + 1 < n; ++k) {
        const int chunk = (me - k + n) % n;
        const int next = (me - k - 1 + n) % n;
        const Segments from = k == 0 ? fresh(chunk) : done(chunk);
        made.plan.entries.push_back(sends(k, {(me + 1) % n}, from));
        if (k == 0) made.plan.entries.push_back(receives(0, {kOwn}, fresh(me)));
        made.plan.entries.push_back(receives(k, {(me - 1 + n) % n}, done(next)));
    }
    return made;
}

// Chunk n * a + b goes from a to b.
inline Made all_to_all(int me, int n, std::int64_t size) {
    Made made = pieces(n * n, size, -1);
    for (int r = 0; r < n; ++r) {
        made.input[static_cast<std::size_t>(n * me + r)] = r * size;
        made.output[static_cast<std::size_t>(n * r + me)] = r * size;
    }
    auto& entries = made.plan.entries;
    for (const int r : others(me, n)) entries.push_back(sends(0, {r}, fresh(n * me + r)));
    entries.push_back(receives(0, {kOwn}, fresh(n * me + me)));
    for (const int r : others(me, n)) entries.push_back(receives(0, {r}, done(n * r + me)));
    return made;
}

inline Made broadcast(int me, int n, std::int64_t size, int root) {
    Made made = pieces(1, size, me == root ? 0 : -1);
    if (me == root) {
        made.plan.entries = {sends(0, others(me, n), fresh(0))};
    } else {
        made.plan.entries = {receives(0, {root}, done(0))};
    }
    return made;
}

// Every rank has four pieces and sends two that lie apart, in one message, to the next rank.
inline Made scattered(int me, int n, std::int64_t size) {
    Made made = pieces(4 * n, size, -1);
    const int before = (me - 1 + n) % n;
    for (int k = 0; k < 4; ++k) {
        made.input[static_cast<std::size_t>(4 * me + k)] = k * size;
        made.output[static_cast<std::size_t>(4 * before + k)] = k / 2 * size;
    }
    const auto two = [](std::int64_t rank, Space space) {
        return Segments{{4 * rank, 1, space, Space::output}, {4 * rank + 2, 1, space, Space::output}};
    };
    made.plan.entries = {sends(0, {(me + 1) % n}, two(me, Space::input)),
                         receives(0, {before}, two(before, Space::output))};
    return made;
}

// Rank 0 shows its two chunks to rank 2 and the first to rank 1, which answers with a sum.
inline Made shown_twice(int me, int, std::int64_t size) {
    Made made = pieces(1, size, 0);
    made.plan.chunks = 2;
    const Segments both{{0, 2, Space::input, Space::output}};
    if (me == 0) {
        made.plan.entries = {sends(0, {2}, both), sends(0, {1}, fresh(0)),
                             receives(1, {1}, fresh(0), {{0, true}, {1, true}})};
    } else if (me == 1) {
        made.plan.entries = {receives(0, {kOwn, 0}, fresh(0)), sends(1, {0}, done(0))};
    } else {
        made.plan.entries = {receives(0, {0}, both)};
    }
    return made;
}

}  // namespace roundelay::engine::by_hand
