// roundelay._native: what Python sees of the native core. src/roundelay/_native.pyi documents it.
#include <nanobind/nanobind.h>

#include <exception>

#include "errors.hpp"
#include "python_clock.hpp"
#include "python_engine.hpp"
#include "python_reduce.hpp"

namespace nb = nanobind;

namespace {

void set_error(const std::exception_ptr& error, void*) {
    try {
        std::rethrow_exception(error);
    } catch (const roundelay::BadInput& bad) {
        const nb::object type = nb::module_::import_("roundelay.errors").attr("RoundelayError");
        PyErr_SetString(type.ptr(), bad.what());
    }
}

}  // namespace

NB_MODULE(_native, module) {
    module.doc() = "The native core. For the library's own use: it changes without notice.";
    nb::register_exception_translator(set_error);
    roundelay::bind_reduce(module);
    roundelay::bind_engine(module);
    roundelay::bind_clock(module);
}
