// Memory of Python objects, through the buffer protocol.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <string>

namespace roundelay {

// The contiguous bytes of an object, held until it is destroyed (which needs the GIL).
class Buffer {
   public:
    // `what` names the object in errors. Throws BadInput.
    Buffer(nanobind::handle object, bool writable, const std::string& what);
    Buffer(Buffer&& other) noexcept;
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    Buffer& operator=(Buffer&&) = delete;
    ~Buffer();

    std::byte* data() const { return static_cast<std::byte*>(view_.buf); }
    std::size_t size() const { return static_cast<std::size_t>(view_.len); }

   private:
    Py_buffer view_;
};

}  // namespace roundelay
