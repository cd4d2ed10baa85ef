// Ranks as threads of one process, for the thread sanitizer: tests/test_engine_threads.py.
//
//     engine_threads [OPERATIONS [SEED]]
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <thread>

#include "engine/endpoint.hpp"
#include "engine/threads_job.hpp"
#include "engine/threads_plans.hpp"

namespace roundelay::engine {
namespace {

using by_hand::Job;
using by_hand::kArena;
using by_hand::kMemory;
using by_hand::Made;
using by_hand::stop;
using std::chrono::milliseconds;

constexpr std::uint64_t kPatience = 60'000'000'000;

enum class Kind { one_shot, two_shot, doubling, all_gather, ring, all_to_all, broadcast, scattered,
                  shown_twice };
constexpr int kDrawn = 8;  // kinds that run with any number of ranks

struct Operation {
    Kind kind;
    std::int64_t size;  // elements of a piece
    int root = 0;
    bool in_place = false;
    bool shown = false;
    Settings settings{};
    std::uint64_t number = 0;
    int late = -1;  // a rank that comes late
};

bool is_all_reduce(Kind kind) { return kind <= Kind::doubling; }
bool is_all_gather(Kind kind) { return kind == Kind::all_gather || kind == Kind::ring; }

Operation draw(std::mt19937& random, int ranks, std::uint64_t number) {
    const auto below = [&](std::uint32_t n) { return static_cast<int>(random() % n); };
    Operation op{static_cast<Kind>(below(kDrawn)), 0};
    if (op.kind == Kind::doubling && (ranks & (ranks - 1)) != 0) op.kind = Kind::two_shot;
    const std::uint32_t most[] = {14, 14, 3000, 3000, 25'000};
    op.size = below(most[below(5)]);
    if (below(16) == 0 && op.kind <= Kind::doubling) op.size += 100'000;
    op.root = below(static_cast<std::uint32_t>(ranks));
    op.in_place = below(2) == 0 && (is_all_reduce(op.kind) || is_all_gather(op.kind));
    op.shown = below(2) == 0;
    op.number = number;
    op.settings.type = reduce::Type::int32;
    if (below(4) == 0) {  // in one slice, large messages from the sender's memory
        op.settings.attach_from = kArena / 2 / static_cast<std::size_t>(ranks);
        if (op.kind == Kind::scattered) op.size *= 10;
    } else {
        const std::size_t sent = static_cast<std::size_t>(op.size) * 4 *
                                 (is_all_reduce(op.kind) ? 2 : static_cast<std::size_t>(ranks));
        const std::size_t fit = (2 * sent + kArena - 1) / kArena;
        op.settings.slices = std::max(fit, static_cast<std::size_t>(1 + below(3)));
        op.settings.lag = static_cast<std::size_t>(below(2));
    }
    return op;
}

Made make(const Operation& op, int me, int n) {
    switch (op.kind) {
        case Kind::one_shot: return by_hand::one_shot(me, n, op.size);
        case Kind::two_shot: return by_hand::two_shot(me, n, op.size);
        case Kind::doubling: return by_hand::doubling(me, n, op.size);
        case Kind::all_gather: return by_hand::all_gather(me, n, op.size);
        case Kind::ring: return by_hand::ring(me, n, op.size);
        case Kind::all_to_all: return by_hand::all_to_all(me, n, op.size);
        case Kind::broadcast: return by_hand::broadcast(me, n, op.size, op.root);
        case Kind::scattered: return by_hand::scattered(me, n, op.size);
        case Kind::shown_twice: return by_hand::shown_twice(me, n, op.size);
    }
    std::abort();
}

// Element i of what a rank brings.
std::int32_t value(const Operation& op, int rank, std::int64_t i) {
    return static_cast<std::int32_t>((i * 7 + rank * 10'007 + static_cast<std::int64_t>(op.number) * 131) & 0xFFFFF);
}

// Element i of what it must get.
std::int32_t expected(const Operation& op, int me, int n, std::int64_t i) {
    const std::int64_t size = op.size;
    if (op.kind == Kind::shown_twice) {
        if (me == 2 || i >= size / 2) return value(op, 0, i);
        return value(op, 0, i) + value(op, 1, i);
    }
    if (is_all_reduce(op.kind)) {
        std::int32_t sum = 0;
        for (int r = 0; r < n; ++r) sum += value(op, r, i);
        return sum;
    }
    const auto piece = static_cast<int>(i / size);
    if (is_all_gather(op.kind)) return value(op, piece, i % size);
    if (op.kind == Kind::all_to_all) return value(op, piece, me * size + i % size);
    if (op.kind == Kind::broadcast) return value(op, op.root, i);
    return value(op, (me - 1 + n) % n, 2 * piece * size + i % size);
}

// Elements of input and output.
std::pair<std::int64_t, std::int64_t> sizes(const Operation& op, int me, int n) {
    if (op.kind == Kind::scattered) return {4 * op.size, 2 * op.size};
    if (op.kind == Kind::all_to_all) return {n * op.size, n * op.size};
    if (op.kind == Kind::broadcast) return {op.size, me == op.root ? 0 : op.size};
    if (op.kind == Kind::shown_twice) return {op.size, me == 1 ? op.size / 2 : op.size};
    return {op.size, is_all_gather(op.kind) ? n * op.size : op.size};
}

void perform(Job& job, int me, const Operation& op) {
    const int n = job.ranks;
    const auto rank = static_cast<std::size_t>(me);
    const Made made = make(op, me, n);
    const auto [given, got] = sizes(op, me, n);
    std::byte* base = op.shown ? job.shown[rank] : job.own[rank].data();
    auto* output = reinterpret_cast<std::int32_t*>(base + kMemory / 2);
    std::int32_t* input = reinterpret_cast<std::int32_t*>(base);
    if (op.in_place) input = is_all_gather(op.kind) ? output + me * op.size : output;
    std::fill_n(output, got, -1);
    for (std::int64_t i = 0; i < given; ++i) input[i] = value(op, me, i);
    if (op.late == me) std::this_thread::sleep_for(milliseconds(50));

    Call call;
    call.elements = static_cast<std::uint64_t>(op.size);
    call.plan = static_cast<std::uint32_t>(op.kind);
    Task task = Task::make(made.plan, {made.input, made.output, made.length}, op.settings, call);
    Host host;
    job.at(me).run(task, {reinterpret_cast<std::byte*>(input), reinterpret_cast<std::byte*>(output),
                          op.in_place}, kPatience, host);
    for (std::int64_t i = 0; i < got; ++i) {
        if (output[i] == expected(op, me, n, i)) continue;
        stop("operation " + std::to_string(op.number) + ", kind " + std::to_string(call.plan) +
             ", size " + std::to_string(op.size) + ", rank " + std::to_string(me) + ": element " +
             std::to_string(i) + " is " + std::to_string(output[i]) + " for " +
             std::to_string(expected(op, me, n, i)));
    }
}

template <class Body>
void in_threads(Job& job, Body&& body) {
    std::vector<std::thread> threads;
    for (int r = 0; r < job.ranks; ++r) threads.emplace_back([&body, r] { body(r); });
    for (std::thread& thread : threads) thread.join();
}

// Many operations in a row; meanwhile this thread looks on, and shows more memory.
void random_operations(const std::string& nodes, std::uint64_t count, std::uint32_t seed) {
    Job job(nodes);
    job.at(0).trace(64);
    std::atomic<bool> ended{false};
    std::thread onlooker([&] {
        for (int k = 0; !ended; ++k) {
            for (auto& endpoint : job.endpoints) (void)endpoint->last_calls();
            if (k < 40) job.show(k % job.ranks, 4096);
            std::this_thread::sleep_for(milliseconds(1));
        }
    });
    in_threads(job, [&](int me) {
        std::mt19937 random(seed);
        for (std::uint64_t k = 0; k < count; ++k) perform(job, me, draw(random, job.ranks, k));
    });
    ended = true;
    onlooker.join();
    std::printf("%s: %llu operations\n", nodes.c_str(), static_cast<unsigned long long>(count));
}

// Exchanges over links that are larger than the sockets' room, written over by the same step.
void over_itself() {
    Job job("abcd");
    Operation op{Kind::doubling, 300'000};
    op.in_place = true;
    op.settings.type = reduce::Type::int32;
    in_threads(job, [&](int me) { perform(job, me, op); });
}

// An answer must not be put where a slow third rank still reads.
void read_by_two() {
    Job job("aaa");
    Operation op{Kind::shown_twice, 20'000};
    op.in_place = op.shown = true;
    op.settings.type = reduce::Type::int32;
    op.late = 2;
    in_threads(job, [&](int me) { perform(job, me, op); });
}

// One rank leaves after some operations, by `leave`; all others get the failure.
template <class Leave>
void without_one(const std::string& nodes, Trouble trouble, Leave&& leave) {
    Job job(nodes);
    std::atomic<int> told{0};
    in_threads(job, [&](int me) {
        std::mt19937 random(5);
        try {
            for (std::uint64_t k = 0; k < 20; ++k) perform(job, me, draw(random, job.ranks, k));
            if (me == 1) return leave(job.at(1));
            Operation op{Kind::one_shot, 1000};
            op.settings.type = reduce::Type::int32;
            perform(job, me, op);
        } catch (const Failure& failure) {
            if (failure.trouble() != trouble || failure.participant() != 1) stop(failure.what());
            if (job.at(me).broken().empty()) stop("not broken");
            ++told;
        }
    });
    if (told != job.ranks - 1) stop(nodes + ": " + std::to_string(told) + " ranks were told");
}

int main_of(int count, char** arguments) {
    const auto number = [&](int k, int otherwise) {
        return k < count ? std::atoi(arguments[k]) : otherwise;
    };
    const auto operations = static_cast<std::uint64_t>(number(1, 300));
    const auto seed = static_cast<std::uint32_t>(number(2, 1));
    for (const char* nodes : {"aa", "aaaa", "abab", "aab"}) {
        random_operations(nodes, operations, seed);
    }
    over_itself();
    read_by_two();
    const auto close = [](Endpoint& endpoint) { endpoint.close(); };
    const auto give_up = [](Endpoint& endpoint) {
        try {
            endpoint.fail({Trouble::interrupted, 1, "rank 1 gives up"});
        } catch (const Failure&) {
        }
    };
    for (const char* nodes : {"aaa", "abc", "aab"}) {
        without_one(nodes, Trouble::lost, close);
        without_one(nodes, Trouble::interrupted, give_up);
    }
    std::printf("all well\n");
    return 0;
}

}  // namespace
}  // namespace roundelay::engine

int main(int count, char** arguments) { return roundelay::engine::main_of(count, arguments); }
