// Memory of Python's arrays, found quickly: for calls that take less than a microsecond.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>

namespace roundelay {

// The contiguous memory of a NumPy array, or of an object with a buffer, while this lives.
class View {
   public:
    View() = default;
    View(const View&) = delete;
    View& operator=(const View&) = delete;
    ~View() {
        if (held_) PyBuffer_Release(&view_);
    }

    // False where it has none, or none that can be written.
    bool take(nanobind::handle object, bool writable);

    std::byte* data() const { return data_; }
    std::int64_t elements() const { return elements_; }
    std::uint64_t type() const { return type_; }  // equal for equal element types
    bool is_array() const { return array_; }      // then `type` is its dtype's address

   private:
    bool take_array(nanobind::handle object, bool writable);

    Py_buffer view_{};
    bool held_ = false;
    bool array_ = false;
    std::byte* data_ = nullptr;
    std::int64_t elements_ = 0;
    std::uint64_t type_ = 0;
};

}  // namespace roundelay
