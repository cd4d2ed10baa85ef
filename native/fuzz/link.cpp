// Feeds a link whatever the fuzzer makes up: tests/test_fuzz.py.
//
// An input is a byte of options, then records: a kind, a connection, a length, and so many bytes.
// Raw bytes go over the connection as they are. For the other kinds headers are made of them, with
// right check sums, so that what lies behind these is reached, too.
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "engine/checksum.hpp"
#include "engine/failure.hpp"
#include "engine/link.hpp"

namespace {

using namespace roundelay::engine;

constexpr std::uint32_t kMagic = 0x4C444E52;
constexpr std::size_t kHeader = 56;
constexpr std::size_t kWordHeader = 64;
enum Kind { raw, message, word, drain, close_it, kinds };

void require(bool right) {
    if (!right) std::abort();
}

class Input {
   public:
    Input(const std::uint8_t* at, std::size_t size) : at_(at), left_(size) {}
    std::uint8_t byte() { return left_ == 0 ? 0 : (--left_, *at_++); }
    std::vector<std::byte> bytes(std::size_t size) {
        size = std::min(size, left_);
        std::vector<std::byte> taken(size);
        if (size > 0) std::memcpy(taken.data(), at_, size);
        at_ += size;
        left_ -= size;
        return taken;
    }
    bool empty() const { return left_ == 0; }

   private:
    const std::uint8_t* at_;
    std::size_t left_;
};

template <class T>
void put(std::vector<std::byte>& bytes, std::size_t place, T value) {
    std::memcpy(bytes.data() + place, &value, sizeof(value));
}

// A header whose magic and sums are right, made of the first bytes; the rest follows it.
std::vector<std::byte> with_header(std::vector<std::byte> bytes, std::size_t header,
                                   std::size_t sum, std::size_t body) {
    if (bytes.size() < header) bytes.resize(header);
    put(bytes, 0, kMagic);
    put(bytes, body, crc32c(0, bytes.data() + header, bytes.size() - header));
    put(bytes, sum, std::uint32_t{0});
    put(bytes, sum, crc32c(0, bytes.data(), header));
    return bytes;
}

std::vector<std::byte> as_message(std::vector<std::byte> bytes, const Call& call) {
    if (bytes.size() < kHeader) bytes.resize(kHeader);
    const bool honest = bytes[0] != std::byte{0};
    if (honest) {
        put(bytes, 8, std::uint64_t{bytes.size() - kHeader});
        put(bytes, 16, call);
    }
    return with_header(std::move(bytes), kHeader, 4, 48);
}

std::vector<std::byte> as_word(std::vector<std::byte> bytes) {
    if (bytes.size() < kWordHeader) bytes.resize(kWordHeader);
    const bool honest = bytes[0] != std::byte{0};
    if (honest) put(bytes, 16, static_cast<std::uint32_t>(bytes.size() - kWordHeader));
    return with_header(std::move(bytes), kWordHeader, 20, 56);
}

// A link and the other ends of its connections.
struct Ends {
    Ends(std::size_t count, bool checked) : far(count), link(open(count), checked) {}
    ~Ends() {
        for (const int fd : far) ::close(fd);
    }
    std::vector<int> open(std::size_t count) {
        std::vector<int> near;
        for (std::size_t i = 0; i < count; ++i) {
            int pair[2];
            require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) == 0);
            near.push_back(pair[0]);
            far[i] = pair[1];
        }
        return near;
    }
    std::vector<int> far;
    Link link;
};

void hear_all(Link& link) {
    while (const auto heard = link.hear()) {
        require(heard->kind >= Word::Kind::farewell && heard->kind <= Word::Kind::waiting);
        require(heard->trouble >= 0 && heard->trouble <= static_cast<int>(Trouble::changed));
        require(heard->text.size() <= 4096);
    }
}

// Into two places of exactly the size that is expected, so that the sanitizer sees what is beyond.
void receive_all(Link& link, const Call& call, std::size_t size) {
    std::vector<std::byte> first(size / 3);
    std::vector<std::byte> second(size - first.size());
    const Span into[] = {{first.data(), first.size()}, {second.data(), second.size()}};
    std::optional<Call> other;
    while (link.receive(call, into, size, other)) require(!other);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Input input(data, size);
    const std::uint8_t options = input.byte();
    const std::size_t expected = (options >> 4) * 37u;
    Ends ends(2 + (options >> 1 & 1), (options & 1) != 0);
    const Call call{7, 1000, 3, 0, 1, 2, 3, {}};
    const std::vector<std::byte> sent(20'000, std::byte{1});
    const iovec part{const_cast<std::byte*>(sent.data()), sent.size()};
    std::uint32_t open = 0;
    while (!input.empty()) {
        const auto kind = static_cast<Kind>(input.byte() % kinds);
        const std::size_t connection = input.byte() % ends.far.size();
        std::vector<std::byte> bytes = input.bytes(input.byte() | (input.byte() & 15u) << 8);
        if (kind == message) bytes = as_message(std::move(bytes), call);
        if (kind == word) bytes = as_word(std::move(bytes));
        if (kind == drain) {
            std::byte taken[4096];
            (void)!recv(ends.far[connection], taken, sizeof(taken), MSG_DONTWAIT);
        } else if (kind == close_it) {
            shutdown(ends.far[connection], SHUT_WR);
        } else {
            (void)!::send(ends.far[connection], bytes.data(), bytes.size(),
                          MSG_DONTWAIT | MSG_NOSIGNAL);
        }
        ends.link.send(call, {&part, 1}, part.iov_len, &open);
        ends.link.say({Word::Kind::failure, 1, 2, "text", call});
        ends.link.pump();
        hear_all(ends.link);
        receive_all(ends.link, call, expected);
    }
    return 0;
}
