// Ranks in one process, for the test with threads.
#pragma once

#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "engine/endpoint.hpp"

namespace roundelay::engine::by_hand {

inline constexpr std::size_t kArena = 256 << 10;
inline constexpr std::size_t kMemory = 16 << 20;  // of a rank: half of it input, half output

[[noreturn]] inline void stop(const std::string& why) {
    std::fprintf(stderr, "%s\n", why.c_str());
    std::_Exit(1);
}

// Ranks on one node or several, each with an endpoint and with memory of both sorts.
class Job {
   public:
    explicit Job(const std::string& nodes) : ranks(static_cast<int>(nodes.size())) {
        std::vector<std::uint32_t> local;
        std::vector<std::shared_ptr<Node>> node(nodes.size());
        Names names{{}, {"collective"}};
        for (std::size_t r = 0; r < nodes.size(); ++r) {
            names.participants.push_back("rank " + std::to_string(r));
            const std::size_t first = nodes.find(nodes[r]);
            const auto those = static_cast<std::uint32_t>(
                std::count(nodes.begin(), nodes.end(), nodes[r]));
            if (first == r) node[r] = std::make_shared<Node>(Node::make(those, kArena));
            node[r] = node[first];
            local.push_back(static_cast<std::uint32_t>(
                std::count(nodes.begin(), nodes.begin() + static_cast<std::ptrdiff_t>(r), nodes[r])));
            node[r]->claim(local[r]);
        }
        for (std::size_t r = 0; r < nodes.size(); ++r) {
            endpoints.push_back(std::make_unique<Endpoint>(node[r], local[r], static_cast<int>(r),
                                                           names, true, -1));
            own.emplace_back(kMemory);
            shown.push_back(show(static_cast<int>(r), kMemory));
        }
        for (int a = 0; a < ranks; ++a) {
            for (int b = 0; b < ranks; ++b) {
                const auto other = static_cast<std::size_t>(b);
                if (nodes[static_cast<std::size_t>(a)] == nodes[other]) {
                    at(a).meet(b, local[other]);
                } else if (a < b) {
                    connect(a, b);
                }
            }
        }
    }

    Endpoint& at(int rank) { return *endpoints[static_cast<std::size_t>(rank)]; }

    std::byte* show(int rank, std::size_t size) {
        const int fd = memfd_create("shown", MFD_CLOEXEC);
        if (fd < 0 || ftruncate(fd, static_cast<off_t>(size)) != 0) stop("no memory to show");
        void* base = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        at(rank).show(fd, static_cast<std::byte*>(base), size);
        return static_cast<std::byte*>(base);
    }

    int ranks;
    std::vector<std::unique_ptr<Endpoint>> endpoints;
    std::vector<std::vector<std::byte>> own;
    std::vector<std::byte*> shown;

   private:
    // Sockets of little room, so that most messages leave in parts.
    void connect(int a, int b) {
        std::vector<int> ends[2];
        for (int k = 0; k < 3; ++k) {
            int pair[2];
            if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) stop("no sockets");
            for (int side = 0; side < 2; ++side) {
                const int room = 16 << 10;
                setsockopt(pair[side], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
                ends[side].push_back(pair[side]);
            }
        }
        at(a).meet(b, Link(ends[0]));
        at(b).meet(a, Link(ends[1]));
    }
};

}  // namespace roundelay::engine::by_hand
