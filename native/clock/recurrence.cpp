#include "clock/recurrence.hpp"

#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

#include "clock/machine.hpp"
#include "clock/random.hpp"

namespace roundelay::clock {
namespace {

struct Constant {
    double operator()(std::size_t) const { return 1.0; }
};

// The factors of one sample: of cards and links once, of messages each time.
class Drawn {
   public:
    Drawn(const Schedule& schedule, const Variation& variation, std::uint64_t sample)
        : variation_(variation), random_(Random(variation.seed + sample).next()) {
        if (variation.card.empty() && variation.link.empty()) return;
        std::vector<float> card(schedule.participants, 1.0F);
        for (float& factor : card) factor = draw(variation.card);
        std::vector<float> link;
        for (const std::int64_t number : variation.links) {
            if (static_cast<std::size_t>(number + 1) > link.size()) {
                link.resize(static_cast<std::size_t>(number) + 1, 0.0F);
            }
        }
        for (float& factor : link) factor = draw(variation.link);
        fixed_.reserve(schedule.messages);
        for (const Phase& phase : schedule.phases) {
            for (std::size_t m = 0; m < phase.src.size(); ++m) {
                const float slower = std::max(card[static_cast<std::size_t>(phase.src[m])],
                                              card[static_cast<std::size_t>(phase.dst[m])]);
                const std::int64_t over = link.empty() ? -1 : variation.links[fixed_.size()];
                fixed_.push_back(over < 0 ? slower : slower * link[static_cast<std::size_t>(over)]);
            }
        }
    }

    double operator()(std::size_t message) {
        const float fixed = fixed_.empty() ? 1.0F : fixed_[message];
        return static_cast<double>(fixed * draw(variation_.step));
    }

   private:
    float draw(std::span<const float> table) {
        return table.empty() ? 1.0F : table[random_.below(table.size())];
    }

    const Variation& variation_;
    Random random_;
    std::vector<float> fixed_;  // [message]
};

}  // namespace

std::vector<Time> run(const Schedule& schedule, const Costs& costs, bool steady) {
    Constant constant;
    return Machine(schedule).run(costs, steady, constant);
}

std::vector<Time> sample(const Schedule& schedule, const Costs& costs, const Variation& variation,
                         std::uint64_t samples, unsigned threads) {
    std::vector<Time> found(samples);
    std::atomic<std::uint64_t> next{0};
    std::exception_ptr failure;
    std::mutex guard;
    const auto work = [&] {
        try {
            Machine machine(schedule);
            for (std::uint64_t i; (i = next.fetch_add(1)) < samples;) {
                Drawn drawn(schedule, variation, i);
                Time latest = 0;
                for (const Time end : machine.run(costs, false, drawn)) {
                    latest = std::max(latest, end);
                }
                found[i] = latest;
            }
        } catch (...) {
            const std::lock_guard lock(guard);
            failure = std::current_exception();
        }
    };
    std::vector<std::thread> others;
    for (unsigned i = 1; i < threads; ++i) others.emplace_back(work);
    work();
    for (std::thread& other : others) other.join();
    if (failure) std::rethrow_exception(failure);
    return found;
}

}  // namespace roundelay::clock
