// Setting up, and the order in which stages are done.
#include "engine/endpoint.hpp"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "engine/clock.hpp"
#include "errors.hpp"

namespace roundelay::engine {
namespace {

// Checks of a flag before the processor is given away: some 50 us. Longer than a message takes,
// short enough where another job's process has this one's peer off the processor.
constexpr std::uint32_t kSpins = 1'000;

// Bytes in flight that the arena is used for before what was taken is looked for.
constexpr std::size_t kWindow = 1 << 20;

}  // namespace

Endpoint::Endpoint(std::shared_ptr<Node> node, std::uint32_t local, int participant, Names names,
                   bool crowded, int home)
    : node_(std::move(node)), local_(local), participant_(participant), names_(std::move(names)),
      spins_(crowded ? 0 : kSpins), home_(crowded ? home : -1), routes_(names_.participants.size()),
      arena_(node_->arena(local)), window_(std::min(kWindow, arena_.size())),
      isa_(reduce::chosen_isa()), waits_(routes_.size()) {
    page().pid.store(getpid());
    page().state.store(static_cast<std::uint32_t>(State::here), std::memory_order_release);
}

Endpoint::~Endpoint() {
    close();
    for (const auto& mapped : mapped_) {
        if (mapped->pidfd >= 0) ::close(mapped->pidfd);
        for (const Pool& pool : mapped->pools) {
            if (pool.base != nullptr) munmap(pool.base, pool.size);
        }
    }
    for (std::uint32_t i = 0; i < page().pools.load(); ++i) ::close(page().pool[i].fd);
}

void Endpoint::meet(int participant, std::uint32_t local) {
    auto peer = std::make_unique<Mapped>();
    peer->index = static_cast<std::uint32_t>(mapped_.size());
    peer->participant = participant;
    peer->page = &node_->page(local);
    peer->out = node_->stream(local_, local);
    peer->in = node_->stream(local, local_);
    peer->out_taken = &node_->taken(local_, local);
    peer->in_taken = &node_->taken(local, local_);
    peer->cost_out = node_->read_cost(local_, local);
    peer->cost_in = node_->read_cost(local, local_);
    peer->arena = node_->arena(local).data();
    const std::int32_t pid = peer->page->pid.load();
    peer->pidfd = pid == getpid() ? -1 : static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
    routes_.at(static_cast<std::size_t>(participant)).mapped = peer.get();
    mapped_.push_back(std::move(peer));
}

void Endpoint::meet(int participant, Link link) {
    linked_.push_back(std::make_unique<Linked>(Linked{participant, std::move(link)}));
    routes_.at(static_cast<std::size_t>(participant)).linked = linked_.back().get();
}

bool Endpoint::knows(int participant) const {
    const Route& route = routes_.at(static_cast<std::size_t>(participant));
    return route.mapped != nullptr || route.linked != nullptr;
}

void Endpoint::show(int fd, std::byte* memory, std::size_t size) {
    const std::uint32_t number = page().pools.load();
    if (number == kPools) {
        ::close(fd);
        throw BadInput("a rank can have " + std::to_string(kPools) +
                       " blocks of shared buffers; make fewer and larger ones");
    }
    page().pool[number].fd = fd;
    page().pool[number].size = size;
    shown_[number] = {memory, size};
    page().pools.store(number + 1, std::memory_order_release);
}

void Endpoint::trace(std::size_t events) {
    trace_ = events == 0 ? nullptr : std::make_unique<Trace>(events);
}

std::vector<CallRecord::Read> Endpoint::last_calls() const {
    std::vector<CallRecord::Read> found;
    for (const CallRecord& record : page().calls) {
        if (const auto read = record.read()) found.push_back(*read);
    }
    std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
        return a.call.sequence < b.call.sequence;
    });
    return found;
}

void Endpoint::close() {
    if (page().pid.load() != getpid()) return;  // a child of fork says nothing
    if (page().state.exchange(static_cast<std::uint32_t>(State::closed)) ==
        static_cast<std::uint32_t>(State::closed)) {
        return;
    }
    for (const auto& peer : linked_) {
        peer->link.say({Word::Kind::farewell, participant_, 0, "", {}});
        peer->link.end();
    }
}

