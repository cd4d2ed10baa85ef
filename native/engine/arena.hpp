// Room in a participant's arena for what it shows to others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

namespace roundelay::engine {

// A ring of publications. One is free when all its readers have taken it; when all are, the ring
// begins anew at its start, whose lines are likely to be in the cache still.
class Arena {
   public:
    struct Reader {
        std::uint32_t peer;
        std::uint64_t message;
    };

    explicit Arena(std::span<std::byte> memory) : memory_(memory) {}

    // Room for `size` bytes, or nullptr where there is none until readers have taken more.
    // `has_taken(reader)` says whether a reader has.
    template <class HasTaken>
    std::byte* room(std::size_t size, std::size_t window, HasTaken&& has_taken) {
        if (in_use_ + size > window) reclaim(has_taken);
        if (publications_.empty()) head_ = 0;
        std::size_t at = head_;
        if (!fits(at, size)) {
            reclaim(has_taken);
            if (publications_.empty()) head_ = 0;
            at = fits(head_, size) ? head_ : 0;
            if (!fits(at, size)) return nullptr;
        }
        const std::size_t whole = (size + 63) / 64 * 64;
        publications_.push_back({at, at + whole, {}});
        in_use_ += whole;
        head_ = at + whole;
        return memory_.data() + at;
    }

    // Another reader of the newest publication.
    void read_by(std::uint32_t peer, std::uint64_t message) {
        publications_.back().readers.push_back({peer, message});
    }

    std::size_t size() const { return memory_.size(); }

   private:
    struct Publication {
        std::size_t begin, end;
        std::vector<Reader> readers;
    };

    bool fits(std::size_t at, std::size_t size) const {
        if (at + size > memory_.size()) return false;
        if (publications_.empty()) return true;
        const std::size_t oldest = publications_.front().begin;
        // In use is oldest .. head_, or what is outside head_ .. oldest.
        if (oldest < head_) return at >= head_ || at + size <= oldest;
        return at >= head_ && at + size <= oldest;
    }

    template <class HasTaken>
    void reclaim(HasTaken&& has_taken) {
        while (!publications_.empty()) {
            for (const Reader& reader : publications_.front().readers) {
                if (!has_taken(reader)) return;
            }
            in_use_ -= publications_.front().end - publications_.front().begin;
            publications_.pop_front();
        }
    }

    std::span<std::byte> memory_;
    std::deque<Publication> publications_;
    std::size_t head_ = 0;
    std::size_t in_use_ = 0;
};

}  // namespace roundelay::engine
