// From the processor's counter to ns.
#pragma once

#include <algorithm>
#include <cstdint>

#include "engine/clock.hpp"

namespace roundelay {

using engine::now;
using engine::ticks;

// The same moment on both clocks.
struct Moment {
    std::uint64_t ticks, ns;
};

// The processor may be taken away between two looks, so the quickest of some counts.
inline Moment moment() {
    Moment best{};
    std::uint64_t least = UINT64_MAX;
    for (int i = 0; i < 4; ++i) {
        const std::uint64_t begun = ticks();
        const std::uint64_t ns = now();
        const std::uint64_t took = ticks() - begun;
        if (took >= least) continue;
        least = took;
        best = {begun + took / 2, ns};
    }
    return best;
}

// When the library was loaded: since then ticks have gone by at the rate that counts.
inline const Moment& loaded() {
    static const Moment then = moment();
    return then;
}

// From ticks to ns of CLOCK_MONOTONIC, as the two stand at the moment.
class Ticks {
   public:
    std::int64_t ns(std::uint64_t ticks) const {
        const auto ago = static_cast<double>(static_cast<std::int64_t>(later_.ticks - ticks));
        return static_cast<std::int64_t>(later_.ns) - static_cast<std::int64_t>(ago * rate_);
    }
    std::uint64_t length(std::uint64_t ticks) const {
        return static_cast<std::uint64_t>(static_cast<double>(ticks) * rate_);
    }

   private:
    Moment later_ = moment();
    double rate_ = static_cast<double>(later_.ns - loaded().ns) /
                   static_cast<double>(std::max<std::uint64_t>(later_.ticks - loaded().ticks, 1));
};

}  // namespace roundelay
