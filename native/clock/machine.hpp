// The state of the recurrence, and one phase after the other.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "clock/recurrence.hpp"
#include "clock/relay.hpp"

namespace roundelay::clock {

inline void raise(Time& to, Time other) { to = std::max(to, other); }

class Machine {
   public:
    explicit Machine(const Schedule& schedule)
        : schedule_(schedule), n_(schedule.participants), rounds_(schedule.rounds) {
        for (const Phase& phase : schedule.phases) {
            for (const Wait& wait : phase.before) ends(wait.other, wait.side).asked = true;
            for (const Wait& wait : phase.waits) ends(phase.first + wait.other, wait.side).asked = true;
        }
    }

    // `factor(m)` is asked for each repetition of each message. When all is over.
    template <class Factor>
    const std::vector<Time>& run(const Costs& costs, bool steady, Factor& factor) {
        for (auto* list : {&out_, &in_, &last_}) list->assign(n_, Time{0});
        for (auto& round : rounds_) {
            for (auto& side : round) side.latest.assign(side.asked ? n_ : 0, Time{0});
        }
        std::size_t first = 0;
        for (const Phase& phase : schedule_.phases) {
            go(phase, first, costs, steady, factor);
            first += phase.src.size();
        }
        return last_;
    }

   private:
    // Ends of a round's messages at one side of theirs.
    struct Ends {
        bool asked = false;
        std::vector<Time> latest;        // [participant]
        std::vector<Time> kept;          // [repetition, participant], where waits are by piece
        std::vector<std::uint8_t> moving;  // [participant], whether it goes on in this window
    };
    // Where a message looks before it begins.
    struct Look {
        const Ends* ends;
        std::int64_t end;
        Time lag;
        std::int64_t times;
    };
    // Messages first .. last - 1 of a round are under way.
    struct Active {
        std::size_t first, last;
    };
    // Steps after which a pattern that comes again is looked for no longer: a ring that crosses the
    // border of a group of nodes has the period of its ranks.
    static constexpr std::int64_t kLongest = 4096;

    static std::size_t at(std::int64_t number) { return static_cast<std::size_t>(number); }
    Ends& ends(std::int64_t round, std::int64_t side) { return rounds_[at(round)][at(side)]; }

    template <class Factor>
    void go(const Phase& phase, std::size_t first, const Costs& costs, bool steady,
            Factor& factor) {
        phase_ = &phase;
        const std::size_t count = phase.src.size();
        offset_ = first;
        free_.assign(count, Time{0});
        end_.assign(count, Time{0});
        before_.assign(count, Time{0});
        look_around();
        begin_from();
        std::vector<Active> active;
        for (std::size_t r = 0; r < phase.times.size(); ++r) {
            active.push_back({phase.messages[r], phase.messages[r]});
        }
        for (std::int64_t step = 0; step < phase.steps;) {
            const std::int64_t until = next_change(active, step);
            window(active, step, until, costs, steady && !by_piece_, factor);
            step = until;
        }
        for (std::size_t m = 0; m < count; ++m) {
            raise(out_[at(phase.src[m])], free_[m]);
            raise(in_[at(phase.dst[m])], free_[m]);
            raise(last_[at(phase.src[m])], free_[m]);
            raise(last_[at(phase.dst[m])], end_[m]);
        }
    }

    void look_around() {
        looks_.assign(phase_->times.size(), {});
        by_piece_ = false;
        for (std::size_t r = 0; r < phase_->times.size(); ++r) {
            for (Ends& side : rounds_[at(phase_->first) + r]) side.kept.clear();
        }
        for (const Wait& wait : phase_->waits) {
            Ends& other = ends(phase_->first + wait.other, wait.side);
            const std::int64_t times = phase_->times[at(wait.other)];
            const bool whole = wait.lag == kLatest || wait.lag >= times;
            if (!whole) {
                by_piece_ = true;
                other.kept.assign(at(times) * n_, Time{0});
            }
            looks_[at(wait.round)].push_back({&other, wait.end, whole ? kLatest : wait.lag, times});
        }
    }

    // What messages wait for that stands before the phase.
    void begin_from() {
        base_.resize(phase_->src.size());
        for (std::size_t m = 0; m < base_.size(); ++m) {
            base_[m] = out_[at(phase_->src[m])];
            raise(base_[m], in_[at(phase_->dst[m])]);
        }
        for (const Wait& wait : phase_->before) {
            const auto& latest = ends(wait.other, wait.side).latest;
            const auto& rank = wait.end == 0 ? phase_->src : phase_->dst;
            const std::size_t r = at(wait.round);
            for (std::size_t m = phase_->messages[r]; m < phase_->messages[r + 1]; ++m) {
                raise(base_[m], latest[at(rank[m])]);
            }
        }
    }

