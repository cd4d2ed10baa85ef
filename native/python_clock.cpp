#include "python_clock.hpp"

#include <algorithm>

#include "buffers.hpp"
#include "clock/recurrence.hpp"
#include "errors.hpp"

namespace nb = nanobind;

namespace roundelay {
namespace {

using clock::Time;

template <class T>
std::span<T> view(const Buffer& buffer) {
    return {reinterpret_cast<T*>(buffer.data()), buffer.size() / sizeof(T)};
}

template <class To>
std::vector<To> numbers(nb::handle array, const char* what) {
    const Buffer buffer(array, false, what);
    const auto found = view<const std::int64_t>(buffer);
    return {found.begin(), found.end()};
}

void check(bool good, const char* what) {
    if (!good) throw BadInput(std::string(what) + " do not fit the others");
}

template <class T>
bool within(const std::vector<T>& values, std::size_t limit) {
    return std::all_of(values.begin(), values.end(), [limit](T v) {
        return v >= 0 && static_cast<std::size_t>(v) < limit;
    });
}

class Recurrence {
   public:
    Recurrence(std::size_t participants, std::size_t rounds) {
        schedule_.participants = participants;
        schedule_.rounds = rounds;
    }

    void add(std::int64_t first, nb::handle times, nb::handle messages, nb::handle src,
             nb::handle dst, nb::handle start, nb::handle waits, nb::handle before) {
        clock::Phase phase;
        phase.first = first;
        phase.times = numbers<std::int64_t>(times, "times");
        phase.messages = numbers<std::size_t>(messages, "messages");
        phase.src = numbers<std::int32_t>(src, "src");
        phase.dst = numbers<std::int32_t>(dst, "dst");
        phase.start = numbers<std::int64_t>(start, "start");
        phase.waits = waits_of(waits);
        phase.before = waits_of(before);
        check_phase(phase);
        for (std::size_t r = 0; r < phase.times.size(); ++r) {
            for (std::size_t m = phase.messages[r]; m < phase.messages[r + 1]; ++m) {
                phase.steps = std::max(phase.steps, phase.start[m] + phase.times[r]);
            }
        }
        schedule_.messages += phase.src.size();
        schedule_.phases.push_back(std::move(phase));
    }

    void run(const nb::tuple& costs, nb::handle ends, bool steady) const {
        const Buffer out(ends, true, "ends");
        const auto target = view<Time>(out);
        check(target.size() == schedule_.participants, "ends");
        const Held held(costs, schedule_.messages);
        std::vector<Time> found;
        {
            const nb::gil_scoped_release released;
            found = clock::run(schedule_, held.costs, steady);
        }
        std::copy(found.begin(), found.end(), target.begin());
    }

    void sample(const nb::tuple& costs, nb::handle step, nb::handle card, nb::handle link,
                nb::handle links, std::uint64_t seed, unsigned threads, nb::handle found) const {
        const Buffer step_table(step, false, "step"), card_table(card, false, "card"),
            link_table(link, false, "link"), link_ids(links, false, "links"),
            out(found, true, "found");
        clock::Variation variation{view<const float>(step_table), view<const float>(card_table),
                                   view<const float>(link_table),
                                   view<const std::int64_t>(link_ids), seed};
        check(variation.link.empty() || variation.links.size() == schedule_.messages, "links");
        const auto target = view<Time>(out);
        const Held held(costs, schedule_.messages);
        std::vector<Time> latest;
        {
            const nb::gil_scoped_release released;
            latest = clock::sample(schedule_, held.costs, variation, target.size(),
                                   std::max(1U, threads));
        }
        std::copy(latest.begin(), latest.end(), target.begin());
    }

   private:
    // The columns of costs, while this lives.
    struct Held {
        Held(const nb::tuple& columns, std::size_t messages) {
            check(columns.size() == 2, "costs");
            for (const nb::handle column : columns) buffers.emplace_back(column, false, "costs");
            costs = {view<const Time>(buffers[0]), view<const Time>(buffers[1])};
            check(costs.whole.size() == messages && costs.busy.size() == messages, "costs");
        }
        std::vector<Buffer> buffers;
        clock::Costs costs;
    };

    static std::vector<clock::Wait> waits_of(nb::handle array) {
        const auto flat = numbers<std::int64_t>(array, "waits");
        check(flat.size() % 5 == 0, "waits");
        std::vector<clock::Wait> found;
        for (std::size_t i = 0; i < flat.size(); i += 5) {
            found.push_back({flat[i], flat[i + 1], flat[i + 2], flat[i + 3], flat[i + 4]});
        }
        return found;
    }

    void check_phase(const clock::Phase& phase) const {
        const std::size_t count = phase.src.size(), rounds = phase.times.size();
        check(phase.first >= 0 && static_cast<std::size_t>(phase.first) + rounds <=
                                      schedule_.rounds, "rounds");
        check(phase.dst.size() == count && phase.start.size() == count, "messages");
        check(phase.messages.size() == rounds + 1 && phase.messages.front() == 0 &&
                  phase.messages.back() == count &&
                  std::is_sorted(phase.messages.begin(), phase.messages.end()), "messages");
        check(within(phase.src, schedule_.participants) &&
                  within(phase.dst, schedule_.participants), "participants");
        for (std::size_t r = 0; r < rounds; ++r) {
            check(std::is_sorted(phase.start.begin() + static_cast<std::ptrdiff_t>(phase.messages[r]),
                                 phase.start.begin() +
                                     static_cast<std::ptrdiff_t>(phase.messages[r + 1])), "starts");
        }
        const auto good = [rounds](const clock::Wait& w, std::size_t others) {
            return w.round >= 0 && static_cast<std::size_t>(w.round) < rounds && w.other >= 0 &&
                   static_cast<std::size_t>(w.other) < others && (w.end == 0 || w.end == 1) &&
                   (w.side == 0 || w.side == 1);
        };
        for (const auto& w : phase.waits) check(good(w, rounds), "waits");
        for (const auto& w : phase.before) {
            check(good(w, static_cast<std::size_t>(phase.first)), "waits");
        }
    }

    clock::Schedule schedule_;
};

}  // namespace

void bind_clock(nb::module_& module) {
    nb::class_<Recurrence>(module, "Recurrence")
        .def(nb::init<std::size_t, std::size_t>())
        .def("add", &Recurrence::add)
        .def("run", &Recurrence::run)
        .def("sample", &Recurrence::sample);
}

}  // namespace roundelay
