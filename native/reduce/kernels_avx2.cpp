// AVX2, with F16C for float16. FMA stays off.
#define ROUNDELAY_WIDTH 32
#include "reduce/kernel.hpp"
#include "reduce/tables.hpp"

namespace roundelay::reduce {

constinit const Table avx2_table = all_kernels();

}  // namespace roundelay::reduce