    // Sets which messages are under way at a step; the step at which that changes.
    std::int64_t next_change(std::vector<Active>& active, std::int64_t step) const {
        const auto& start = phase_->start;
        std::int64_t until = phase_->steps;
        for (std::size_t r = 0; r < active.size(); ++r) {
            auto& [first, last] = active[r];
            const std::int64_t times = phase_->times[r];
            const std::size_t end = phase_->messages[r + 1];
            while (last < end && start[last] <= step) ++last;
            while (first < last && start[first] + times <= step) ++first;
            if (last < end) until = std::min(until, start[last]);
            if (first < last) until = std::min(until, start[first] + times);
        }
        return until;
    }

    // Steps in which the same messages are under way.
    template <class Factor>
    void window(const std::vector<Active>& active, std::int64_t step, std::int64_t until,
                const Costs& costs, bool steady, Factor& factor) {
        steady = steady && until - step > 2;
        if (steady) mark(active);
        if (steady && relay(active, until - step, costs)) return;
        std::int64_t seen = -1;      // step whose ends are kept in before_; -1: none
        std::int64_t next = step + 1;
        for (; step < until; ++step) {
            bool going = true;
            for (std::size_t r = 0; r < active.size(); ++r) {
                if (seen >= 0) {
                    going = advance<true>(r, active[r], step, costs, factor) && going;
                } else {
                    advance<false>(r, active[r], step, costs, factor);
                }
            }
            for (std::size_t r = 0; r < active.size(); ++r) note(r, active[r], step);
            if (seen >= 0) {
                const std::int64_t period = step - seen;
                const std::int64_t periods = (until - 1 - step) / period;
                if (going && moved_alike(active)) {
                    repeat(active, periods);
                    step += periods * period;
                    steady = false;  // what is left is less than a period
                    seen = -1;
                } else if (!going || period == kLongest) {
                    seen = -1;
                    next = step + period + 1;
                }
            } else if (steady && step == next) {
                before_ = end_;
                seen = step;
            }
        }
    }

    // Which ends go on, and which stay as they are, while these messages are under way.
    void mark(const std::vector<Active>& active) {
        for (std::size_t r = 0; r < active.size(); ++r) {
            for (int side = 0; side < 2; ++side) {
                Ends& own = ends(phase_->first + static_cast<std::int64_t>(r), side);
                if (!own.asked) continue;
                own.moving.assign(n_, 0);
                const auto& rank = side == 0 ? phase_->src : phase_->dst;
                for (std::size_t m = active[r].first; m < active[r].last; ++m) {
                    own.moving[at(rank[m])] = 1;
                }
            }
        }
    }

    // A repetition of the messages of a round. When looking: whether none begins because of
    // something that stays as it is.
    template <bool Looking, class Factor>
    bool advance(std::size_t r, Active active, std::int64_t step, const Costs& costs,
                 Factor& factor) {
        bool goes_on = true;
        for (std::size_t m = active.first; m < active.last; ++m) {
            Time begin = free_[m];
            Time still = base_[m];
            for (const Look& look : looks_[r]) {
                const std::size_t rank = at(look.end == 0 ? phase_->src[m] : phase_->dst[m]);
                if (look.lag != kLatest) {
                    const std::int64_t k = step - phase_->start[m];
                    const std::int64_t needed = std::min(look.times, k + look.lag);
                    if (needed > 0) raise(begin, look.ends->kept[at(needed - 1) * n_ + rank]);
                } else if (Looking && look.ends->moving[rank] == 0) {
                    raise(still, look.ends->latest[rank]);
                } else {
                    raise(begin, look.ends->latest[rank]);
                }
            }
            if (still > begin) {
                begin = still;
                goes_on = false;
            }
            const std::size_t number = offset_ + m;
            const double f = factor(number);
            free_[m] = begin + scaled(costs.busy[number], f);
            end_[m] = begin + scaled(costs.whole[number], f);
        }
        return goes_on;
    }

    static Time scaled(Time time, double factor) {
        return factor == 1.0 ? time : static_cast<Time>(static_cast<double>(time) * factor);
    }

    // The ends of a repetition, for those who ask.
    void note(std::size_t r, Active active, std::int64_t step) {
        for (int side = 0; side < 2; ++side) {
            Ends& own = ends(phase_->first + static_cast<std::int64_t>(r), side);
            if (!own.asked) continue;
            const auto& rank = side == 0 ? phase_->src : phase_->dst;
            for (std::size_t m = active.first; m < active.last; ++m) {
                raise(own.latest[at(rank[m])], end_[m]);
                if (!own.kept.empty()) {
                    raise(own.kept[at(step - phase_->start[m]) * n_ + at(rank[m])], end_[m]);
                }
            }
        }
    }

