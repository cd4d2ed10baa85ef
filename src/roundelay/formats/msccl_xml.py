"""MSCCL's XML algorithms: what each thread block of each GPU sends, receives and adds.

The form is that of msccl-tools 2.3 (msccl/language/ir.py); the limits are those of RCCL's parser
(src/misc/msccl/msccl_parser.cc), which are the narrower ones and need attributes that msccl-tools
does not write.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Final
from xml.sax.saxutils import quoteattr

from ..errors import RoundelayError
from ..i18n import message
from .note import Note
from .xml import Element, read_xml

COLLECTIVES: Final = MappingProxyType(
    {"all_reduce": "allreduce", "all_gather": "allgather", "reduce_scatter": "reducescatter",
     "all_to_all": "alltoall", "broadcast": "broadcast", "reduce": "reduce", "gather": "gather",
     "scatter": "scatter"}
)  # fmt: skip
"""Names there, by ours."""
TYPES: Final = ("s", "r", "rcs", "rrs", "rrc", "rrcs", "cpy", "re", "nop")
SENDING: Final = ("s", "rcs", "rrs", "rrcs")
RECEIVING: Final = ("r", "rcs", "rrs", "rrc", "rrcs")
BUFFERS: Final = MappingProxyType(
    {"i": "i", "o": "o", "s": "s", "input": "i", "output": "o", "scratch": "s"}
)
PROTOCOLS: Final = ("Simple", "LL", "LL128")
NEEDED: Final = MappingProxyType({"outofplace": 1, "minBytes": 0, "maxBytes": 2**63 - 1})
"""Attributes that RCCL's parser insists on and msccl-tools leaves out; what stands for them."""
STEPS: Final = 64
BLOCKS: Final = 64
BLOCKS_PER_CHANNEL: Final = 32
COUNT: Final = 71
"""Chunks of a step, at most."""
CHANNELS: Final = 64
RANKS: Final = 4096
LARGEST: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a thread block: `count` chunks from one place to another.

    Attributes:
        kind: one of `TYPES`: send, receive, receive-copy-send, receive-reduce-send,
            receive-reduce-copy, the last with a send, local copy, local reduction, nothing.
        source, target: buffer ("i", "o" or "s") and first chunk; of what is added to what comes,
            and of what is written.
        after: thread block and step that must be done before, or None.
        waited_for: whether another step waits for this one.
        line: where it stands in the file, 0 if it comes from none.
    """

    kind: str
    source: tuple[str, int]
    target: tuple[str, int]
    count: int
    after: tuple[int, int] | None = None
    waited_for: bool = False
    line: int = 0


@dataclass(frozen=True, slots=True)
class Block:
    """A thread block: peers it sends to and receives from, or -1, over one channel."""

    send: int
    recv: int
    channel: int
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Gpu:
    """One rank: chunks of its input, output and scratch, and its thread blocks."""

    inputs: int
    outputs: int
    scratch: int
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Algo:
    """A whole file.

    Attributes:
        collective: ours where `COLLECTIVES` has it, else as in the file.
        in_place, out_of_place: which calls it is for.
        low, high: bytes of calls that it is for, both included.
        missing: attributes that RCCL's parser insists on and that are not there.
        notes: what was odd.
    """

    name: str
    collective: str
    protocol: str
    channels: int
    gpus: tuple[Gpu, ...]
    in_place: bool
    out_of_place: bool
    low: int = 0
    high: int = NEEDED["maxBytes"]
    missing: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()

    @property
    def chunks_per_loop(self) -> int:
        """The larger of input and output, in chunks, over all ranks."""
        return max((max(gpu.inputs, gpu.outputs) for gpu in self.gpus), default=0)


def write_msccl(algo: Algo) -> bytes:
    """The file, with all attributes that msccl or RCCL reads.

    Raises:
        RoundelayError: it goes beyond the limits of RCCL's parser; the message names which.
    """
    if wrong := broken_limits(algo):
        raise RoundelayError(f"RCCL's MSCCL would refuse it: {'; '.join(wrong[:4])}")
    collective = COLLECTIVES.get(algo.collective, algo.collective)
    out = [
        f'<algo name={quoteattr(algo.name)} proto="{algo.protocol}" nchannels="{algo.channels}" '
        f'nchunksperloop="{algo.chunks_per_loop}" ngpus="{len(algo.gpus)}" coll="{collective}" '
        f'inplace="{int(algo.in_place)}" outofplace="{int(algo.out_of_place)}" '
        f'minBytes="{algo.low}" maxBytes="{algo.high}">'
    ]
    for rank, gpu in enumerate(algo.gpus):
        out.append(f'  <gpu id="{rank}" i_chunks="{gpu.inputs}" o_chunks="{gpu.outputs}" '
                   f's_chunks="{gpu.scratch}">')  # fmt: skip
        for number, block in enumerate(gpu.blocks):
            out.append(f'    <tb id="{number}" send="{block.send}" recv="{block.recv}" '
                       f'chan="{block.channel}">')  # fmt: skip
            out += [_step(i, step) for i, step in enumerate(block.steps)]
            out.append("    </tb>")
        out.append("  </gpu>")
    return ("\n".join([*out, "</algo>"]) + "\n").encode()


def _step(number: int, step: Step) -> str:
    block, after = step.after or (-1, -1)
    return (
        f'      <step s="{number}" type="{step.kind}" srcbuf="{step.source[0]}" '
        f'srcoff="{step.source[1]}" dstbuf="{step.target[0]}" dstoff="{step.target[1]}" '
        f'cnt="{step.count}" depid="{block}" deps="{after}" hasdep="{int(step.waited_for)}"/>'
    )


def broken_limits(algo: Algo) -> list[str]:
    """What RCCL's parser would refuse, in words; none if it takes the file."""
    wrong = [f"attribute {name} is missing" for name in algo.missing]
    if algo.collective not in COLLECTIVES:
        wrong.append(f"collective {algo.collective!r} is none of {', '.join(COLLECTIVES.values())}")
    for rank, gpu in enumerate(algo.gpus):
        if len(gpu.blocks) > BLOCKS:
            wrong.append(f"rank {rank} has {len(gpu.blocks)} thread blocks; at most {BLOCKS}")
        channels = [block.channel for block in gpu.blocks]
        for channel in sorted(set(channels)):
            if (count := channels.count(channel)) > BLOCKS_PER_CHANNEL:
                wrong.append(f"rank {rank} has {count} thread blocks on channel {channel}; at most "
                             f"{BLOCKS_PER_CHANNEL}")  # fmt: skip
        for number, block in enumerate(gpu.blocks):
            where = f"rank {rank}, thread block {number}"
            if len(block.steps) > STEPS:
                wrong.append(f"{where} has {len(block.steps)} steps; at most {STEPS}")
            if rank in (block.send, block.recv):
                wrong.append(f"{where} has its own rank as its peer")
            for i, step in enumerate(block.steps):
                if step.count > COUNT:
                    wrong.append(f"{where}, step {i} has {step.count} chunks; at most {COUNT}")
    return wrong


