// One participant of an exchange: it goes through the stages of a task one after another.
//
// It knows no algorithm. To a participant of its node it shows data in its arena, or where it
// lies already, and reads theirs in place; to others it sends over TCP. Stages are done in order,
// slice by slice; a send never waits for its reader but for room. Why that cannot deadlock is
// told in docs/design/0010-engine.md.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/arena.hpp"
#include "engine/clock.hpp"
#include "engine/counts.hpp"
#include "engine/failure.hpp"
#include "engine/home.hpp"
#include "engine/link.hpp"
#include "engine/node.hpp"
#include "engine/stores.hpp"
#include "engine/task.hpp"
#include "engine/trace.hpp"
#include "reduce/reduce.hpp"

namespace roundelay::engine {

// What the caller's world offers while an exchange waits.
struct Host {
    virtual ~Host() = default;
    virtual void waiting() {}       // a wait has become long
    virtual bool interrupted() { return false; }  // asked now and then
};

struct Names {
    std::vector<std::string> participants;
    std::vector<std::string> collectives;
};

struct Buffers {
    std::byte* input;
    std::byte* output;
    bool in_place;
};

class Endpoint {
 public:
    // `local`: its number in the node. `crowded`: the node has more participants than processors.
    // `home`: the processor it should then be on, or -1.
    Endpoint(std::shared_ptr<Node> node, std::uint32_t local, int participant, Names names,
             bool crowded, int home);
    Endpoint(const Endpoint&) = delete;
    Endpoint& operator=(const Endpoint&) = delete;
    ~Endpoint();

    void meet(int participant, std::uint32_t local);  // one of this node
    void meet(int participant, Link link);            // one of another
    bool knows(int participant) const;

    // Memory that others may read in place, from now on; takes over the descriptor. May be called
    // while another thread is in `run`. Throws BadInput when there is too much.
    void show(int fd, std::byte* memory, std::size_t size);

    // Does the task. `call.sequence` is set here. Throws Failure; after that only `broken` is left.
    void run(Task& task, const Buffers& buffers, std::uint64_t patience_ns, Host& host);

    // Why nothing works any more; empty while it does.
    std::string broken() const { return broken_ ? broken_->what() : ""; }
    bool failed() const { return page().failed.load() != 0; }  // from any thread
    // Tells the others that something has gone wrong here.
    [[noreturn]] void fail(const Failure& failure);
    // Says farewell: others that still wait for this participant are told.
    void close();

    void trace(std::size_t events);  // 0: no more
    const Trace* traced() const { return trace_.get(); }
    std::vector<CallRecord::Read> last_calls() const;  // oldest first
    // Participants of this node that have not come to the latest call; from any thread.
    std::vector<int> absent() const;
    std::string describe(const Call& call) const;

    // [participant], from the start on; any thread may read.
    const std::vector<Waits>& waits() const { return waits_; }
    // Of the calls up to number `calls()`; those after a failure are not there.
    const Spans& spans() const { return spans_; }
    std::uint64_t calls() const { return sequence_; }

 private:
    struct Pool {
        std::byte* base = nullptr;
        std::size_t size = 0;
    };
    struct Mapped {
        std::uint32_t index;  // among those of the node
        int participant;
        Page* page;
        Line* out;
        Line* in;
        std::atomic<std::uint64_t>* out_taken;
        std::atomic<std::uint64_t>* in_taken;
        Counter* cost_out;
        Counter* cost_in;
        const std::byte* arena;
        int pidfd;
        std::uint64_t sent = 0;
        std::uint64_t got = 0;
        std::uint64_t seen_taken = 0;
        std::vector<Pool> pools;
    };
    struct Linked {
        int participant;
        Link link;
        bool left = false;  // it has said farewell
    };
    struct Route {
        Mapped* mapped = nullptr;
        Linked* linked = nullptr;
    };
    // A message that a reader takes from where it lies.
    struct Lent {
        Mapped* reader;
        std::uint64_t message;
        std::uint32_t* open;
    };
    // A copy of what is sent, where that is overwritten at once or does not fit into the arena.
    struct Stash {
        std::vector<std::byte> bytes;
        std::uint32_t open = 0;  // readers that still read it
    };
    // A message that has come: in memory, or in another process.
    struct Arrived {
        const std::byte* data = nullptr;
        std::uint64_t address = 0;
        Mapped* from = nullptr;
        Way way = Way::cached;
        bool placed = false;           // it is where it is wanted already
        std::byte* answer = nullptr;   // where an answer may be put
    };
    struct Run {
        Task& task;
        const Buffers& buffers;
        Host& host;
        std::uint64_t patience_ns;
        std::byte* spaces[kSpaces];
    };

