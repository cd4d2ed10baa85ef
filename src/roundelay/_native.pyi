"""The native core, written in C++. For the library's own use: it changes without notice.

`import roundelay` does not load it.
"""

from collections.abc import Sequence
from typing import SupportsFloat, SupportsIndex

from typing_extensions import Buffer

def reduce(
    op: str,
    dtype: str,
    destination: Buffer,
    sources: Sequence[Buffer],
    scale: SupportsFloat | SupportsIndex | None = None,
    *,
    isa: str | None = None,
) -> None:
    """Set `destination[i]` to `sources[0][i] op sources[1][i] op ...`, in this order, in one pass.

    The same input gives the same bits on every processor and instruction set, at every length and
    alignment, whatever rounding the thread has set.

    - Integers wrap. `bool` is 0 or 1, and any byte but 0 is read as true; its sum and max are
      *or*, its product and min are *and*.
    - 16- and 8-bit floats are accumulated in float32 and rounded once, to nearest even, when all
      sources are in. What is too large is infinity, and NaN in float8_e4m3fn, which has no
      infinity.
    - min and max give NaN when a source is NaN, and take -0 for less than +0.
    - A NaN in the result is always the same one: quiet, positive, without payload. This holds for
      a single source too.
    - A complex product is (ac - bd) + (ad + bc)i, every product rounded before the sum.

    Args:
        op: sum, product, min, max, band, bor, bxor, avg or premul_sum. Bitwise ones are for
            integers and bool; min and max are not for complex types; avg and premul_sum are not
            for bool.
        dtype: float64, float32, float16, bfloat16, float8_e4m3fn, float8_e5m2, int8 to int64,
            uint8 to uint64, bool, complex64 or complex128. It says how the bytes are read; the
            buffers' own types are not looked at.
        destination: Contiguous memory that can be written. Nothing is written when an error is
            raised.
        sources: One or more buffers of as many bytes. Each may be the destination itself, and must
            not overlap it otherwise. No alignment is needed.
        scale: For avg, how many contributions the sum has, 1 to 2147483647: the sum is divided by
            it once, in float32 for 16- and 8-bit floats and complex64, in the type itself
            otherwise, towards zero for integers. For premul_sum, the factor of each source, a
            value of the type (a finite real number for float and complex types). None for others.
        isa: One of `isas()`; None is `isa()`.

    Raises:
        RoundelayError: The input is bad. The message says what was found and what was expected.
    """

def isa() -> str:
    """The instruction set whose kernels `reduce` uses: the last of `isas()`.

    The environment variable ROUNDELAY_ISA names another; it is read once.

    Raises:
        RoundelayError: This processor cannot run what ROUNDELAY_ISA names.
    """

def isas() -> tuple[str, ...]:
    """What this processor can run, the least first.

    Some of sse2, avx2 and avx512; or neon; or generic.
    """
