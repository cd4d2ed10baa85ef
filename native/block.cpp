#include "block.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "errors.hpp"

namespace nb = nanobind;

namespace roundelay {

Block::Block(std::size_t size) : fd_(memfd_create("roundelay-buffer", MFD_CLOEXEC)), size_(size) {
    void* at = MAP_FAILED;
    if (fd_ >= 0 && ftruncate(fd_, static_cast<off_t>(size)) == 0 &&
        fallocate(fd_, 0, 0, static_cast<off_t>(size)) == 0) {
        at = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd_, 0);
    }
    if (at == MAP_FAILED) {
        const std::string why = std::strerror(errno);
        if (fd_ >= 0) ::close(fd_);
        throw BadInput("cannot have " + std::to_string(size) + " bytes of shared buffer: " + why);
    }
    data_ = static_cast<std::byte*>(at);
}

Block::~Block() {
    munmap(data_, size_);
    if (fd_ >= 0) ::close(fd_);
}

int Block::take_fd() { return std::exchange(fd_, -1); }

void Block::bind(nb::module_& module) {
    static constexpr auto get = [](PyObject* self, Py_buffer* view, int flags) {
        const Block& block = *nb::inst_ptr<Block>(self);
        return PyBuffer_FillInfo(view, self, block.data(), static_cast<Py_ssize_t>(block.size()), 0,
                                 flags);
    };
    static PyType_Slot slots[] = {
        {Py_bf_getbuffer, reinterpret_cast<void*>(static_cast<getbufferproc>(get))}, {0, nullptr}};
    nb::class_<Block>(module, "Block", nb::type_slots(slots));
}

}  // namespace roundelay