    void send(Run& run, std::size_t index, std::size_t slice);
    void send_mapped(Run& run, std::size_t index, std::size_t slice, std::size_t size,
                     std::uint32_t* still_open);
    void place_answers(Run& run, std::size_t size);
    void send_linked(Run& run, const Stage& stage, std::size_t size, std::uint32_t* still_open);
    bool lend(Run& run, const Stage& stage, std::size_t slice, std::size_t size,
              std::uint32_t* still_open);
    Stash& keep(std::size_t size);
    bool find_shown(const std::byte* data, std::size_t size, std::uint64_t& pool,
                    std::uint64_t& offset) const;
    void publish(Run& run, std::size_t size);
    void put(Run& run, Mapped& to, Where where, Way way, const void* bytes, std::size_t size);

    void receive(Run& run, std::size_t index, std::size_t slice);
    void keep_answers(std::size_t index, std::size_t slice);
    void copy_own(const Run& run);
    void copy_in(Run& run, const Stage& stage, std::size_t size);
    void reduce_in(Run& run, const Stage& stage, std::size_t size);
    Arrived take_mapped(Run& run, Mapped& from, std::size_t size);
    void take_linked(Run& run, int peer, std::span<const Span> into, std::size_t size);
    void taken(const Arrived& message);
    void measured(const Arrived& message, std::uint64_t cost, std::size_t size);
    void attach(const Arrived& message, std::span<const Span> into);
    std::byte* pool(Mapped& of, std::uint64_t number);

    std::size_t cut_pieces(Run& run, const Stage& stage, std::size_t slice);
    std::uint32_t* open(const Task& task, std::size_t stage, std::size_t slice);
    void go(Run& run);
    void reap();
    void settle();
    void finish(Run& run);

    template <class Ready>
    void await(Run& run, Ready&& ready, int participant) {
        bool spun = false;
        for (std::uint32_t i = 0; i < spins_ && !spun; ++i) {
            relax();
            spun = ready();
        }
        if (!spun) await_long(run, ready, participant);
        if (trace_) ready_ = now();
    }
    void await_long(Run& run, const std::function<bool()>& ready, int participant);
    void sleep(int participant, const std::function<bool()>& ready);
    static void wake(const Mapped& peer);

    void check_others();
    void check_alive(int participant);
    int awaited(int participant) const;
    int behind() const;
    bool has_left(int participant) const;
    void hear(Run& run);
    void compare(Run& run);
    void note(const Failure& failure);
    [[noreturn]] void lost(int participant);
    [[noreturn]] void wrong_call(Run& run, int participant, const Call& other);
    [[noreturn]] void too_late(Run& run, int participant);
    std::string name(int participant) const;
    Page& page() const { return node_->page(local_); }

    std::shared_ptr<Node> node_;
    std::uint32_t local_;
    int participant_;
    Names names_;
    std::uint32_t spins_;
    Home home_;
    std::vector<Route> routes_;
    std::vector<std::unique_ptr<Mapped>> mapped_;
    std::vector<std::unique_ptr<Linked>> linked_;
    Arena arena_;
    std::size_t window_;
    Stores stores_;
    const reduce::Isa& isa_;
    std::uint64_t sequence_ = 0;
    std::uint64_t stamp_ = 0;  // the call's signature, where it stands in a line
    std::uint32_t failures_seen_ = 0;
    std::optional<Failure> broken_;
    std::vector<Waits> waits_;
    Spans spans_;
    std::vector<std::byte> scratch_;
    std::vector<std::uint32_t> open_;  // [stages, slices] readers that still read there
    std::vector<Lent> lent_;
    std::deque<Stash> stash_;  // they stay where they are: readers count down in them
    std::vector<std::vector<std::byte>> staging_;  // [sources of a stage]
    std::vector<Arrived> arrived_;                 // [sources of a stage]
    std::vector<const std::byte*> sources_;        // [sources of a stage]
    std::vector<Span> cut_;                        // the pieces of a slice, where they lie
    std::vector<Span> homes_;                      // and where they are written
    std::array<Pool, kPools> shown_;  // as many as the page says
    std::vector<Mapped*> readers_;  // of a send, in this node
    // Where the peers of the last reception want its result.
    std::vector<std::pair<Mapped*, std::byte*>> answers_;
    std::size_t answers_stage_ = kNone;
    std::size_t answers_slice_ = 0;
    std::unique_ptr<Trace> trace_;
    std::uint64_t ready_ = 0;  // when the last wait ended; only while tracing
};

}  // namespace roundelay::engine