    // Messages that each wait for one other of the last step, as in a ring, and for nothing that
    // goes on besides: pieces are handed on along chains. Where the next of a stream may begin
    // equally soon everywhere, the ends after so many steps have a closed form.
    bool relay(const std::vector<Active>& active, std::int64_t steps, const Costs& costs) {
        std::size_t r = active.size();
        for (std::size_t i = 0; i < active.size(); ++i) {
            if (active[i].first == active[i].last) continue;
            if (r != active.size()) return false;
            r = i;
        }
        if (r == active.size() || phase_->times[r] < steps) return false;
        const auto [first, last] = active[r];
        const Time busy = costs.busy[offset_ + first];
        for (std::size_t m = first; m < last; ++m) {
            if (costs.busy[offset_ + m] != busy || costs.whole[offset_ + m] < busy) return false;
        }
        const Ends& arrived = rounds_[at(phase_->first) + r][1];
        std::vector<std::size_t> before;
        if (!handed_on(r, active[r], arrived, before)) return false;
        std::vector<Time> begin(last - first);
        for (std::size_t m = first; m < last; ++m) {
            begin[m - first] = std::max(free_[m], base_[m]);
            for (const Look& look : looks_[r]) {
                const std::size_t rank = at(look.end == 0 ? phase_->src[m] : phase_->dst[m]);
                raise(begin[m - first], look.ends->latest[rank]);
            }
        }
        begin = relayed(begin, before, costs.whole.subspan(offset_ + first, last - first), busy,
                        steps);
        for (std::size_t m = first; m < last; ++m) {
            free_[m] = begin[m - first] + busy;
            end_[m] = begin[m - first] + costs.whole[offset_ + m];
        }
        note(r, active[r], 0);  // the step matters only by piece
        return true;
    }

    // `before`: [message], the one that arrives where it starts, or kNone.
    bool handed_on(std::size_t r, Active active, const Ends& arrived,
                   std::vector<std::size_t>& before) const {
        bool waits = false;
        for (const Look& look : looks_[r]) {
            if (look.ends == &arrived && look.end == 0) {
                waits = true;
                continue;
            }
            for (std::size_t m = active.first; m < active.last; ++m) {
                if (look.ends->moving[at(look.end == 0 ? phase_->src[m] : phase_->dst[m])]) {
                    return false;
                }
            }
        }
        std::vector<std::size_t> from(n_, kNone), to(n_, kNone);
        for (std::size_t m = active.first; m < active.last; ++m) {
            const std::size_t src = at(phase_->src[m]), dst = at(phase_->dst[m]);
            if (from[src] != kNone || to[dst] != kNone) return false;
            from[src] = to[dst] = m - active.first;
        }
        before.resize(active.last - active.first);
        for (std::size_t m = active.first; m < active.last; ++m) {
            before[m - active.first] = waits ? to[at(phase_->src[m])] : kNone;
        }
        return true;
    }

    // Whether all has moved on by one and the same time since the step that was seen. Then it does
    // so again and again, for each moment is a maximum of others plus constants.
    bool moved_alike(const std::vector<Active>& active) const {
        Time by = -1;
        for (const Active& a : active) {
            for (std::size_t m = a.first; m < a.last; ++m) {
                const Time moved = end_[m] - before_[m];
                if (by < 0) by = moved;
                if (moved != by) return false;
            }
        }
        return by >= 0;
    }

    void repeat(const std::vector<Active>& active, std::int64_t times) {
        for (std::size_t r = 0; r < active.size(); ++r) {
            for (std::size_t m = active[r].first; m < active[r].last; ++m) {
                const Time by = (end_[m] - before_[m]) * times;
                end_[m] += by;
                free_[m] += by;
            }
            note(r, active[r], 0);
        }
    }

    const Schedule& schedule_;
    std::size_t n_;
    std::vector<std::array<Ends, 2>> rounds_;  // of the schedule
    std::vector<Time> out_, in_, last_;      // [participant]

    // Of the present phase.
    const Phase* phase_ = nullptr;
    std::size_t offset_ = 0;  // of its messages among all
    bool by_piece_ = false;
    std::vector<std::vector<Look>> looks_;              // [round]
    std::vector<Time> base_, free_, end_, before_;    // [message]
};

}  // namespace roundelay::clock
