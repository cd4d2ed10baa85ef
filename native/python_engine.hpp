// The engine, as Python sees it.
#pragma once

#include <nanobind/nanobind.h>

namespace roundelay {

void bind_engine(nanobind::module_& module);

}  // namespace roundelay
