// The engine, as Python sees it.
#pragma once

#include <nanobind/nanobind.h>

namespace roundelay {

void bind_engine(nanobind::module_& module);
void bind_endpoint(nanobind::module_& module);  // with bind_engine

}  // namespace roundelay
