"""The native core, written in C++. For the library's own use: it changes without notice.

`import roundelay` does not load it.
"""

from collections.abc import Sequence
from typing import Any, SupportsFloat, SupportsIndex

from typing_extensions import Buffer

types: tuple[str, ...]
"""Names of element types, in the order of the engine's numbers for them."""

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

class Node:
    """The memory that the participants of one node share; see native/engine/node.hpp."""

    @staticmethod
    def make(participants: int, arena: int) -> Node:
        """New memory, with `arena` bytes for each participant; less where there is not enough."""

    @staticmethod
    def open(pid: int, fd: int) -> Node:
        """The memory that another process of this node has made."""

    def claim(self, participant: int) -> None:
        """Take the memory of one's own arena."""

    def populate(self) -> None:
        """Map all of it now, when all have claimed theirs."""

    @property
    def fd(self) -> int:
        """For `open`."""

    @property
    def arena(self) -> int:
        """Bytes of each participant's arena."""

class Task:
    """A plan with sizes: what an endpoint does for one call."""

class Counts:
    """How often tasks have been done; for as long as any task or the owner lives."""

    def __init__(self) -> None: ...
    def read(self) -> tuple[int, int, int]:
        """Calls that have ended well, their bytes, and ns in which they were under way."""

def task(
    plan: Any,
    participants: int,
    input: Any,
    output: Any,
    length: Any,
    op: str,
    dtype: str,
    options: dict[str, int],
    counts: Counts | None,
) -> Task:
    """A plan (int64, as `roundelay.team` writes it) over a layout, cut into slices.

    `counts` is raised by every call of it, by one and by the option `bytes`.
    """

class Endpoint:
    """One participant of an exchange; see native/engine/endpoint.hpp."""

    def __init__(
        self,
        node: Node,
        local: int,
        participant: int,
        participants: list[str],
        collectives: list[str],
        crowded: bool,
        home: int,
        keep_gil: bool,
    ) -> None: ...
    def meet(self, participant: int, local: int) -> None:
        """A participant of this node."""

    def link(self, participant: int, connections: list[int], checked: bool) -> None:
        """A participant of another node, and TCP connections with it: the first is for words.

        `checked`: all that goes over them carries check sums.
        """

    def knows(self, participant: int) -> bool:
        """Whether it has been met or linked."""

    def trace(self, events: int) -> None:
        """Keep the last events from now on, in fresh room for so many; 0 for no more."""

    def traced(self) -> tuple[bytes, int]:
        """The events kept, oldest first, as in native/engine/trace.hpp; and how many there were."""

    def last_calls(self) -> list[tuple[int, int, int, int, int, int, int, int, int]]:
        """The last 16 calls, oldest first; they are always kept.

        Of each its number, elements, plan, root, collective, type and operation, and when it
        began and ended, in ns of CLOCK_MONOTONIC; 0 while it is under way.
        """

    def failed(self) -> bool:
        """Whether it can be used no more, because an exchange has failed; from any thread."""

    def waits(self) -> list[tuple[int, int, int, int]]:
        """Of each participant that was waited for: number of waits, ns in all, ns of the longest.

        Only waits that were longer than the flag is spun on, some 50 us, count; where ranks share
        processors, nobody spins. Any thread may ask.
        """

    def spans(self) -> tuple[int, bytes]:
        """How many calls there were; of the last 1,024 begin and end, oldest first.

        [call, 2] of int64, in ns of CLOCK_MONOTONIC; all must have ended.
        """

    def run(self, task: Task, input: Any, output: Any, in_place: bool) -> None:
        """Do a task; the GIL is released while it takes long."""

    def call(
        self,
        collective: int,
        input: Any,
        output: Any,
        op: str | None,
        algorithm: Any,
        dtype: str | None,
        root: int,
    ) -> bool:
        """Whether a call like this was remembered; then it has been made again."""

    def remember(
        self,
        collective: int,
        input: Any,
        output: Any,
        op: str | None,
        algorithm: Any,
        dtype: str | None,
        root: int,
        task: Task,
        in_place: bool,
    ) -> None:
        """Have `call` do this task for calls with these names, sizes, types and overlap."""

    def shared(self, size: int) -> Buffer:
        """A block of memory that others of the node may read and write in place.

        It is there as long as the endpoint, or anything that looks at it.
        """

    def absent(self) -> list[int]:
        """Participants of this node that have not come to the latest call."""

    def close(self) -> None:
        """Say farewell; a call of another thread is interrupted before."""

    def patience(self, seconds: float) -> None:
        """How long a wait may take."""

    def enter(self) -> None:
        """Have calls of other threads refused, until as many `leave` as `enter`."""

    def leave(self) -> None:
        """See `enter`."""

    def interrupt(self) -> None:
        """Ends, with `Interrupted`, the call that another thread is waiting in."""

def attachable(pid: int, address: int) -> bool:
    """Whether this process may read that memory, which is another's `own_address()`."""

def own_address() -> int:
    """The address of something for others to read."""

def checksum(memory: Any, portable: bool = False) -> int:
    """CRC-32C of bytes; `portable`: without the processor's instruction for it."""

def ping(memory: Any, role: int, rounds: int) -> int:
    """Ns that a cache line takes one way between two processes, which call it as 0 and 1."""

class Recurrence:
    """When messages begin and end: `roundelay.simulate.recurrence`, for large schedules.

    All arrays are of int64 and contiguous; messages stand by round, then by first step.
    """

    def __init__(self, participants: int, rounds: int) -> None: ...
    def add(
        self,
        first: int,
        times: Any,
        messages: Any,
        src: Any,
        dst: Any,
        start: Any,
        waits: Any,
        before: Any,
    ) -> None:
        """A phase; `messages` says where those of each round begin, and where the last end."""

    def run(self, costs: tuple[Any, ...], ends: Any, steady: bool) -> None:
        """Sets `ends`, [participant], ps."""

    def sample(
        self,
        costs: tuple[Any, ...],
        step: Any,
        card: Any,
        link: Any,
        links: Any,
        seed: int,
        threads: int,
        found: Any,
    ) -> None:
        """Sets `found`, [sample], ps; tables of factors are of float32."""
