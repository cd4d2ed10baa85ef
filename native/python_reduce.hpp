#pragma once

#include <nanobind/nanobind.h>

namespace roundelay {

void bind_reduce(nanobind::module_& module);

}  // namespace roundelay
