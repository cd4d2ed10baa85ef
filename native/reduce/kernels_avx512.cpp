// AVX-512 F, BW, DQ and VL. Its bfloat16 conversion takes subnormals for zero and its float16
// arithmetic rounds after every step, so neither gives the bits of the others; they stay off.
#define ROUNDELAY_WIDTH 64
#include "reduce/kernel.hpp"
#include "reduce/tables.hpp"

namespace roundelay::reduce {

constinit const Table avx512_table = all_kernels();

}  // namespace roundelay::reduce
