// What is said on the connection for it.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "engine/checksum.hpp"
#include "engine/clock.hpp"
#include "engine/failure.hpp"
#include "engine/link.hpp"

namespace roundelay::engine {
namespace {

constexpr std::size_t kMostText = 4096;     // of a word
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
    std::uint32_t sum;   // as in the header of a message
    Call call;
    std::uint32_t body;  // sum of the text
    std::uint32_t unused;
};

static_assert(sizeof(WordHeader) == 64);

}  // namespace

// Have the kernel tell when the other end's machine, or the network, is gone without a word. Only
// for a connection of few bytes: where a peer is too busy to read, one for data stands still for
// as long, and that is no fault.
void Link::watch_words() {
    const auto set = [fd = words_](int level, int option, int value) {
        setsockopt(fd, level, option, &value, sizeof(value));
    };
    set(SOL_SOCKET, SO_KEEPALIVE, 1);
    set(IPPROTO_TCP, TCP_KEEPIDLE, kProbeFromS);
    set(IPPROTO_TCP, TCP_KEEPINTVL, kProbeEveryS);
    set(IPPROTO_TCP, TCP_KEEPCNT, kProbes);
    set(IPPROTO_TCP, TCP_USER_TIMEOUT, kSilenceMs);
}

std::optional<Word> Link::hear() {
    // Nothing is read while a word is there already: what is kept has an end.
    if (std::optional<Word> word = next_word()) return word;
    char bytes[1024];
    const ssize_t n = recv(words_, bytes, sizeof(bytes), MSG_DONTWAIT);
    if (n > 0) heard_.append(bytes, static_cast<std::size_t>(n));
    if (n == 0 || (n < 0 && !try_again(errno))) {
        mute_ = true;
        lose(n == 0 ? 0 : errno);
    }
    return next_word();
}

std::optional<Word> Link::hear_until(std::uint64_t moment) {
    for (;;) {
        if (std::optional<Word> word = hear()) return word;
        const std::uint64_t time = now();
        if (mute_ || time >= moment) return std::nullopt;
        pollfd on{words_, POLLIN, 0};
        poll(&on, 1, static_cast<int>((moment - time) / 1'000'000) + 1);
    }
}

std::nullopt_t Link::unreadable(int error) {
    mute_ = true;
    lose(error);
    return std::nullopt;
}

std::optional<Word> Link::next_word() {
    WordHeader header{};
    if (heard_.size() < sizeof(header)) return std::nullopt;
    std::memcpy(&header, heard_.data(), sizeof(header));
    if (checked_ && sum_of(header) != header.sum) {
        return unreadable(kChanged);
    }
    const bool known = header.kind >= static_cast<int>(Word::Kind::farewell) &&
                       header.kind <= static_cast<int>(Word::Kind::waiting) &&
                       header.trouble >= 0 &&
                       header.trouble <= static_cast<int>(Trouble::changed);
    if (header.magic != kMagic || !known || header.length > kMostText) {
        return unreadable(EPROTO);
    }
    if (heard_.size() < sizeof(header) + header.length) return std::nullopt;
    const char* const text = heard_.data() + sizeof(header);
    if (checked_ && crc32c(0, text, header.length) != header.body) {
        return unreadable(kChanged);
    }
    Word word{static_cast<Word::Kind>(header.kind), header.blamed, header.trouble,
              std::string(text, header.length), header.call};
    heard_.erase(0, sizeof(header) + header.length);
    return word;
}

void Link::say(const Word& word) {
    WordHeader header{kMagic, static_cast<std::uint8_t>(word.kind), {}, word.blamed,
                      word.trouble,
                      static_cast<std::uint32_t>(std::min(word.text.size(), kMostText)),
                      0, word.call, 0, 0};
    if (checked_) {
        header.body = crc32c(0, word.text.data(), header.length);
        header.sum = sum_of(header);
    }
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

}  // namespace roundelay::engine
