// What every processor of the architecture has: SSE2 on x86-64.
#define ROUNDELAY_WIDTH 16
#include "reduce/kernel.hpp"
#include "reduce/tables.hpp"

namespace roundelay::reduce {

constinit const Table baseline_table = all_kernels();

}  // namespace roundelay::reduce
