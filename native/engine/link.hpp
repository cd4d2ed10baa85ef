// The stream of messages to and from a participant of another node, over TCP connections.
//
// Message k goes over connection k modulo their number, behind a header, and is taken in that
// order. A connection of its own carries what is said about the exchange: farewells and failures.
// Where both ends ask for it, messages and words carry check sums: one of the header, one of what
// follows it.
#pragma once

#include <sys/uio.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/call.hpp"
#include "engine/checksum.hpp"
#include "engine/sockets.hpp"

namespace roundelay::engine {

struct Span {
    std::byte* data;
    std::size_t size;
};

// Something said on the connection for it.
struct Word {
    enum class Kind : std::uint8_t { farewell = 1, failure = 2, waiting = 3 };
    Kind kind = Kind::farewell;
    std::int32_t blamed = -1;
    std::int32_t trouble = 0;
    std::string text;
    Call call;  // in which it waits
};

class Link {
   public:
    // Takes over the connections: the first is for words. `checked`: with check sums.
    explicit Link(std::vector<int> connections, bool checked = false);
    Link(Link&& other) noexcept;
    Link(const Link&) = delete;
    Link& operator=(const Link&) = delete;
    Link& operator=(Link&&) = delete;
    ~Link();

    // Sends what lies in `parts`. True when it has left; else `*open` is raised by one and lowered
    // when it has, and the memory must stay as it is until then.
    bool send(const Call& call, std::span<const iovec> parts, std::size_t size,
              std::uint32_t* open);

    // Takes more of the next message, into the spans. True when all of it is there.
    // `other` is set when it belongs to another call than this one or has another size.
    bool receive(const Call& call, std::span<const Span> into, std::size_t size,
                 std::optional<Call>& other);

    void pump();                    // sends more of what waits
    bool idle() const { return waiting_ == 0; }  // nothing waits to be sent
    bool lost() const { return lost_; }
    // Why it is lost, as errno; 0: the peer closed it; kChanged: not what the peer has sent came.
    int error() const { return error_; }
    static constexpr int kChanged = EBADMSG;
    std::optional<Word> hear();     // what has been said, if anything
    // The same; waits for it until a moment of now(), or until nothing more can be said.
    std::optional<Word> hear_until(std::uint64_t moment);
    void say(const Word& word);     // as far as it goes without waiting
    void end();                     // no more messages: the peer sees it after all before

    // Descriptors worth waiting for: one to read from (where the next message comes in), and
    // those on which something waits to be sent.
    int next_in() const;
    void waiting_out(std::vector<int>& descriptors) const;
    int words() const { return words_; }

   private:
    struct Header {
        std::uint32_t magic;
        std::uint32_t sum;  // of the header, in which it counts as 0; or 0: there are no sums
        std::uint64_t size;
        Call call;
        std::uint32_t body;  // sum of the bytes that follow; or 0
        std::uint32_t spare;
    };
    static_assert(sizeof(Header) == 56);
    static constexpr std::uint32_t kMagic = 0x4C444E52;

    template <class AnyHeader>
    static std::uint32_t sum_of(AnyHeader header) {
        header.sum = 0;
        return crc32c(0, &header, sizeof(header));
    }

    struct Outgoing {
        Header header;
        std::vector<iovec> parts;  // the header first
        std::size_t at = 0;        // part under way
        std::uint32_t* open = nullptr;
    };
    struct Connection {
        int fd;
        std::deque<Outgoing> out;
        Header header{};
        std::size_t header_got = 0;
    };

    bool push(Connection& connection, Outgoing& message);
    std::size_t read(int fd, iovec* parts, std::size_t count);
    void add(const iovec* parts, std::size_t size);
    void lose(int error);
    static bool try_again(int error) {
        return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
    }
    void watch_words();
    std::optional<Word> next_word();
    std::nullopt_t unreadable(int error);
    void flush_words();

    Sockets sockets_;
    bool checked_;
    std::vector<Connection> connections_;
    int words_ = -1;
    std::string heard_;
    std::string unsaid_;
    std::uint64_t sent_ = 0;
    std::uint64_t received_ = 0;
    std::size_t got_ = 0;  // bytes of the message under way
    std::uint32_t sum_ = 0;  // of these
    std::size_t waiting_ = 0;
    bool lost_ = false;
    bool mute_ = false;  // nothing more comes from the connection for words
    int error_ = 0;
};

}  // namespace roundelay::engine