void Endpoint::run(Task& task, const Buffers& buffers, std::uint64_t patience_ns, Host& host) {
    if (broken_) throw *broken_;
    home_.go();
    task.call.sequence = ++sequence_;
    stamp_ = std::uint64_t{signature(task.call)} << 32;
    CallRecord& record = page().calls[sequence_ % kCallsKept];
    const std::uint64_t begun = ticks();
    record.begin(task.call, begun);
    Noted noted(trace_.get(), ready_);
    noted.call(task.call);

    try {
        open_.assign(task.stages.size() * task.settings.slices, 0);
        if (scratch_.size() < task.scratch) scratch_.resize(task.scratch);
        Run run{task, buffers, host, patience_ns,
                {nullptr, buffers.input, buffers.output, scratch_.data()}};
        check_others();
        answers_stage_ = kNone - 1;
        go(run);
        finish(run);
    } catch (const Failure&) {
        throw;
    } catch (const std::exception& error) {  // out of memory: the others must not wait
        fail({Trouble::broken, participant_,
              name(participant_) + ": " + error.what() + ", in " + describe(task.call)});
    }
    const std::uint64_t ended = ticks();
    record.end(ended);
    Spans::Span& span = spans_.of(sequence_);
    span.begun.store(begun, std::memory_order_relaxed);
    span.ended.store(ended, std::memory_order_relaxed);
    if (task.counts) task.counts->ended(task.counted, ended - begun);
}

void Endpoint::go(Run& run) {
    Task& task = run.task;
    const std::size_t slices = task.settings.slices;
    if (slices == 1) {
        for (std::size_t i = 0; i < task.stages.size(); ++i) {
            task.stages[i].send ? send(run, i, 0) : receive(run, i, 0);
        }
    } else {
        // Stages first .. last - 1 have a slice to do; skews rise.
        std::size_t first = 0;
        std::size_t last = 0;
        for (std::size_t tick = 0; first < task.stages.size(); ++tick) {
            while (last < task.stages.size() && task.stages[last].skew <= tick) ++last;
            for (std::size_t i = first; i < last; ++i) {
                const std::size_t slice = tick - task.stages[i].skew;
                if (slice >= slices) continue;
                task.stages[i].send ? send(run, i, slice) : receive(run, i, slice);
            }
            while (first < last && tick - task.stages[first].skew + 1 >= slices) ++first;
        }
    }
}

// Nobody reads the caller's memory any more, or all of it has left.
void Endpoint::finish(Run& run) {
    if (!lent_.empty()) {
        await(run, [this] { reap(); return lent_.empty(); }, -1);
    }
    for (const auto& peer : linked_) {
        Link& link = peer->link;
        if (link.idle()) continue;
        await(run, [&link] { link.pump(); return link.idle(); }, peer->participant);
    }
    const Settings& settings = run.task.settings;
    if (settings.divisor > 1 && run.task.output_size > 0) {
        const std::byte* sum[] = {run.buffers.output};
        reduce::run(isa_, reduce::Op::avg, settings.type, run.buffers.output, sum, 1,
                    run.task.output_size / reduce::item_size(settings.type),
                    {static_cast<double>(settings.divisor), settings.divisor},
                    reduce::Store::cached);
    }
}

std::uint32_t* Endpoint::open(const Task& task, std::size_t stage, std::size_t slice) {
    return &open_[stage * task.settings.slices + slice];
}

// What readers have taken is no longer lent.
void Endpoint::reap() {
    std::erase_if(lent_, [](const Lent& lent) {
        if (lent.reader->out_taken->load(std::memory_order_acquire) < lent.message) return false;
        --*lent.open;
        return true;
    });
}

std::string Endpoint::describe(const Call& call) const {
    if (call.sequence == 0) return "nothing yet";
    std::string text = call.collective < names_.collectives.size()
                           ? names_.collectives[call.collective]
                           : "collective " + std::to_string(call.collective);
    if (call.type < reduce::kTypes) {
        text += " of ";
        if (call.elements != kUnequal) text += std::to_string(call.elements) + " ";
        text += reduce::kTypeNames[call.type];
    }
    if (call.op < reduce::kOps) text += ", " + std::string(reduce::kOpNames[call.op]);
    if (call.root != ~std::uint32_t{0}) text += ", root " + std::to_string(call.root);
    return text + " (call " + std::to_string(call.sequence) + ")";
}

}  // namespace roundelay::engine
