// Waiting, looking around meanwhile, and what is said when something is wrong.
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>

#include "engine/clock.hpp"
#include "engine/endpoint.hpp"

namespace roundelay::engine {
namespace {

constexpr std::uint64_t kMs = 1'000'000;
constexpr std::uint64_t kYieldFor = 1 * kMs;    // then it sleeps in the kernel
constexpr std::uint64_t kHostEvery = 20 * kMs;  // asking for signals
constexpr std::uint64_t kAliveEvery = 20 * kMs;
constexpr std::uint64_t kLastWords = 200 * kMs;
constexpr std::uint64_t kCompareFrom = 100 * kMs;  // what others were asked for; then ever rarer

}  // namespace

// Gives the processor away until it is ready; sleeps when it takes long.
void Endpoint::await_long(Run& run, const std::function<bool()>& ready, int participant) {
    const std::uint64_t begun = now();
    const int whom = participant >= 0 ? participant : behind();
    const Waited waited(whom < 0 ? nullptr : &waits_[static_cast<std::size_t>(whom)], begun);
    std::uint64_t host_next = begun + kHostEvery;
    std::uint64_t alive_next = begun + kAliveEvery;
    std::uint64_t compare_after = kCompareFrom;
    std::uint64_t compare_next = begun + compare_after;
    bool told = false;
    for (std::uint32_t round = 0;; ++round) {
        if (round % 32 != 0) {
            sched_yield();
            if (ready()) return;
            settle();
            continue;
        }
        const std::uint64_t time = now();
        home_.go();
        check_others();
        hear(run);
        if (time - begun > kYieldFor) {
            if (!told) run.host.waiting();
            told = true;
            sleep(participant, ready);
        }
        // What a participant did before it left is there when its farewell is.
        const int left = time >= alive_next && has_left(awaited(participant))
                             ? awaited(participant)
                             : -1;
        if (ready()) return;
        settle();
        if (left >= 0 && awaited(participant) == left) lost(left);
        if (time >= host_next) {
            host_next = time + kHostEvery;
            if (run.host.interrupted()) {
                fail({Trouble::interrupted, participant_,
                      name(participant_) + " was interrupted in " + describe(run.task.call)});
            }
        }
        if (time >= alive_next) {
            alive_next = time + kAliveEvery;
            check_alive(-1);
            if (time - begun > run.patience_ns) too_late(run, awaited(participant));
        }
        if (time >= compare_next) {
            compare_after *= 2;
            compare_next = time + compare_after;
            compare(run);
        }
        if (told) round = UINT32_MAX;  // each wake-up looks around
    }
}

// What waits for room in a connection, and what readers have taken meanwhile.
void Endpoint::settle() {
    if (!lent_.empty()) reap();
    for (const auto& peer : linked_) {
        peer->link.pump();
        if (peer->link.lost()) lost(peer->participant);
    }
}

// Whom a wait is for; of one for readers (-1), one that has not read yet, the first of them that
// has left if there is one; -1: nobody in particular.
int Endpoint::awaited(int participant) const {
    if (participant >= 0) return participant;
    for (const auto& peer : mapped_) {
        const bool behind = peer->sent > peer->out_taken->load(std::memory_order_acquire);
        if (behind && has_left(peer->participant)) return peer->participant;
    }
    return lent_.empty() ? -1 : lent_.front().reader->participant;
}

// One who has not read all that it was sent; -1: nobody.
int Endpoint::behind() const {
    for (const auto& peer : mapped_) {
        if (peer->sent > peer->out_taken->load(std::memory_order_acquire)) return peer->participant;
    }
    return -1;
}

// For a millisecond, or until something comes. The one who wakes needs no fence for that: what it
// misses costs a millisecond.
void Endpoint::sleep(int participant, const std::function<bool()>& ready) {
    const bool mapped =
        participant < 0 || routes_[static_cast<std::size_t>(participant)].mapped != nullptr;
    std::vector<int> out;
    for (const auto& peer : linked_) peer->link.waiting_out(out);
    if (mapped && out.empty()) {
        const std::uint32_t bell = page().bell.load(std::memory_order_acquire);
        page().asleep.store(1, std::memory_order_seq_cst);
        const timespec limit{0, static_cast<long>(kMs)};
        if (!ready()) syscall(SYS_futex, &page().bell, FUTEX_WAIT, bell, &limit, nullptr, 0);
        page().asleep.store(0, std::memory_order_relaxed);
        return;
    }
    std::vector<pollfd> on;
    for (const int fd : out) on.push_back({fd, POLLOUT, 0});
    if (!mapped) {
        const Link& link = routes_[static_cast<std::size_t>(participant)].linked->link;
        on.push_back({link.next_in(), POLLIN, 0});
    }
    const timespec limit{0, static_cast<long>(mapped ? kMs / 8 : kMs)};
    ppoll(on.data(), on.size(), &limit, nullptr);
}

void Endpoint::wake(const Mapped& peer) {
    peer.page->bell.fetch_add(1, std::memory_order_release);
    syscall(SYS_futex, &peer.page->bell, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

// Whether others of the node have failed. Then this one has, too, for the same reason.
void Endpoint::check_others() {
    const std::uint32_t failures = node_->failures().load(std::memory_order_acquire);
    if (failures == failures_seen_) return;
    failures_seen_ = failures;
    for (const auto& peer : mapped_) {
        const Page& page = *peer->page;
        if (page.failed.load(std::memory_order_acquire) == 0) continue;
        fail({static_cast<Trouble>(page.trouble), page.blamed, page.text});
    }
}

// What participants of other nodes have said.
void Endpoint::hear(Run& run) {
    for (const auto& peer : linked_) {
        if (peer->left) continue;
        const std::optional<Word> word = peer->link.hear();
        if (word && word->kind == Word::Kind::farewell) {
            peer->left = true;
        } else if (word && word->kind == Word::Kind::waiting) {
            if (word->call.sequence == run.task.call.sequence &&
                word->call != run.task.call) {
                wrong_call(run, peer->participant, word->call);
            }
        } else if (word) {
            fail({static_cast<Trouble>(word->trouble), word->blamed, word->text});
        } else if (peer->link.lost()) {
            lost(peer->participant);
        }
    }
}

// Whether others do the same call. Where they were asked for something else, both sides may wait
// for messages that never come.
void Endpoint::compare(Run& run) {
    const Call& call = run.task.call;
    for (const auto& peer : mapped_) {
        const auto theirs = peer->page->calls[call.sequence % kCallsKept].read();
        if (theirs && theirs->call.sequence == call.sequence &&
            theirs->call != call) {
            wrong_call(run, peer->participant, theirs->call);
        }
    }
    for (const auto& peer : linked_) peer->link.say({Word::Kind::waiting, -1, 0, "", call});
}

// Whether a participant of the node has ended: this one, or (-1) any.
void Endpoint::check_alive(int participant) {
    for (const auto& peer : mapped_) {
        if (participant >= 0 && peer->participant != participant) continue;
        if (has_left(peer->participant)) continue;
        pollfd on{peer->pidfd, POLLIN, 0};
        // It may have ended before there was a descriptor for it.
        const pid_t pid = peer->page->pid.load();
        const bool ended = peer->pidfd >= 0 ? poll(&on, 1, 0) == 1
                                            : pid > 0 && kill(pid, 0) != 0 && errno == ESRCH;
        if (ended) lost(peer->participant);
    }
}

// Whether a participant of this node has said farewell: nothing more will come from it. One of
// another node ends its connections, behind the last message.
bool Endpoint::has_left(int participant) const {
    if (participant < 0) return false;
    const Mapped* peer = routes_[static_cast<std::size_t>(participant)].mapped;
    return peer != nullptr && peer->page->state.load(std::memory_order_acquire) ==
                                  static_cast<std::uint32_t>(State::closed);
}

// Remembers a failure and tells all others of it.
void Endpoint::note(const Failure& failure) {
    if (broken_) return;
    broken_ = failure;
    Page& own = page();
    own.trouble = static_cast<std::int32_t>(failure.trouble());
    own.blamed = failure.participant();
    std::strncpy(own.text, failure.what(), sizeof(own.text) - 1);
    own.failed.store(1, std::memory_order_release);
    failures_seen_ = node_->failures().fetch_add(1) + 1;
    for (const auto& peer : mapped_) {
        if (peer->page->asleep.load() != 0) wake(*peer);
    }
    const Word word{Word::Kind::failure, failure.participant(),
                    static_cast<std::int32_t>(failure.trouble()), failure.what(), {}};
    for (const auto& peer : linked_) peer->link.say(word);
}

void Endpoint::fail(const Failure& failure) {
    note(failure);
    throw Failure(failure);
}

void Endpoint::lost(int participant) {
    int error = 0;
    bool left = has_left(participant);
    // What it said before it went is the better reason. It comes over a connection of its own, and
    // so perhaps later.
    Linked* const linked = routes_[static_cast<std::size_t>(participant)].linked;
    if (linked != nullptr) {
        error = linked->link.error();
        left = left || linked->left;
        const std::uint64_t until = error == Link::kChanged ? 0 : now() + kLastWords;
        while (const std::optional<Word> word = linked->link.hear_until(until)) {
            left = left || word->kind == Word::Kind::farewell;
            if (word->kind != Word::Kind::failure) continue;
            fail({static_cast<Trouble>(word->trouble), word->blamed, word->text});
        }
    }
    check_others();
    if (error == Link::kChanged) {
        fail({Trouble::changed, participant,
              "bytes were changed on the way from " + name(participant) + " to " +
                  name(participant_) + ": a check sum differs, in call " +
                  std::to_string(sequence_) + "; look for a fault in the network between the two, "
                  "or in the memory of their machines"});
    }
    const bool silent = error == ETIMEDOUT || error == EHOSTUNREACH || error == ENETUNREACH;
    const char* const ended =
        linked == nullptr ? " has ended" : " has ended, or its connection was cut,";
    const std::string how =
        silent ? " can no longer be reached (" + std::string(std::strerror(error)) +
                     "): its machine is down, or the network between is cut; "
               : std::string(left ? " has closed its communicator" : ended) +
                     " while others exchange data with it; ";
    fail({Trouble::lost, participant, name(participant) + how + name(participant_) +
          " noticed in call " + std::to_string(sequence_)});
}

void Endpoint::wrong_call(Run& run, int participant, const Call& other) {
    Call ours = run.task.call;
    Call theirs = other;
    const Mapped* peer = routes_[static_cast<std::size_t>(participant)].mapped;
    if (peer != nullptr && other.sequence == 0) {
        // The first of the calls kept in which the two differ.
        for (std::uint64_t back = std::min<std::uint64_t>(kCallsKept, sequence_); back-- > 0;) {
            const std::size_t at = (sequence_ - back) % kCallsKept;
            const auto own = page().calls[at].read();
            const auto read = peer->page->calls[at].read();
            if (!own || !read) continue;
            ours = own->call;
            theirs = read->call;
            if (ours != theirs) break;
        }
    }
    std::string text = name(participant_) + " was asked for " + describe(ours) + ", " +
                       name(participant) + " for " + describe(theirs);
    if (theirs == ours) {
        text += ", and they differ in how much goes from one to the other";
    } else if (theirs.plan != ours.plan && theirs.elements == ours.elements &&
               theirs.collective == ours.collective) {
        text += ", with another algorithm, setting or counts";
    }
    fail({Trouble::mismatch, participant, text + "; all ranks must make the same calls in the same "
          "order, with the same sizes, types and options"});
}

static Call last_call(const Page& page) {
    Call last;
    for (const CallRecord& record : page.calls) {
        const auto read = record.read();
        if (read && read->call.sequence > last.sequence) last = read->call;
    }
    return last;
}

void Endpoint::too_late(Run& run, int participant) {
    // With the word "timeout" on its own, which programs look for.
    char seconds[32];
    std::snprintf(seconds, sizeof(seconds), "%g", static_cast<double>(run.patience_ns) / 1e9);
    std::string text = name(participant_) + " has waited until the timeout of " + seconds + " s";
    if (participant >= 0) {
        // Who is awaited may wait itself for one that has not come.
        const std::vector<int> missing = absent();
        if (!missing.empty()) participant = missing.front();
        text += " for " + name(participant);
        const Mapped* peer = routes_[static_cast<std::size_t>(participant)].mapped;
        if (peer != nullptr) text += ", whose last call is " + describe(last_call(*peer->page));
        for (std::size_t i = 1; i < missing.size(); ++i) {
            text += (i == 1 ? ", and for " : ", ") + name(missing[i]);
        }
    }
    fail({Trouble::late, participant, text + ", in " + describe(run.task.call)});
}

std::vector<int> Endpoint::absent() const {
    std::vector<int> found;
    const std::uint64_t latest = last_call(page()).sequence;
    for (const auto& peer : mapped_) {
        if (last_call(*peer->page).sequence < latest) found.push_back(peer->participant);
    }
    std::sort(found.begin(), found.end());
    return found;
}

std::string Endpoint::name(int participant) const {
    return names_.participants.at(static_cast<std::size_t>(participant));
}

}  // namespace roundelay::engine
