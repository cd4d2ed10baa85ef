// The clock's recurrence, as Python sees it.
#pragma once

#include <nanobind/nanobind.h>

namespace roundelay {

void bind_clock(nanobind::module_& module);

}  // namespace roundelay
