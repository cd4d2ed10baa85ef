// NEON, which every aarch64 has, with its float16 conversions.
#define ROUNDELAY_WIDTH 16
#include "reduce/kernel.hpp"
#include "reduce/tables.hpp"

namespace roundelay::reduce {

constinit const Table neon_table = all_kernels();

}  // namespace roundelay::reduce
