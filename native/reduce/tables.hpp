// The tables that kernels_*.cpp define; a build has those of its architecture.
#pragma once

#include "reduce/types.hpp"

namespace roundelay::reduce {

extern const Table baseline_table;
extern const Table avx2_table;
extern const Table avx512_table;
extern const Table neon_table;

}  // namespace roundelay::reduce
