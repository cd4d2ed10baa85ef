"""The schedule that an MSCCL++ plan stands for, and its proof."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from ..errors import RoundelayError
from ..formats.mscclpp_plan import Block, Buffer, ExecutionPlan, Gpu, Operation
from ..schedule import Schedule
from ..verify import Verdict, verify
from .ordering import Act, Key, NotProved, Unit
from .replay import ACTS, replay

SIGNALS: Final = ("signal", "rlxsignal", "pws", "pwsf")
WAITS: Final = ("wait", "rlxwait")
COPIES: Final = ("copy", "cpkt", "upkt", "put", "pws", "pwsf", "get", "ppkt", "rppkt")
SUMS: Final = ("re", "res", "rre", "rres", "repkt", "recpkt", "respkt", "recspkt")
SWITCH: Final = ("glre", "glres", "gstore", "gstorepkt")
ORDER: Final = ("nop", "barrier", "flush", "sem_acquire", "sem_release", "pipeline")
OPERATIONS: Final = frozenset((*SIGNALS, *WAITS, *COPIES, *SUMS, *SWITCH, *ORDER))
_BUFFERS: Final = ("i", "o", "s")


def from_mscclpp(plan: ExecutionPlan, *, in_place: bool | None = None) -> Schedule:
    """The schedule of a plan. A pipeline is gone through once, for its rounds do the same.

    Args:
        plan: as read.
        in_place: whether input and output are the same memory; None: as the plan says.

    Raises:
        RoundelayError: it is not sound (a wait that nobody signals, ids that are not there, places
            that are read empty or used unordered), or has groups of thread blocks, which are not
            proved.
    """
    per_loop = max(max(g.input_chunks, g.output_chunks) for g in plan.gpus)
    return replay(plan.ours, plan.name, len(plan.gpus), per_loop, _Reader(plan).acts(),
                  in_place=plan.inplace if in_place is None else in_place)  # fmt: skip


def prove_mscclpp(plan: ExecutionPlan, *, in_place: bool | None = None) -> Verdict:
    """Prove a plan.

    Raises:
        RoundelayError: as `from_mscclpp`.
    """
    return verify(from_mscclpp(plan, in_place=in_place))


def flat(ops: list[Operation]) -> Iterator[Operation]:
    """Operations with those of pipelines in their place."""
    for op in ops:
        if op.name == "pipeline":
            yield from flat(op.ops)
        else:
            yield op


@dataclass
class _Reader:
    """Makes acts, rank by rank and thread block by thread block."""

    plan: ExecutionPlan
    made: list[Act] = field(default_factory=list)
    signals: dict[Key, list[int]] = field(default_factory=lambda: defaultdict(list))
    waits: dict[Key, list[int]] = field(default_factory=lambda: defaultdict(list))
    releases: dict[Key, list[int]] = field(default_factory=lambda: defaultdict(list))
    acquires: dict[Key, list[int]] = field(default_factory=lambda: defaultdict(list))
    barriers: dict[Key, list[list[int]]] = field(default_factory=lambda: defaultdict(list))
    packets: dict[Key, list[int]] = field(default_factory=lambda: defaultdict(list))
    readers: list[tuple[int, list[Key]]] = field(default_factory=list)

    def acts(self) -> list[Act]:
        """All acts, with what each comes after."""
        self.peers = [
            [peer for c in gpu.channels if c.channel_type != "switch" for peer in c.connected_to]
            for gpu in self.plan.gpus
        ]
        for gpu in self.plan.gpus:
            for block in gpu.threadblocks:
                self._block(gpu, block)
        after = {i: list(act.after) for i, act in enumerate(self.made)}
        for key, waits in self.waits.items():
            self._paired(after, waits, self.signals[self._other(key)], 0, "signals")
        for key, waits in self.acquires.items():
            start = self.plan.gpus[key[0]].semaphores[key[2]].init_value
            self._paired(after, waits, self.releases[key], start, "releases")
        for blocks in self.barriers.values():
            for together in zip(*blocks, strict=False):
                for i in together:
                    after[i] += [a for j in together if j != i for a in self.made[j].after]
        for i, places in self.readers:
            after[i] += [j for place in places for j in self.packets.get(place, ()) if j != i]
        return [act._replace(after=tuple(after[i])) for i, act in enumerate(self.made)]

    def _paired(
        self, after: dict[int, list[int]], waits: list[int], tells: list[int], start: int, what: str
    ) -> None:
        for k, i in enumerate(waits[start:]):
            if k >= len(tells):
                raise RoundelayError(f"{self.made[i].where} waits for ever: there are {len(tells)} "
                                     f"{what} for {len(waits)} waits")  # fmt: skip
            after[i].append(tells[k])

    def _other(self, key: Key) -> Key:
        """The same channel at its other end: the one with the same turn among those of the pair."""
        rank, kind, number = key
        mine = self._channels(rank, kind)
        peer = mine[number]
        turn = mine[:number].count(peer)
        theirs = [i for i, p in enumerate(self._channels(peer, kind)) if p == rank]
        return (peer, kind, theirs[turn]) if turn < len(theirs) else (peer, kind, -1)

    def _channels(self, rank: int, kind: str) -> list[int]:
        found = [peer for c in self.plan.gpus[rank].channels if c.channel_type == kind
                 for peer in c.connected_to]  # fmt: skip
        if any(peer >= len(self.plan.gpus) for peer in found):
            raise RoundelayError(f"rank {rank} has a channel to a rank that is not there")
        return found

    def _block(self, gpu: Gpu, block: Block) -> None:
        last: list[int] = []
        turns: dict[Key, list[int]] = {}
        for number, op in enumerate(flat(block.ops)):
            where = f"rank {gpu.id}, thread block {block.id}, operation {number} ({op.name[:20]})"
            if op.name not in OPERATIONS:
                raise RoundelayError(f"{where} is not known; expected one of "
                                     f"{', '.join(sorted(OPERATIONS))}")  # fmt: skip
            if op.tbg_info and op.tbg_info.get("tbg_size", 1) > 1:
                raise NotProved(f"{where} is shared by a group of thread blocks; such plans "
                                     "are read, but not proved")  # fmt: skip
            me = len(self.made)
            if me >= ACTS:
                raise NotProved(f"more than {ACTS:,} operations; too many to prove")
            units = tuple(_Units(self.plan, gpu, block, op, where).all())
            self._packets(op, units, me)
            keys = self._turns(gpu, block, op, me, turns, where)
            self.made.append(Act(where, tuple(last), units, tuple(keys)))
            last = [me]
        for key, mine in turns.items():
            self.barriers[key].append(mine)

    def _packets(self, op: Operation, units: tuple[Unit, ...], me: int) -> None:
        """A packet brings its flag along: who reads it waits until it was written."""
        if "pkt" not in op.name:
            return
        reads = [place for unit in units for place in unit.reads if place[1] == "s"]
        if reads:
            self.readers.append((me, reads))
        for place in (place for unit in units for place in unit.writes if place[1] == "s"):
            self.packets[place].append(me)

    def _turns(
        self, gpu: Gpu, block: Block, op: Operation, me: int, barriers: dict[Key, list[int]],
        where: str,
    ) -> Iterator[Key]:  # fmt: skip
        """Note signals, waits and semaphores, whose order among themselves must be known."""
        if op.name in (*SIGNALS, *WAITS):
            kind = op.channel_type or "memory"
            listed = [i for c in block.channels if c.channel_type == kind for i in c.channel_ids]
            for i in op.channel_ids:
                number = _get(listed, i, where, "channel")
                _get(self._channels(gpu.id, kind), number, where, "channel")
                into = self.signals if op.name in SIGNALS else self.waits
                into[gpu.id, kind, number].append(me)
                yield gpu.id, f"{op.name[-4:]} over {kind}", number
        for number in op.semaphore_ids:
            _get(gpu.semaphores, number, where, "semaphore")
            into = self.acquires if op.name == "sem_acquire" else self.releases
            into[gpu.id, "semaphore", number].append(me)
        if op.name == "barrier":
            barriers.setdefault((gpu.id, "barrier", op.barrier_id or 0), []).append(me)


@dataclass(frozen=True)
class _Units:
    """What an operation reads and writes."""

    plan: ExecutionPlan
    gpu: Gpu
    block: Block
    op: Operation
    where: str

    def all(self) -> Iterator[Unit]:
        """Chunk by chunk."""
        op = self.op
        if op.name in SWITCH:
            yield from self._switch()
            return
        if op.name not in (*COPIES, *SUMS):
            return
        sizes = {buffer.size for buffer in (*op.src_buff, *op.dst_buff)}
        if not op.src_buff or not op.dst_buff or len(sizes) > 1:
            raise RoundelayError(f"{self.where}: source and target of sizes {sorted(sizes)}; "
                                 "expected both, of one size")  # fmt: skip
        sources, targets = map(self._places, (op.src_buff, op.dst_buff))
        if op.name in SUMS:
            for k in range(sizes.pop()):
                yield Unit(tuple(s[k] for s in sources), tuple(t[k] for t in targets))
            return
        if len(sources) == 1:
            sources *= len(targets)
        if len(sources) != len(targets):
            raise RoundelayError(f"{self.where}: {len(sources)} sources for {len(targets)} targets")
        for source, target in zip(sources, targets, strict=True):
            yield from (Unit((s,), (t,)) for s, t in zip(source, target, strict=True))

    def _switch(self) -> Iterator[Unit]:
        """A switch adds what all ranks hold, or gives all ranks the same."""
        groups = [g for c in self.gpu.channels if c.channel_type == "switch" for g in c.rank_groups]
        kinds = [c.buffer_type or c.buff for c in self.gpu.channels if c.channel_type == "switch"
                 for _ in c.rank_groups]  # fmt: skip
        listed = [i for c in self.block.channels if c.channel_type == "switch"
                  for i in c.channel_ids]  # fmt: skip

        def places(buffers: list[Buffer], k: int) -> tuple[Key, ...]:
            found: list[Key] = []
            for b in buffers:
                if b.switch_channel_id is None:
                    found.append(self._places([b])[0][k])
                    continue
                i = _get(listed, b.switch_channel_id, self.where, "switch channel")
                ranks = _get(groups, i, self.where, "switch channel").ranks
                found += [self._key(rank, kinds[i], b.index + k) for rank in ranks]
            return tuple(found)

        for k in range(max((b.size for b in self.op.src_buff), default=0)):
            reads, writes = places(self.op.src_buff, k), places(self.op.dst_buff, k)
            yield Unit(reads, ((-1, "switch", (*self.where, k)), *writes))

    def _places(self, buffers: list[Buffer]) -> list[list[Key]]:
        kind = self.op.channel_type or "memory"
        refs = [i for r in self.block.remote_buffer_refs if r.access_channel_type == kind
                for i in r.remote_buffer_ids]  # fmt: skip
        found = []
        for b in buffers:
            rank, name = self.gpu.id, b.type or ""
            if b.buffer_id is not None:
                number = _get(refs, b.buffer_id, self.where, "remote buffer")
                remote = _get(self.gpu.remote_buffers, number, self.where, "remote buffer")
                rank, name = remote.rank, remote.type
            found.append([self._key(rank, name, b.index + k) for k in range(b.size)])
        return found

    def _key(self, rank: int, name: str, index: int) -> Key:
        gpu = _get(self.plan.gpus, rank, self.where, "rank")
        if name not in _BUFFERS:
            raise RoundelayError(f"{self.where}: buffer {name[:20]!r}; expected i, o or s")
        room = (gpu.input_chunks, gpu.output_chunks, gpu.scratch_chunks)[_BUFFERS.index(name)]
        if self.plan.inplace and name != "s":
            room = max(gpu.input_chunks, gpu.output_chunks)
        if index >= room:
            raise RoundelayError(f"{self.where}: chunk {index} of {name} on rank {rank}; it has "
                                 f"{room}")  # fmt: skip
        return rank, name, index


def _get(found: Any, number: int, where: str, what: str) -> Any:
    if not 0 <= number < len(found):
        raise RoundelayError(f"{where}: {what} {number}; there are {len(found)}")
    return found[number]
