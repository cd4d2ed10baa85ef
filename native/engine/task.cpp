#include "engine/task.hpp"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>

#include "errors.hpp"

namespace roundelay::engine {
namespace {

// Where every chunk lies, in bytes.
class Map {
   public:
    Map(const Plan& plan, const Layout& layout, std::size_t item)
        : layout_(layout), item_(item),
          in_piece_(plan.chunks / static_cast<std::int64_t>(layout.length.size())) {
        if (in_piece_ * static_cast<std::int64_t>(layout.length.size()) != plan.chunks) {
            throw BadInput("task: " + std::to_string(plan.chunks) +
                           " chunks do not divide among " + std::to_string(layout.length.size()) +
                           " pieces");
        }
    }

    std::size_t size(std::int64_t chunk) const { return begin(chunk, 1) - begin(chunk, 0); }

    std::size_t place(std::int64_t chunk, Space space) {
        if (space == Space::none) return 0;
        if (space == Space::scratch) return scratch(chunk);
        const auto& of = space == Space::input ? layout_.input : layout_.output;
        const std::int64_t piece = of[static_cast<std::size_t>(chunk / in_piece_)];
        if (piece < 0) {
            throw BadInput("task: chunk " + std::to_string(chunk) + " has no place in the " +
                           (space == Space::input ? "input" : "output"));
        }
        return static_cast<std::size_t>(piece) * item_ + begin(chunk, 0);
    }

    std::size_t scratch_size() const { return scratch_size_; }

   private:
    // Offset in its piece, in bytes, of the chunk `ahead` after this one.
    std::size_t begin(std::int64_t chunk, std::int64_t ahead) const {
        const auto piece = static_cast<std::size_t>(chunk / in_piece_);
        const auto size = static_cast<std::size_t>(layout_.length[piece]) * item_;
        const auto k = static_cast<std::size_t>(chunk % in_piece_ + ahead);
        return cut(size, item_, k, static_cast<std::size_t>(in_piece_));
    }

    std::size_t scratch(std::int64_t chunk) {
        const auto [found, fresh] = scratch_.try_emplace(chunk, scratch_size_);
        if (fresh) scratch_size_ += (size(chunk) + 63) / 64 * 64;
        return found->second;
    }

    Layout layout_;
    std::size_t item_;
    std::int64_t in_piece_;
    std::unordered_map<std::int64_t, std::size_t> scratch_;
    std::size_t scratch_size_ = 0;
};

bool follows(const Piece& a, const Piece& b) {
    return a.space == b.space && a.home == b.home && a.at + a.size == b.at &&
           (a.home == Space::none || a.to + a.size == b.to);
}

Stage make_stage(const Entry& entry, Map& map, const Settings& settings) {
    Stage stage{};
    stage.send = entry.send;
    stage.bounce = entry.bounce;
    stage.skew = settings.lag * static_cast<std::size_t>(entry.step + (entry.send ? 0 : 1));
    stage.peers = entry.peers;
    stage.after = entry.after;
    for (const Segment& segment : entry.segments) {
        for (std::int64_t c = segment.first; c < segment.first + segment.count; ++c) {
            const std::size_t size = map.size(c);
            if (size == 0) continue;
            const Space home = entry.send ? Space::none : segment.home;
            const Piece piece{map.place(c, segment.space), map.place(c, home), size, segment.space,
                              home};
            const bool joins = settings.slices == 1 && !stage.pieces.empty() &&
                               follows(stage.pieces.back(), piece);
            if (joins) {
                stage.pieces.back().size += size;
            } else {
                stage.pieces.push_back(piece);
            }
        }
    }
    return stage;
}

bool same(const Entry& a, const Entry& b) {
    return std::equal(a.segments.begin(), a.segments.end(), b.segments.begin(), b.segments.end(),
                      [](const Segment& x, const Segment& y) {
                          return x.first == y.first && x.count == y.count;
                      });
}

bool touches(const Entry& a, const Entry& b) {
    for (const Segment& x : a.segments) {
        for (const Segment& y : b.segments) {
            if (x.first < y.first + y.count && y.first < x.first + x.count) return true;
        }
    }
    return false;
}

// Finds sends that are answered, and answers. For few entries only: it compares them all.
void link_answers(const Plan& plan, std::vector<Stage>& stages) {
    constexpr std::size_t kMost = 512;
    const auto& entries = plan.entries;
    if (entries.size() > kMost) return;
    for (std::size_t i = 0; i < entries.size(); ++i) {
        if (!entries[i].send) continue;
        for (std::size_t j = i + 1; j < entries.size() && entries[i].peers.size() == 1; ++j) {
            if (!touches(entries[i], entries[j])) continue;
            // Where others may still read what the answer overwrites, they come first.
            const bool answer = !entries[j].send && entries[j].peers == entries[i].peers &&
                                std::all_of(entries[j].after.begin(), entries[j].after.end(),
                                            [i](const After& after) { return after.entry == i; });
            if (answer && same(entries[i], entries[j])) stages[i].answer = j;
            break;
        }
        for (std::size_t j = i; j-- > 0;) {
            if (!touches(entries[i], entries[j])) continue;
            if (!entries[j].send && same(entries[i], entries[j])) stages[i].answers = j;
            break;
        }
    }
}

}  // namespace

std::size_t cut(std::size_t size, std::size_t item, std::size_t k, std::size_t parts) {
    if (k == 0) return 0;
    if (k >= parts) return size;
    const std::size_t grain = size / parts >= 1024 ? std::max<std::size_t>(item, 64) : item;
    // size * k would not fit into 64 bits for large sizes.
    const std::size_t at = size / parts * k + size % parts * k / parts;
    return at / grain * grain;
}

Task Task::make(const Plan& plan, const Layout& layout, const Settings& settings, Call call) {
    if (layout.length.empty() || layout.input.size() != layout.length.size() ||
        layout.output.size() != layout.length.size()) {
        throw BadInput("task: the layout's three arrays must have one entry a piece");
    }
    if (settings.slices == 0) throw BadInput("task: there must be one slice or more");
    const std::size_t item = reduce::item_size(settings.type);
    Map map(plan, layout, item);
    Task task;
    task.call = call;
    task.settings = settings;
    for (const Entry& entry : plan.entries) {
        task.stages.push_back(make_stage(entry, map, settings));
    }
    link_answers(plan, task.stages);
    // Entries stand by step, sends first, so with a lag the skews rise.
    task.scratch = map.scratch_size();
    for (const Stage& stage : task.stages) {
        for (const Piece& piece : stage.pieces) {
            for (const auto& [space, at] : {std::pair{piece.space, piece.at},
                                            std::pair{piece.home, piece.to}}) {
                if (space == Space::input) {
                    task.input_size = std::max(task.input_size, at + piece.size);
                } else if (space == Space::output) {
                    task.output_size = std::max(task.output_size, at + piece.size);
                }
            }
        }
    }
    return task;
}

}  // namespace roundelay::engine