def read_msccl(data: bytes) -> Algo:
    """The algorithm of a file. What RCCL insists on and is not there is listed in `missing`.

    Raises:
        RoundelayError: there is no `algo` in it, it is cut off, or a number cannot be what it is.
    """
    tree = read_xml(data)
    root = next((element for element in tree.roots if element.name == "algo"), None)
    if root is None:
        raise RoundelayError(f"<{tree.roots[0].name}> in XML; expected <algo> of MSCCL")
    if tree.cut:
        raise RoundelayError(f"line {tree.notes[-1].line}: {tree.notes[-1].what}")
    gpus = {_number(gpu, "id", high=RANKS): gpu for gpu in root.named("gpu")}
    if sorted(gpus) != list(range(len(gpus))) or not gpus:
        raise _wrong(root, f"gpu ids {sorted(gpus)[:8]}", "0, 1, ... one for each rank")
    ours = {there: name for name, there in COLLECTIVES.items()}
    coll = _word(root, "coll")
    notes = list(tree.notes)
    if _number(root, "ngpus", len(gpus)) != len(gpus):
        what = message("ngpus says {said}, and there are {found}", said=root.attributes["ngpus"],
                       found=len(gpus))  # fmt: skip
        notes.append(Note(root.line, what))
    return Algo(
        root.attributes.get("name", ""), ours.get(coll, coll),
        root.attributes.get("proto", PROTOCOLS[0]), _number(root, "nchannels", 1, low=1),
        tuple(_gpu(gpus[rank]) for rank in sorted(gpus)), bool(_number(root, "inplace", 0)),
        bool(_number(root, "outofplace", 1 - _number(root, "inplace", 0))),
        _number(root, "minBytes", 0, high=2**64), _number(root, "maxBytes", 2**63 - 1, high=2**64),
        tuple(name for name in NEEDED if name not in root.attributes), tuple(notes),
    )  # fmt: skip


