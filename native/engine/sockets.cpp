#include "engine/sockets.hpp"

#include <pthread.h>
#include <unistd.h>

#include <mutex>
#include <set>
#include <utility>

namespace roundelay::engine {
namespace {

// All descriptors of this process; a child closes and forgets them, so that none of its own that
// gets the same number is closed when objects of its parent are destroyed.
struct Registry {
    std::mutex mutex;
    std::set<int> open;
};

Registry& registry() {
    static auto& made = *new Registry;  // lives as long as the process
    static const int registered = pthread_atfork(
        [] { registry().mutex.lock(); }, [] { registry().mutex.unlock(); },
        [] {
            for (const int descriptor : registry().open) ::close(descriptor);
            registry().open.clear();
            registry().mutex.unlock();
        });
    (void)registered;
    return made;
}

}  // namespace

Sockets::Sockets(std::vector<int> descriptors) : descriptors_(std::move(descriptors)) {
    Registry& known = registry();
    const std::lock_guard lock(known.mutex);
    known.open.insert(descriptors_.begin(), descriptors_.end());
}

Sockets::Sockets(Sockets&& other) noexcept : descriptors_(std::move(other.descriptors_)) {
    other.descriptors_.clear();
}

Sockets::~Sockets() {
    Registry& known = registry();
    const std::lock_guard lock(known.mutex);
    for (const int descriptor : descriptors_) {
        if (known.open.erase(descriptor) == 1) ::close(descriptor);
    }
}

}  // namespace roundelay::engine
