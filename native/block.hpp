// A block of memory that other processes may map, too.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>

namespace roundelay {

// Python sees it as a writable buffer; it is unmapped when nothing looks at it any more.
class Block {
   public:
    // Throws BadInput when there is not so much memory.
    explicit Block(std::size_t size);
    Block(const Block&) = delete;
    Block& operator=(const Block&) = delete;
    ~Block();

    // The descriptor by which others map it; the caller's to close, once.
    int take_fd();
    std::byte* data() const { return data_; }
    std::size_t size() const { return size_; }

    static void bind(nanobind::module_& module);

   private:
    int fd_;
    std::byte* data_ = nullptr;
    std::size_t size_;
};

}  // namespace roundelay
