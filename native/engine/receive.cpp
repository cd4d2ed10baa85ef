// Receiving a slice: read where its sender shows it, copied or reduced in one pass.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "engine/clock.hpp"
#include "engine/copy.hpp"
#include "engine/endpoint.hpp"
#include "errors.hpp"

namespace roundelay::engine {
namespace {

bool is_copy(const Stage& stage) { return stage.peers.size() == 1; }

}  // namespace

void Endpoint::receive(Run& run, std::size_t index, std::size_t slice) {
    const Stage& stage = run.task.stages[index];
    Noted noted(trace_.get(), ready_);
    const std::size_t size = cut_pieces(run, stage, slice);
    noted.stage(sequence_, index, slice, stage, size);
    for (const After& after : stage.after) {
        if (after.only_in_place && !run.buffers.in_place) continue;
        const std::uint32_t* still_open = open(run.task, after.entry, slice);
        if (*still_open == 0) continue;
        await(run, [&] { settle(); return *still_open == 0; }, -1);
    }
    if (!is_copy(stage)) {
        reduce_in(run, stage, size);
        keep_answers(index, slice);
    } else if (stage.peers[0] == kOwn) {
        copy_own(run);
    } else {
        copy_in(run, stage, size);
    }
}

// What must be at its home and has never been written there.
void Endpoint::copy_own(const Run& run) {
    const Way way = run.task.settings.streamed ? Way::streamed : Way::cached;
    for (std::size_t i = 0; i < cut_.size(); ++i) {
        if (cut_[i].data != homes_[i].data) copy(homes_[i].data, cut_[i].data, cut_[i].size, way);
    }
}

void Endpoint::copy_in(Run& run, const Stage& stage, std::size_t size) {
    const int peer = stage.peers[0];
    Mapped* from = routes_[static_cast<std::size_t>(peer)].mapped;
    if (from == nullptr) {
        take_linked(run, peer, homes_, size);
        return;
    }
    const Arrived message = take_mapped(run, *from, size);
    if (message.placed) {
        taken(message);
        return;
    }
    if (message.data == nullptr && size > 0) {
        attach(message, homes_);
    } else {
        const Way way = run.task.settings.streamed ? Way::streamed : Way::cached;
        const std::uint64_t begun = size >= kMeasuredFrom ? ticks() : 0;
        const std::byte* data = message.data;
        for (const Span& home : homes_) {
            copy(home.data, data, home.size, way);
            data += home.size;
        }
        if (size >= kMeasuredFrom) measured(message, ticks() - begun, size);
    }
    taken(message);
}

// Remembers where the peers of a reception want its result.
void Endpoint::keep_answers(std::size_t index, std::size_t slice) {
    answers_.clear();
    for (const Arrived& message : arrived_) {
        if (message.answer != nullptr) answers_.emplace_back(message.from, message.answer);
    }
    answers_stage_ = answers_.empty() ? kNone - 1 : index;
    answers_slice_ = slice;
}

void Endpoint::reduce_in(Run& run, const Stage& stage, std::size_t size) {
    const std::size_t n = stage.peers.size();
    arrived_.assign(n, {});
    sources_.resize(n);
    if (staging_.size() < n) staging_.resize(n);
    for (std::size_t k = 0; k < n; ++k) {
        if (stage.peers[k] == kOwn) continue;
        Mapped* from = routes_[static_cast<std::size_t>(stage.peers[k])].mapped;
        if (from != nullptr) {
            arrived_[k] = take_mapped(run, *from, size);
            if (arrived_[k].data != nullptr || size == 0) continue;
        }
        if (staging_[k].size() < size) staging_[k].resize(size);
        const Span into{staging_[k].data(), size};
        if (from != nullptr) {
            attach(arrived_[k], {&into, 1});
        } else {
            take_linked(run, stage.peers[k], {&into, 1}, size);
        }
        arrived_[k].data = staging_[k].data();
    }
    const Settings& settings = run.task.settings;
    const std::size_t item = reduce::item_size(settings.type);
    const std::uint64_t begun = size >= kMeasuredFrom ? ticks() : 0;
    std::size_t done = 0;
    for (std::size_t i = 0; i < homes_.size(); ++i) {
        for (std::size_t k = 0; k < n; ++k) {
            sources_[k] = stage.peers[k] == kOwn ? cut_[i].data : arrived_[k].data + done;
        }
        reduce::run(isa_, settings.op, settings.type, homes_[i].data, sources_.data(), n,
                    homes_[i].size / item, {}, reduce::Store::cached);
        done += homes_[i].size;
    }
    const std::uint64_t cost = size >= kMeasuredFrom ? (ticks() - begun) / (n > 1 ? n - 1 : 1) : 0;
    for (std::size_t k = 0; k < n; ++k) {
        if (arrived_[k].from == nullptr) continue;
        if (size >= kMeasuredFrom) measured(arrived_[k], cost, size);
        taken(arrived_[k]);
    }
}

// The next message of the stream, when it is there.
Endpoint::Arrived Endpoint::take_mapped(Run& run, Mapped& from, std::size_t size) {
    const Line& line = from.in[from.got % kDepth];
    const auto number = static_cast<std::uint32_t>(from.got + 1);
    std::uint64_t stamp = 0;
    const auto here = [&] {
        stamp = line.stamp.load(std::memory_order_acquire);
        return static_cast<std::uint32_t>(stamp) == number;
    };
    if (!here()) await(run, here, from.participant);
    if ((stamp & kSignatureBits) != stamp_) wrong_call(run, from.participant, {});
    const auto where = static_cast<Where>(stamp >> 48 & 0xFF);
    Arrived message{nullptr, 0, &from, static_cast<Way>(stamp >> 56 & 1), false, nullptr};
    if (where == Where::line) {
        if (stamp >> 57 != size) wrong_call(run, from.participant, {});
        message.data = line.bytes;
        return message;
    }
    if (where == Where::placed) message.placed = true;
    if (line.at.size != size) wrong_call(run, from.participant, {});
    if (where == Where::arena) {
        message.data = from.arena + line.at.offset;
    } else if (where == Where::pool) {
        message.data = pool(from, line.at.pool) + line.at.offset;
        if (line.at.answer_pool != 0) {
            message.answer = pool(from, line.at.answer_pool - 1) + line.at.answer_offset;
        }
    } else if (where == Where::process) {
        message.address = line.at.offset;
    }
    return message;
}

void Endpoint::taken(const Arrived& message) {
    message.from->in_taken->store(++message.from->got, std::memory_order_release);
}

// Tells the writer what this way of storing has cost the reader.
void Endpoint::measured(const Arrived& message, std::uint64_t cost, std::size_t size) {
    if (message.from == nullptr) return;
    std::atomic<std::uint64_t>& kept =
        message.from->cost_in[static_cast<int>(message.way)].value;
    const std::uint64_t old = kept.load(std::memory_order_relaxed);
    const std::uint64_t fresh = mean(old, cost, size);
    // The line is shared with the writer: left alone while it says the same.
    if (fresh > old + old / 16 || fresh + old / 16 < old) {
        kept.store(fresh, std::memory_order_relaxed);
    }
}

// Reads the sender's own memory, through the kernel.
void Endpoint::attach(const Arrived& message, std::span<const Span> into) {
    std::uint64_t address = message.address;
    const pid_t pid = message.from->page->pid.load();
    for (const Span& span : into) {
        std::size_t done = 0;
        while (done < span.size) {
            iovec own{span.data + done, span.size - done};
            iovec far{reinterpret_cast<void*>(address + done), span.size - done};
            const ssize_t n = process_vm_readv(pid, &own, 1, &far, 1, 0);
            if (n <= 0) {
                const int error = errno;
                if (error == ESRCH) lost(message.from->participant);
                fail({Trouble::broken, message.from->participant,
                      "cannot read the memory of " + name(message.from->participant) + ": " +
                          std::strerror(error) + "; set ROUNDELAY_ATTACH=0"});
            }
            done += static_cast<std::size_t>(n);
        }
        address += span.size;
    }
}

std::byte* Endpoint::pool(Mapped& of, std::uint64_t number) {
    if (of.pools.size() <= number) of.pools.resize(number + 1);
    Pool& pool = of.pools[number];
    if (pool.base != nullptr) return pool.base;
    const auto& shown = of.page->pool[number];
    const std::string path =
        "/proc/" + std::to_string(of.page->pid.load()) + "/fd/" + std::to_string(shown.fd);
    const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    void* at = fd < 0 ? MAP_FAILED
                      : mmap(nullptr, shown.size, PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_POPULATE, fd, 0);
    const int error = errno;
    if (fd >= 0) ::close(fd);
    if (at == MAP_FAILED) {
        check_alive(of.participant);
        fail({Trouble::broken, of.participant,
              "cannot map the shared buffer of " + name(of.participant) + " at " + path + ": " +
                  std::strerror(error)});
    }
    pool = {static_cast<std::byte*>(at), shown.size};
    return pool.base;
}

void Endpoint::take_linked(Run& run, int peer, std::span<const Span> into, std::size_t size) {
    Linked* const linked = routes_[static_cast<std::size_t>(peer)].linked;
    if (linked == nullptr) {
        fail({Trouble::broken, peer, "there is no connection with " + name(peer) +
              "; this is a defect: connections are made before a plan is used"});
    }
    Link& link = linked->link;
    std::optional<Call> other;
    const auto here = [&] {
        if (link.receive(run.task.call, into, size, other)) return true;
        if (other) wrong_call(run, peer, *other);
        if (link.lost()) lost(peer);
        for (const auto& each : linked_) each->link.pump();
        return false;
    };
    if (here()) return;
    await_long(run, here, peer);
    if (trace_) ready_ = now();
}

}  // namespace roundelay::engine
