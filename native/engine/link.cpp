#include "engine/link.hpp"

#include "engine/failure.hpp"
#include "errors.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace roundelay::engine {
namespace {

constexpr std::uint32_t kMagic = 0x4C444E52;
constexpr std::size_t kMostParts = 64;    // of one call to the kernel
constexpr std::size_t kMostText = 4096;   // of a word
constexpr std::size_t kMostUnsaid = 16384;  // bytes of words that may wait

// A peer whose machine answers nothing for so long is lost.
constexpr int kSilenceMs = 10'000;
constexpr int kProbeFromS = 4;   // of silence
constexpr int kProbeEveryS = 2;
constexpr int kProbes = 3;

struct WordHeader {
    std::uint32_t magic;
    std::uint8_t kind;
    std::uint8_t spare[3];
    std::int32_t blamed;
    std::int32_t trouble;
    std::uint32_t length;
    Call call;
};

bool again(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

// Have the kernel tell when the other end's machine, or the network, is gone without a word. Only
// for a connection of few bytes: where a peer is too busy to read, one for data stands still for
// as long, and that is no fault.
void watch(int fd) {
    const auto set = [fd](int level, int option, int value) {
        setsockopt(fd, level, option, &value, sizeof(value));
    };
    set(SOL_SOCKET, SO_KEEPALIVE, 1);
    set(IPPROTO_TCP, TCP_KEEPIDLE, kProbeFromS);
    set(IPPROTO_TCP, TCP_KEEPINTVL, kProbeEveryS);
    set(IPPROTO_TCP, TCP_KEEPCNT, kProbes);
    set(IPPROTO_TCP, TCP_USER_TIMEOUT, kSilenceMs);
}

}  // namespace

Link::Link(std::vector<int> connections) : sockets_(connections) {
    if (connections.size() < 2) throw BadInput("a link takes two connections or more");
    words_ = connections.front();
    for (const int fd : connections) fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    for (std::size_t i = 1; i < connections.size(); ++i) {
        connections_.push_back(Connection{connections[i], {}, {}, 0});
    }
    watch(words_);
}

Link::Link(Link&& other) noexcept = default;

Link::~Link() = default;

bool Link::send(const Call& call, std::span<const iovec> parts, std::size_t size,
                std::uint32_t* open) {
    Connection& connection = connections_[sent_++ % connections_.size()];
    Outgoing message{{kMagic, 0, size, call}, {}, 0, open};
    message.parts.reserve(parts.size() + 1);
    message.parts.push_back({&message.header, sizeof(Header)});
    message.parts.insert(message.parts.end(), parts.begin(), parts.end());
    if (connection.out.empty() && push(connection, message)) return true;
    const std::size_t header_left = message.at == 0 ? message.parts[0].iov_len : 0;
    connection.out.push_back(std::move(message));
    Outgoing& kept = connection.out.back();
    if (header_left > 0) {  // the header has moved
        kept.parts[0] = {reinterpret_cast<std::byte*>(&kept.header) + sizeof(Header) - header_left,
                         header_left};
    }
    ++*open;
    ++waiting_;
    return false;
}

// True when all of it has left, or the peer is lost.
bool Link::push(Connection& connection, Outgoing& message) {
    while (message.at < message.parts.size()) {
        msghdr out{};
        out.msg_iov = &message.parts[message.at];
        out.msg_iovlen = std::min(message.parts.size() - message.at, kMostParts);
        const ssize_t n = sendmsg(connection.fd, &out, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0) {
            if (errno == EINTR) continue;
            if (again(errno)) return false;
            lose(errno);
            return true;
        }
        auto left = static_cast<std::size_t>(n);
        while (message.at < message.parts.size() && left >= message.parts[message.at].iov_len) {
            left -= message.parts[message.at++].iov_len;
        }
        if (left > 0) {
            iovec& part = message.parts[message.at];
            part.iov_base = static_cast<std::byte*>(part.iov_base) + left;
            part.iov_len -= left;
        }
    }
    return true;
}

void Link::pump() {
    if (!unsaid_.empty()) flush_words();
    if (waiting_ == 0) return;
    for (Connection& connection : connections_) {
        while (!connection.out.empty() && push(connection, connection.out.front())) {
            --*connection.out.front().open;
            --waiting_;
            connection.out.pop_front();
        }
    }
}

// Bytes read; 0 where there are none yet.
std::size_t Link::read(int fd, iovec* parts, std::size_t count) {
    msghdr in{};
    in.msg_iov = parts;
    in.msg_iovlen = std::min(count, kMostParts);
    const ssize_t n = recvmsg(fd, &in, MSG_DONTWAIT);
    if (n > 0) return static_cast<std::size_t>(n);
    if (n == 0 || !again(errno)) lose(n == 0 ? 0 : errno);
    return 0;
}

void Link::lose(int error) {
    if (!lost_) error_ = error;
    lost_ = true;
}

bool Link::receive(const Call& call, std::span<const Span> into, std::size_t size,
                   std::optional<Call>& other) {
    Connection& connection = connections_[received_ % connections_.size()];
    while (connection.header_got < sizeof(Header)) {
        iovec part{reinterpret_cast<std::byte*>(&connection.header) + connection.header_got,
                   sizeof(Header) - connection.header_got};
        const std::size_t n = read(connection.fd, &part, 1);
        if (n == 0) return false;
        connection.header_got += n;
    }
    const Header& header = connection.header;
    if (header.magic != kMagic || header.size != size ||
        header.call != call) {
        other = header.call;
        return false;
    }
    while (got_ < size) {
        iovec parts[kMostParts];
        std::size_t count = 0;
        std::size_t skip = got_;
        for (const Span& span : into) {
            if (count == kMostParts) break;
            if (skip >= span.size) {
                skip -= span.size;
                continue;
            }
            parts[count++] = {span.data + skip, span.size - skip};
            skip = 0;
        }
        const std::size_t n = read(connection.fd, parts, count);
        if (n == 0) return false;
        got_ += n;
    }
    connection.header_got = 0;
    got_ = 0;
    ++received_;
    return true;
}

std::optional<Word> Link::hear() {
    // Nothing is read while a word is there already: what is kept has an end.
    if (std::optional<Word> word = next_word()) return word;
    char bytes[1024];
    const ssize_t n = recv(words_, bytes, sizeof(bytes), MSG_DONTWAIT);
    if (n > 0) heard_.append(bytes, static_cast<std::size_t>(n));
    if (n == 0 || (n < 0 && !again(errno))) lose(n == 0 ? 0 : errno);
    return next_word();
}

std::optional<Word> Link::next_word() {
    WordHeader header{};
    if (heard_.size() < sizeof(header)) return std::nullopt;
    std::memcpy(&header, heard_.data(), sizeof(header));
    const bool known = header.kind >= static_cast<int>(Word::Kind::farewell) &&
                       header.kind <= static_cast<int>(Word::Kind::waiting) &&
                       header.trouble >= 0 &&
                       header.trouble <= static_cast<int>(Trouble::interrupted);
    if (header.magic != kMagic || !known || header.length > kMostText) {
        lose(EPROTO);
        return std::nullopt;
    }
    if (heard_.size() < sizeof(header) + header.length) return std::nullopt;
    Word word{static_cast<Word::Kind>(header.kind), header.blamed, header.trouble,
              heard_.substr(sizeof(header), header.length), header.call};
    heard_.erase(0, sizeof(header) + header.length);
    return word;
}

void Link::say(const Word& word) {
    WordHeader header{kMagic, static_cast<std::uint8_t>(word.kind), {}, word.blamed,
                      word.trouble,
                      static_cast<std::uint32_t>(std::min(word.text.size(), kMostText)),
                      word.call};
    // A peer that computes for hours reads none: what it is told now and then may be left out.
    if (unsaid_.size() < kMostUnsaid || word.kind == Word::Kind::failure) {
        unsaid_.append(reinterpret_cast<const char*>(&header), sizeof(header));
        unsaid_.append(word.text, 0, header.length);
    }
    flush_words();
}

// The rest stays for later: a word that was cut short could not be told from the next one.
void Link::flush_words() {
    if (unsaid_.empty()) return;
    const ssize_t n =
        ::send(words_, unsaid_.data(), unsaid_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0) unsaid_.erase(0, static_cast<std::size_t>(n));
}

void Link::end() {
    for (const Connection& connection : connections_) shutdown(connection.fd, SHUT_WR);
}

int Link::next_in() const {
    return connections_[received_ % connections_.size()].fd;
}

void Link::waiting_out(std::vector<int>& descriptors) const {
    for (const Connection& connection : connections_) {
        if (!connection.out.empty()) descriptors.push_back(connection.fd);
    }
}

}  // namespace roundelay::engine
