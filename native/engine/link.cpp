#include "engine/link.hpp"

#include "engine/checksum.hpp"
#include "errors.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace roundelay::engine {
namespace {

constexpr std::size_t kMostParts = 64;    // of one call to the kernel
}  // namespace

Link::Link(std::vector<int> connections, bool checked)
    : sockets_(connections), checked_(checked) {
    if (connections.size() < 2) throw BadInput("a link takes two connections or more");
    words_ = connections.front();
    for (const int fd : connections) fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    for (std::size_t i = 1; i < connections.size(); ++i) {
        connections_.push_back(Connection{connections[i], {}, {}, 0});
    }
    watch_words();
}

Link::Link(Link&& other) noexcept = default;

Link::~Link() = default;

bool Link::send(const Call& call, std::span<const iovec> parts, std::size_t size,
                std::uint32_t* open) {
    Connection& connection = connections_[sent_++ % connections_.size()];
    Outgoing message{{kMagic, 0, size, call, 0, 0}, {}, 0, open};
    if (checked_) {
        for (const iovec& part : parts) {
            message.header.body = crc32c(message.header.body, part.iov_base, part.iov_len);
        }
        message.header.sum = sum_of(message.header);
    }
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
            if (try_again(errno)) return false;
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
    if (n == 0 || !try_again(errno)) lose(n == 0 ? 0 : errno);
    return 0;
}

// To the sum of the message under way, while the bytes are in the cache.
void Link::add(const iovec* parts, std::size_t size) {
    for (; size > 0; ++parts) {
        const std::size_t here = std::min(size, parts->iov_len);
        sum_ = crc32c(sum_, parts->iov_base, here);
        size -= here;
    }
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
    if (checked_ && sum_of(header) != header.sum) {
        lose(kChanged);
        return false;
    }
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
        if (checked_) add(parts, n);
    }
    if (checked_ && sum_ != header.body) {
        lose(kChanged);
        return false;
    }
    connection.header_got = 0;
    got_ = 0;
    sum_ = 0;
    ++received_;
    return true;
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
