// The memory that the participants of one node share.
//
// Each participant has an *area*: a page that says who it is and how it fares, and an arena into
// which it puts what others are to read. Each ordered pair has a *stream* of flag lines: line k
// says that message k is there, and holds it (up to 56 bytes) or says where it lies. So a piece
// is put into the arena once, whatever the number of its readers, and a small one takes a single
// cache line from writer to reader. Readers count what they have taken in a line of their own.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>

#include "engine/call.hpp"

namespace roundelay::engine {

inline constexpr std::size_t kLine = 64;
inline constexpr std::size_t kPage = 4096;
inline constexpr std::uint32_t kDepth = 64;       // lines of a stream
inline constexpr std::size_t kInLine = 56;        // bytes that fit into a line
inline constexpr std::uint32_t kCallsKept = 16;   // last calls of a participant
inline constexpr std::uint32_t kPools = 60;       // blocks of memory that a participant shows

// Where a message lies.
enum class Where : std::uint8_t { line, arena, pool, process, placed };

struct alignas(kLine) Line {
    // Low half: message number. Then 16 bits of the call's signature, 8 of Where, one that says
    // how it was stored, and the bytes in the line itself.
    std::atomic<std::uint64_t> stamp;
    union {
        std::byte bytes[kInLine];
        struct {
            std::uint64_t offset;  // in the arena or pool; an address where readers attach
            std::uint64_t size;
            std::uint64_t pool;
            std::uint64_t answer_pool;  // where an answer may be put: 1 + pool; 0: nowhere
            std::uint64_t answer_offset;
        } at;
    };
};
static_assert(sizeof(Line) == kLine);

struct alignas(kLine) Counter {
    std::atomic<std::uint64_t> value;
};

inline constexpr std::uint64_t kSignatureBits = std::uint64_t{0xFFFF} << 32;

enum class State : std::uint32_t { absent, here, closed };

// A call of a participant, which others may read while it is written.
class alignas(kLine) CallRecord {
   public:
    void begin(const Call& call, std::uint64_t ticks) {
        begun_.store(0, std::memory_order_relaxed);
        ended_.store(0, std::memory_order_relaxed);
        std::uint64_t words[kWords];
        std::memcpy(words, &call, sizeof(Call));
        for (std::size_t i = 0; i < kWords; ++i) words_[i].store(words[i], std::memory_order_release);
        begun_.store(ticks, std::memory_order_release);
    }
    void end(std::uint64_t ticks) { ended_.store(ticks, std::memory_order_release); }

    // The call, and when it began and ended (0: not yet). Nothing where it is being written.
    struct Read {
        Call call;
        std::uint64_t begun, ended;
    };
    std::optional<Read> read() const {
        Read found{};
        found.begun = begun_.load(std::memory_order_acquire);
        std::uint64_t words[kWords];
        for (std::size_t i = 0; i < kWords; ++i) words[i] = words_[i].load(std::memory_order_acquire);
        found.ended = ended_.load(std::memory_order_acquire);
        if (found.begun == 0 || begun_.load(std::memory_order_relaxed) != found.begun) return {};
        std::memcpy(&found.call, words, sizeof(Call));
        return found;
    }

   private:
    static constexpr std::size_t kWords = sizeof(Call) / sizeof(std::uint64_t);
    std::atomic<std::uint64_t> words_[kWords];
    std::atomic<std::uint64_t> begun_;  // ticks; 0: being written
    std::atomic<std::uint64_t> ended_;  // ticks
};

// How a participant fares. It alone writes here, but for `bell`.
struct alignas(kPage) Page {
    std::atomic<std::uint32_t> state;
    std::atomic<std::int32_t> pid;
    std::atomic<std::uint32_t> failed;  // set last, when the text stands
    std::int32_t blamed;                // participant; -1: nobody
    std::int32_t trouble;
    char text[1000];
    alignas(kLine) std::atomic<std::uint32_t> asleep;
    alignas(kLine) std::atomic<std::uint32_t> bell;  // rung to wake it
    CallRecord calls[kCallsKept];
    std::atomic<std::uint32_t> pools;
    struct {
        std::int32_t fd;
        std::uint64_t size;
    } pool[kPools];
};
static_assert(sizeof(Page) == kPage);

struct alignas(kPage) Header {
    std::uint64_t magic;
    std::uint32_t participants;
    std::uint64_t arena;
    alignas(kLine) std::atomic<std::uint32_t> failures;  // participants that have failed
};

class Node {
   public:
    static std::size_t size(std::uint32_t participants, std::size_t arena);

    // Makes the memory of a new node, of zeros, behind a file descriptor of nobody else. Where
    // there is not enough of it, the arena is made smaller; throws BadInput below 64 KiB.
    static Node make(std::uint32_t participants, std::size_t arena);
    // Opens it, as another process of the same node.
    static Node open(int pid, int fd);

    Node(Node&& other) noexcept;
    Node(const Node&) = delete;
    Node& operator=(const Node&) = delete;
    Node& operator=(Node&&) = delete;
    ~Node();

    int fd() const { return fd_; }
    std::uint32_t participants() const { return header().participants; }
    std::size_t arena_size() const { return header().arena; }
    std::atomic<std::uint32_t>& failures() const { return header().failures; }

    Page& page(std::uint32_t of) const;
    std::span<std::byte> arena(std::uint32_t of) const;
    Line* stream(std::uint32_t from, std::uint32_t to) const;  // [kDepth]
    // Messages of the stream that its reader has taken.
    std::atomic<std::uint64_t>& taken(std::uint32_t from, std::uint32_t to) const;

    // The reader's cost of messages of the stream, per way in which they were stored.
    Counter* read_cost(std::uint32_t from, std::uint32_t to) const;  // [2]

    // Takes the memory of a participant's own arena. Throws BadInput.
    void claim(std::uint32_t own) const;
    // Maps all of it now, when all have claimed theirs: at first use a page costs microseconds.
    void populate() const;

   private:
    Node(int fd, std::byte* base, std::size_t size) : fd_(fd), base_(base), size_(size) {}
    Header& header() const { return *reinterpret_cast<Header*>(base_); }

    int fd_;
    std::byte* base_;
    std::size_t size_;
};

}  // namespace roundelay::engine
