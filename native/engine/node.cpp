#include "engine/node.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "errors.hpp"

namespace roundelay::engine {
namespace {

constexpr std::uint64_t kMagic = 0x31304E4C44524F55;  // changes with the layout
constexpr std::size_t kLeastArena = 64 << 10;

struct Offsets {
    std::size_t pages, taken, costs, streams, arenas, end;
};

std::size_t to_page(std::size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

Offsets offsets(std::size_t n, std::size_t arena) {
    Offsets at{};
    at.pages = kPage;
    at.taken = at.pages + n * kPage;
    at.costs = at.taken + to_page(n * n * kLine);
    at.streams = at.costs + to_page(n * n * 2 * kLine);
    at.arenas = at.streams + to_page(n * n * kDepth * kLine);
    at.end = at.arenas + n * to_page(arena);
    return at;
}

std::string because() { return std::string(": ") + std::strerror(errno); }

std::byte* map(int fd, std::size_t size) {
    void* at = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) {
        const std::string why = because();
        ::close(fd);
        throw BadInput("cannot map " + std::to_string(size) + " bytes of shared memory" + why);
    }
    return static_cast<std::byte*>(at);
}

}  // namespace

std::size_t Node::size(std::uint32_t participants, std::size_t arena) {
    return offsets(participants, arena).end;
}

Node Node::make(std::uint32_t participants, std::size_t arena) {
    const int fd = memfd_create("roundelay", MFD_CLOEXEC);
    if (fd < 0) throw BadInput("cannot create shared memory (memfd_create)" + because());
    for (;; arena /= 2) {
        const auto bytes = static_cast<off_t>(size(participants, arena));
        if (ftruncate(fd, bytes) == 0 && fallocate(fd, 0, 0, bytes) == 0) break;
        if (arena <= kLeastArena) {
            const std::string why = because();
            ::close(fd);
            throw BadInput("cannot have " + std::to_string(bytes) + " bytes of shared memory for " +
                           std::to_string(participants) + " participants" + why +
                           "; give the job more memory, or fewer ranks a node");
        }
        (void)ftruncate(fd, 0);
    }
    // There is enough. Each participant asks for its own arena anew, near its own processor.
    const auto at = offsets(participants, arena);
    (void)fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(at.arenas),
                    static_cast<off_t>(at.end - at.arenas));
    Node node(fd, map(fd, at.end), at.end);
    auto& header = *reinterpret_cast<Header*>(node.base_);
    header.participants = participants;
    header.arena = to_page(arena);
    header.magic = kMagic;
    return node;
}

Node Node::open(int pid, int fd) {
    const std::string path = "/proc/" + std::to_string(pid) + "/fd/" + std::to_string(fd);
    const int own = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    struct stat info{};
    if (own < 0 || fstat(own, &info) != 0) {
        throw BadInput("cannot open the node's shared memory at " + path + because() +
                       "; ranks of one node must be of one user and see one another's processes. "
                       "Set ROUNDELAY_NODE to different names where they do not");
    }
    const auto bytes = static_cast<std::size_t>(info.st_size);
    Node node(own, map(own, bytes), bytes);
    const Header& header = node.header();
    if (header.magic != kMagic || size(header.participants, header.arena) != bytes) {
        throw BadInput("the node's shared memory at " + path +
                       " was made by another version of Roundelay; use one version in a job");
    }
    return node;
}

Node::Node(Node&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), base_(std::exchange(other.base_, nullptr)),
      size_(other.size_) {}

Node::~Node() {
    if (base_ != nullptr) munmap(base_, size_);
    if (fd_ >= 0) ::close(fd_);
}

Page& Node::page(std::uint32_t of) const {
    return reinterpret_cast<Page*>(base_ + kPage)[of];
}

std::span<std::byte> Node::arena(std::uint32_t of) const {
    const std::size_t bytes = arena_size();
    return {base_ + offsets(participants(), bytes).arenas + of * bytes, bytes};
}

Line* Node::stream(std::uint32_t from, std::uint32_t to) const {
    const auto at = offsets(participants(), arena_size()).streams;
    return reinterpret_cast<Line*>(base_ + at) +
           (std::size_t{from} * participants() + to) * kDepth;
}

std::atomic<std::uint64_t>& Node::taken(std::uint32_t from, std::uint32_t to) const {
    const auto at = offsets(participants(), arena_size()).taken;
    return reinterpret_cast<Counter*>(base_ + at)[std::size_t{to} * participants() + from].value;
}

Counter* Node::read_cost(std::uint32_t from, std::uint32_t to) const {
    const auto at = offsets(participants(), arena_size()).costs;
    return reinterpret_cast<Counter*>(base_ + at) +
           (std::size_t{to} * participants() + from) * 2;
}

void Node::claim(std::uint32_t own) const {
    const auto bytes = arena(own);
    if (fallocate(fd_, 0, bytes.data() - base_, static_cast<off_t>(bytes.size())) != 0) {
        throw BadInput("cannot have " + std::to_string(bytes.size()) +
                       " bytes of shared memory for an arena" + because());
    }
}

void Node::populate() const {
#ifdef MADV_POPULATE_WRITE
    madvise(base_, size_, MADV_POPULATE_WRITE);
#endif
}

}  // namespace roundelay::engine
