#include "buffers.hpp"

#include <utility>

#include "errors.hpp"

namespace roundelay {
namespace {

bool has_buffer(nanobind::handle object, int flags) {
    Py_buffer view;
    if (PyObject_GetBuffer(object.ptr(), &view, flags) != 0) {
        PyErr_Clear();
        return false;
    }
    PyBuffer_Release(&view);
    return true;
}

// Why the object did not give its bytes: asked again for less.
std::string reason(nanobind::handle object, const std::string& what) {
    const std::string type = nanobind::type_name(object.type()).c_str();
    if (PyObject_CheckBuffer(object.ptr()) == 0) {
        return what + " is of type " + type +
               ", which has no buffer; expected an array, bytearray, memoryview or other object "
               "with the buffer protocol";
    }
    if (has_buffer(object, PyBUF_C_CONTIGUOUS)) {
        return what + " is read-only (" + type + "); expected a buffer that can be written. "
               "Give an array of your own, such as a copy";
    }
    if (has_buffer(object, PyBUF_STRIDES)) {
        return what + " is not contiguous (" + type + "); expected elements side by side in C "
               "order. Try numpy.ascontiguousarray(...)";
    }
    return what + " of type " + type + " does not give its bytes; try its .view('uint8')";
}

}  // namespace

Buffer::Buffer(nanobind::handle object, bool writable, const std::string& what) {
    const int flags = PyBUF_C_CONTIGUOUS | (writable ? PyBUF_WRITABLE : 0);
    if (PyObject_GetBuffer(object.ptr(), &view_, flags) != 0) {
        PyErr_Clear();
        throw BadInput(reason(object, what));
    }
}

Buffer::Buffer(Buffer&& other) noexcept : view_(other.view_) { other.view_.obj = nullptr; }

Buffer::~Buffer() {
    if (view_.obj != nullptr) PyBuffer_Release(&view_);
}

}  // namespace roundelay
