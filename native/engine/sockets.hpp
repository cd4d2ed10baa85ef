// Sockets that a forked child does not keep: with them it would hold its parent's connections open,
// and nobody would notice when the parent ends.
#pragma once

#include <vector>

namespace roundelay::engine {

// Descriptors that are closed in every child forked from now on.
class Sockets {
   public:
    explicit Sockets(std::vector<int> descriptors);
    Sockets(Sockets&& other) noexcept;
    Sockets(const Sockets&) = delete;
    Sockets& operator=(const Sockets&) = delete;
    Sockets& operator=(Sockets&&) = delete;
    ~Sockets();  // closes them

   private:
    std::vector<int> descriptors_;
};

}  // namespace roundelay::engine
