// Sending a slice: shown to readers of the node, sent to others.
#include <algorithm>
#include <cstring>

#include "engine/clock.hpp"
#include "engine/copy.hpp"
#include "engine/endpoint.hpp"

namespace roundelay::engine {
namespace {

void gather(std::byte* to, std::span<const Span> parts, Way way) {
    for (const Span& part : parts) {
        copy(to, part.data, part.size, way);
        to += part.size;
    }
}

}  // namespace

// Puts into `cut_` where the slice of each piece lies, and into `homes_` where it is written.
// Returns their bytes.
std::size_t Endpoint::cut_pieces(Run& run, const Stage& stage, std::size_t slice) {
    cut_.clear();
    homes_.clear();
    std::size_t size = 0;
    const Settings& settings = run.task.settings;
    const std::size_t item = reduce::item_size(settings.type);
    for (const Piece& piece : stage.pieces) {
        const std::size_t begin = cut(piece.size, item, slice, settings.slices);
        const std::size_t end = cut(piece.size, item, slice + 1, settings.slices);
        if (begin == end) continue;
        std::byte* at = run.spaces[static_cast<std::size_t>(piece.space)];
        cut_.push_back({at + piece.at + begin, end - begin});
        if (!stage.send) {
            std::byte* home = run.spaces[static_cast<std::size_t>(piece.home)];
            homes_.push_back({home + piece.to + begin, end - begin});
        }
        size += end - begin;
    }
    return size;
}

void Endpoint::send(Run& run, std::size_t index, std::size_t slice) {
    const Stage& stage = run.task.stages[index];
    Noted noted(trace_.get(), ready_);
    const std::size_t size = cut_pieces(run, stage, slice);
    noted.stage(sequence_, index, slice, stage, size);
    std::uint32_t* still_open = open(run.task, index, slice);
    send_linked(run, stage, size, still_open);
    send_mapped(run, index, slice, size, still_open);
}

void Endpoint::send_linked(Run& run, const Stage& stage, std::size_t size,
                           std::uint32_t* still_open) {
    if (linked_.empty()) return;
    const bool bounces = stage.bounce == Bounce::always ||
                         (stage.bounce == Bounce::in_place && run.buffers.in_place);
    std::vector<iovec> parts;
    for (const int peer : stage.peers) {
        Linked* const linked = routes_[static_cast<std::size_t>(peer)].linked;
        if (linked == nullptr) continue;
        Link& link = linked->link;
        if (parts.empty() && bounces) {
            // What is overwritten may be so at once, before the copy has left.
            Stash& stash = keep(size);
            still_open = &stash.open;
            parts.push_back({stash.bytes.data(), size});
        } else if (parts.empty()) {
            for (const Span& part : cut_) parts.push_back({part.data, part.size});
        }
        link.send(run.task.call, parts, size, still_open);
        if (link.lost()) lost(peer);
    }
}

// A copy of what lies in `cut_`.
Endpoint::Stash& Endpoint::keep(std::size_t size) {
    const auto free = std::find_if(stash_.begin(), stash_.end(),
                                   [](const Stash& stash) { return stash.open == 0; });
    Stash& stash = free == stash_.end() ? stash_.emplace_back() : *free;
    if (stash.bytes.size() < size) stash.bytes.resize(size);
    gather(stash.bytes.data(), cut_, Way::cached);
    return stash;
}

void Endpoint::send_mapped(Run& run, std::size_t index, std::size_t slice, std::size_t size,
                           std::uint32_t* still_open) {
    const Stage& stage = run.task.stages[index];
    readers_.clear();
    for (const int peer : stage.peers) {
        Mapped* to = routes_[static_cast<std::size_t>(peer)].mapped;
        if (to != nullptr) readers_.push_back(to);
    }
    if (size <= kInLine) {
        std::byte bytes[kInLine];
        gather(bytes, cut_, Way::cached);
        for (Mapped* to : readers_) put(run, *to, Where::line, Way::cached, bytes, size);
        return;
    }
    if (stage.answers == answers_stage_ && slice == answers_slice_) place_answers(run, size);
    if (!readers_.empty() && !lend(run, stage, slice, size, still_open)) publish(run, size);
}

// Puts what is sent where readers want it, of those who have said where.
void Endpoint::place_answers(Run& run, std::size_t size) {
    for (const auto& [to, place] : answers_) {
        const auto reader = std::find(readers_.begin(), readers_.end(), to);
        if (reader == readers_.end()) continue;
        readers_.erase(reader);
        gather(place, cut_, Way::cached);
        const std::uint64_t at[2] = {0, size};
        put(run, *to, Where::placed, Way::cached, at, sizeof(at));
    }
}

bool Endpoint::find_shown(const std::byte* data, std::size_t size, std::uint64_t& pool,
                          std::uint64_t& offset) const {
    const std::uint32_t blocks = page().pools.load(std::memory_order_acquire);
    for (std::size_t i = 0; i < blocks; ++i) {
        if (data < shown_[i].base || data + size > shown_[i].base + shown_[i].size) continue;
        pool = i;
        offset = static_cast<std::uint64_t>(data - shown_[i].base);
        return true;
    }
    return false;
}

// Shows the caller's own memory, where readers can see it. Where they attach, messages are not cut
// to fit into the arena, and what lies in parts is shown as a copy outside of it.
bool Endpoint::lend(Run& run, const Stage& stage, std::size_t slice, std::size_t size,
                    std::uint32_t* still_open) {
    const bool bounces = stage.bounce == Bounce::always ||
                         (stage.bounce == Bounce::in_place && run.buffers.in_place);
    const bool apart = cut_.size() != 1 || bounces;
    const bool attached = size >= run.task.settings.attach_from;
    if (apart && !attached) return false;
    std::uint64_t at[5] = {0, size, 0, 0, 0};
    Where where = Where::pool;
    if (apart) {
        Stash& stash = keep(size);
        still_open = &stash.open;
        where = Where::process;
        at[0] = reinterpret_cast<std::uint64_t>(stash.bytes.data());
    } else if (!find_shown(cut_[0].data, size, at[2], at[0])) {
        if (!attached) return false;
        where = Where::process;
        at[0] = reinterpret_cast<std::uint64_t>(cut_[0].data);
    } else if (stage.answer != kNone) {
        cut_pieces(run, run.task.stages[stage.answer], slice);
        if (homes_.size() == 1 && find_shown(homes_[0].data, size, at[3], at[4])) ++at[3];
    }
    for (Mapped* to : readers_) {
        put(run, *to, where, Way::cached, at, sizeof(at));
        lent_.push_back({to, to->sent, still_open});
        ++*still_open;
    }
    return true;
}

// Shows a copy in the arena.
void Endpoint::publish(Run& run, std::size_t size) {
    Way way = Way::cached;
    if (size >= kMeasuredFrom) {
        way = stores_.choose([&](int w) {
            std::uint64_t most = 0;
            for (const Mapped* to : readers_) {
                most = std::max(most, to->cost_out[w].value.load(std::memory_order_relaxed));
            }
            return most;
        });
    }
    const auto has_taken = [this](const Arena::Reader& reader) {
        Mapped& peer = *mapped_[reader.peer];
        if (peer.seen_taken < reader.message) {
            peer.seen_taken = peer.out_taken->load(std::memory_order_acquire);
        }
        return peer.seen_taken >= reader.message;
    };
    if (size > arena_.size()) {
        fail({Trouble::broken, participant_, name(participant_) + " has " + std::to_string(size) +
              " bytes to show and an arena of " + std::to_string(arena_.size()) +
              "; this is a defect: messages are cut to fit"});
    }
    std::byte* room = arena_.room(size, window_, has_taken);
    if (room == nullptr) {
        await(run, [&] { return (room = arena_.room(size, window_, has_taken)) != nullptr; }, -1);
    }
    const std::uint64_t begun = size >= kMeasuredFrom ? ticks() : 0;
    gather(room, cut_, way);
    if (way == Way::streamed) fence();
    if (size >= kMeasuredFrom) stores_.written(way, ticks() - begun, size);
    const std::uint64_t at[3] = {
        static_cast<std::uint64_t>(room - node_->arena(local_).data()), size, 0};
    for (Mapped* to : readers_) {
        put(run, *to, Where::arena, way, at, sizeof(at));
        arena_.read_by(to->index, to->sent);
    }
}

void Endpoint::put(Run& run, Mapped& to, Where where, Way way, const void* bytes,
                   std::size_t size) {
    if (to.sent - to.seen_taken >= kDepth) {
        const auto room = [&to] {
            to.seen_taken = to.out_taken->load(std::memory_order_acquire);
            return to.sent - to.seen_taken < kDepth;
        };
        if (!room()) await(run, room, to.participant);
    }
    Line& line = to.out[to.sent % kDepth];
    std::memcpy(line.bytes, bytes, size);
    ++to.sent;
    const std::uint64_t in_line = where == Where::line ? size : 0;
    const std::uint64_t how = static_cast<std::uint64_t>(where) << 48 |
                              static_cast<std::uint64_t>(way) << 56 | in_line << 57;
    line.stamp.store((to.sent & 0xFFFFFFFFu) | stamp_ | how, std::memory_order_release);
    if (to.page->asleep.load(std::memory_order_relaxed) != 0) wake(to);
}

}  // namespace roundelay::engine
