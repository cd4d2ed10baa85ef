#include "engine/plan.hpp"

#include "errors.hpp"

namespace roundelay::engine {
namespace {

class Reader {
   public:
    explicit Reader(std::span<const std::int64_t> numbers) : numbers_(numbers) {}

    // The next number, which must lie in low .. high.
    std::int64_t next(std::int64_t low, std::int64_t high) {
        if (at_ == numbers_.size()) throw BadInput("plan: it ends too early");
        const std::int64_t value = numbers_[at_++];
        if (value < low || value > high) {
            throw BadInput("plan: number " + std::to_string(at_ - 1) + " is " +
                           std::to_string(value) + "; expected " + std::to_string(low) + " to " +
                           std::to_string(high));
        }
        return value;
    }

    std::size_t length() { return static_cast<std::size_t>(next(0, left())); }
    std::int64_t left() const { return static_cast<std::int64_t>(numbers_.size() - at_); }

   private:
    std::span<const std::int64_t> numbers_;
    std::size_t at_ = 0;
};

Space space(Reader& in) { return static_cast<Space>(in.next(0, kSpaces - 1)); }

Entry read_entry(Reader& in, const Plan& plan, int participants) {
    Entry entry{};
    entry.send = in.next(0, 1) != 0;
    entry.bounce = static_cast<Bounce>(in.next(0, 2));
    entry.step = in.next(0, plan.steps);
    entry.peers.resize(in.length());
    if (entry.peers.empty()) throw BadInput("plan: an entry has no peers");
    for (int& peer : entry.peers) {
        peer = static_cast<int>(in.next(entry.send ? 0 : kOwn, participants - 1));
    }
    entry.segments.resize(in.length());
    for (Segment& segment : entry.segments) {
        segment.first = in.next(0, plan.chunks - 1);
        segment.count = in.next(1, plan.chunks - segment.first);
        segment.space = space(in);
        segment.home = space(in);
    }
    entry.after.resize(in.length());
    for (After& after : entry.after) {
        after.entry = static_cast<std::size_t>(
            in.next(0, static_cast<std::int64_t>(plan.entries.size()) - 1));
        after.only_in_place = in.next(0, 1) != 0;
    }
    return entry;
}

}  // namespace

Plan Plan::read(std::span<const std::int64_t> numbers, int participants) {
    constexpr std::int64_t kMost = std::int64_t{1} << 40;
    Reader in(numbers);
    Plan plan;
    plan.chunks = in.next(1, kMost);
    plan.steps = in.next(0, kMost);
    const std::size_t entries = in.length();
    plan.entries.reserve(entries);
    for (std::size_t i = 0; i < entries; ++i) {
        plan.entries.push_back(read_entry(in, plan, participants));
    }
    if (in.left() != 0) throw BadInput("plan: there are numbers after its end");
    return plan;
}

}  // namespace roundelay::engine