def _gpu(element: Element) -> Gpu:
    blocks = {_number(block, "id", high=LARGEST): block for block in element.named("tb")}
    if sorted(blocks) != list(range(len(blocks))):
        raise _wrong(element, f"tb ids {sorted(blocks)[:8]}", "0, 1, ... with none left out")
    inputs, outputs, scratch = (_number(element, f"{name}_chunks") for name in "ios")
    return Gpu(inputs, outputs, scratch, tuple(_block(blocks[i]) for i in sorted(blocks)))


def _block(element: Element) -> Block:
    steps = tuple(map(_read_step, element.named("step")))
    send, recv = (_number(element, name, -1, low=-1) for name in ("send", "recv"))
    for kinds, peer, name in ((SENDING, send, "send"), (RECEIVING, recv, "recv")):
        if peer < 0 and any(step.kind in kinds for step in steps):
            raise _wrong(element, f"{name} = -1", f"a peer, as a step needs one to {name}")
    return Block(send, recv, _number(element, "chan", 0), steps)


def _read_step(element: Element) -> Step:
    kind = _word(element, "type")
    if kind not in TYPES:
        raise _wrong(element, f"type {kind[:20]!r}", f"one of {', '.join(TYPES)}")
    block, step = (_number(element, name, -1, low=-1) for name in ("depid", "deps"))
    places = [
        (_buffer(element, f"{end}buf"), _number(element, f"{end}off", 0, low=-1))
        for end in ("src", "dst")
    ]
    return Step(
        kind, places[0], places[1], _number(element, "cnt", 1, high=2**16),
        (block, step) if block >= 0 and step >= 0 else None,
        bool(_number(element, "hasdep", 0)), element.line,
    )  # fmt: skip


def _buffer(element: Element, name: str) -> str:
    value = element.attributes.get(name, "i")
    if value not in BUFFERS:
        raise _wrong(element, f"{name} = {value[:20]!r}", "i, o or s")
    return BUFFERS[value]


def _word(element: Element, name: str) -> str:
    if not (value := element.attributes.get(name)):
        raise _wrong(element, f"no {name}", "one")
    return value


def _number(
    element: Element, name: str, default: int | None = None, *, low: int = 0, high: int = LARGEST
) -> int:
    text = element.attributes.get(name)
    if text is None and default is not None:
        return default
    try:
        value = int(text or "")
    except ValueError:
        value = low - 1
    if not low <= value <= high:
        raise _wrong(element, f"{name} = {str(text)[:30]!r}", f"a whole number from {low} up")
    return value


def _wrong(element: Element, found: str, expected: str) -> RoundelayError:
    return RoundelayError(f"line {element.line}, <{element.name}>: {found}; expected {expected}")
