#include "clock/relay.hpp"

#include <deque>
#include <utility>

namespace roundelay::clock {
namespace {

// The greatest of the last few values that came.
class Greatest {
   public:
    explicit Greatest(std::int64_t reach) : reach_(reach) {}

    std::int64_t with(std::int64_t place, std::int64_t value) {
        while (!kept_.empty() && kept_.back().second <= value) kept_.pop_back();
        kept_.emplace_back(place, value);
        while (kept_.front().first < place - reach_) kept_.pop_front();
        return kept_.front().second;
    }

   private:
    std::int64_t reach_;
    std::deque<std::pair<std::int64_t, std::int64_t>> kept_;
};

}  // namespace

// After k steps message i of a chain has what message i - a had a steps ago, for some a up to k,
// and it waited in the other steps: begin(i, k) = max over a of begin(i - a, 0) + the wholes of
// i - a .. i - 1 + (k - a) * busy. With W_i the sum of the wholes before i that is
// W_i + (k - i) * busy + the greatest of begin(j, 0) - W_j + j * busy for j from i - k to i.
std::vector<std::int64_t> relayed(const std::vector<std::int64_t>& begin,
                                  const std::vector<std::size_t>& before,
                                  std::span<const std::int64_t> whole, std::int64_t busy,
                                  std::int64_t steps) {
    const std::size_t count = begin.size();
    const std::int64_t k = steps - 1;
    std::vector<std::size_t> after(count, kNone);
    for (std::size_t m = 0; m < count; ++m) {
        if (before[m] != kNone) after[before[m]] = m;
    }
    std::vector<std::int64_t> found(count, -1);
    const auto follow = [&](std::size_t first, std::int64_t warm) {
        Greatest greatest(k);
        std::int64_t sum = 0, place = 0;
        for (std::size_t m = first; m != kNone; m = after[m], ++place) {
            if (place >= warm && found[m] >= 0) break;  // a ring is closed
            const std::int64_t most = greatest.with(place, begin[m] - sum + place * busy);
            if (place >= warm) found[m] = sum + (k - place) * busy + most;
            sum += whole[m];
        }
    };
    for (std::size_t m = 0; m < count; ++m) {
        if (before[m] == kNone) follow(m, 0);
    }
    for (std::size_t m = 0; m < count; ++m) {
        if (found[m] < 0) follow(m, k);  // on a ring: k steps before the first that counts
    }
    return found;
}

}  // namespace roundelay::clock
