"""Programs: their waits by brute force, and the engine's rule tried in Python.

The rule: one stream for each ordered pair of ranks, messages go and are taken in program order;
an instruction also waits for its lags; everything else may overlap.
"""

from collections import defaultdict, deque
from functools import cache
from itertools import product
from random import Random

import numpy as np
import pytest

import roundelay as rl
from roundelay.lower import lower
from roundelay.program import SEND
from roundelay.schedule import apply
from roundelay.verify.numbers import AddAndMix, start

CASES = [
    (a, n, params)
    for a in rl.algorithms()
    for n in (1, 2, 3, 4, 6, 7, 8, 12)
    for params in a.variants(n)
    if n != 12 or not params
]


def name(value):
    return f"{value.collective}/{value.name}" if isinstance(value, rl.Algorithm) else str(value)


@cache
def build(algorithm_name, n, params):
    algorithm = rl.find(algorithm_name)
    root = n // 2 if algorithm.kind.rooted else 0
    schedule = algorithm(n, root, **dict(params))
    everyone = range(n + schedule.helpers)
    return schedule, {r: lower(schedule, r).instructions for r in everyone}


def built(algorithm, n, params):
    return build(name(algorithm), n, tuple(sorted(params.items())))


def chunks_of(instruction, k, chunks):
    """The chunks that repetition k takes, in order, by the definition."""
    block = instruction.wrap or chunks // instruction.unit
    base = instruction.chunk // block * block
    for j in range(instruction.count):
        moved = instruction.chunk - base + k * instruction.shift + j * instruction.stride
        first = (base + moved % block) * instruction.unit
        yield from range(first, first + instruction.unit)


def order(instructions):
    """All repetitions, in the order of the schedule: round, step, reads before writes, listing."""
    every = [(i, k) for i, x in enumerate(instructions) for k in range(x.times)]
    key = {
        (i, k): (instructions[i].round, instructions[i].start + k, instructions[i].op != SEND, i)
        for i, k in every
    }
    return sorted(every, key=key.get)


@pytest.mark.parametrize(("algorithm", "n", "params"), CASES, ids=name)
def test_waits_cover_every_dependence_and_point_back(algorithm, n, params):
    schedule, programs = built(algorithm, n, params)
    for instructions in programs.values():
        listed = order(instructions)
        position = {at: i for i, at in enumerate(listed)}
        waits = [{w.instruction: w.lag for w in x.waits} for x in instructions]
        for i, k in listed:
            for j, lag in waits[i].items():
                needed = min(instructions[j].times, k + lag)
                assert needed <= 0 or position[j, needed - 1] < position[i, k]
        by_chunk = defaultdict(list)
        for i, k in listed:
            for chunk in chunks_of(instructions[i], k, schedule.chunks):
                by_chunk[chunk].append((i, k))
        for users in by_chunk.values():
            for (j, kj), (i, k) in product(users, users):
                writes = instructions[i].op != SEND or instructions[j].op != SEND
                if i != j and writes and position[j, kj] < position[i, k]:
                    assert kj < min(instructions[j].times, k + waits[i].get(j, -k))


class Execution:
    """The rule, on numbers: any instruction that may go, in random order, until none may."""

    def __init__(self, schedule, programs, slots, seed):
        self.schedule, self.programs, self.slots = schedule, programs, slots
        self.values, _ = start(schedule, np.arange(schedule.chunks), np.random.default_rng(seed))
        self.done = {r: [0] * len(x) for r, x in programs.items()}
        self.posted = {r: [0] * len(x) for r, x in programs.items()}
        self.streams = defaultdict(deque)
        self.turns = {
            (r, x.peer, x.op == SEND): deque()
            for r, instructions in programs.items()
            for x in instructions
        }
        for r, instructions in programs.items():
            for i, k in order(instructions):
                x = instructions[i]
                self.turns[r, x.peer, x.op == SEND].append((i, k))
        self.random = Random(seed)

    def may(self, r, i):
        """Whether the next repetition of an instruction may go now."""
        x = self.programs[r][i]
        k = self.posted[r][i]
        if k == x.times or self.turns[r, x.peer, x.op == SEND][0] != (i, k):
            return False
        if any(self.done[r][w.instruction] < min(self.programs[r][w.instruction].times, k + w.lag)
               for w in x.waits):  # fmt: skip
            return False
        if x.op == SEND:
            return not self.slots or len(self.streams[r, x.peer]) < self.slots
        return bool(self.streams[x.peer, r])

    def go(self, r, i):
        x = self.programs[r][i]
        k = self.posted[r][i]
        places = list(chunks_of(x, k, self.schedule.chunks))
        self.turns[r, x.peer, x.op == SEND].popleft()
        self.posted[r][i] += 1
        if x.op == SEND:
            copied = self.slots is None or self.slots > 0 or x.bounce
            kept = self.values[r, places].copy() if copied else None
            self.streams[r, x.peer].append((i, places, kept))
            self.done[r][i] += bool(copied)
            return
        sender, taken, kept = self.streams[x.peer, r].popleft()
        assert len(taken) == len(places)
        if kept is None:
            kept = self.values[x.peer, taken].copy()
            self.done[x.peer][sender] += 1
        old = self.values[r, places]
        self.values[r, places] = kept if x.op == "copy" else AddAndMix()(old, kept)
        self.done[r][i] += 1

    def run(self):
        everything = [(r, i) for r, x in self.programs.items() for i in range(len(x))]
        while True:
            able = [at for at in everything if self.may(*at)]
            if not able:
                break
            for at in self.random.sample(able, min(len(able), 3)):
                if self.may(*at):
                    self.go(*at)
        stuck = [(r, i) for r, i in everything if self.done[r][i] < self.programs[r][i].times]
        return stuck


SMALL = [case for case in CASES if case[1] in (2, 3, 4, 6, 8) and not case[2]]


@pytest.mark.parametrize("slots", [None, 1, 0], ids=["any_slots", "one_slot", "zero_copy"])
@pytest.mark.parametrize(("algorithm", "n", "params"), SMALL, ids=name)
def test_the_rule_gives_the_bits_of_the_listed_order(algorithm, n, params, slots):
    """With any number of slots, with one, and with none (the receiver reads the sender's place)."""
    schedule, programs = built(algorithm, n, params)
    execution = Execution(schedule, programs, slots, seed=n)
    assert execution.run() == []
    values, _ = start(schedule, np.arange(schedule.chunks), np.random.default_rng(n))
    for step in schedule.moves():
        apply(step, values, AddAndMix())
    must = schedule.after()
    assert (execution.values[must] == values[must]).all()


def test_a_bounce_is_needed_exactly_where_a_step_sends_and_overwrites():
    """Without it recursive doubling is stuck: each waits for the other to be read first."""
    schedule, programs = build("all_reduce/recursive_doubling", 4, ())
    assert all(x.bounce for x in programs[0] if x.op == SEND)
    from dataclasses import replace

    without = {r: tuple(replace(x, bounce=False) for x in p) for r, p in programs.items()}
    assert Execution(schedule, without, 0, seed=0).run() != []
    for other in ("ring", "halving_doubling", "double_tree", "rails", "switch", "two_shot"):
        _, programs = build(f"all_reduce/{other}", 8, ())
        assert not any(x.bounce for p in programs.values() for x in p)


def test_the_ring_is_four_instructions_with_constant_lags():
    """A rank of a ring over 16,384 waits for the same few things at every n."""
    for n in (4, 12, 16384):
        schedule = rl.build("all_reduce/ring", n)
        found = [[(w.instruction, w.lag) for w in x.waits] for x in lower(schedule, 2).instructions]
        assert found == [[(1, 0)], [], [(1, n - 1), (3, 0)], [(0, 1), (1, 0)]]


def test_parts_and_strangers_are_refused():
    with pytest.raises(rl.RoundelayError, match="rank 4"):
        lower(rl.build("all_reduce/ring", 4), 4)
    part = rl.on([[0, 1], [2, 3]], rl.build("all_reduce/ring", 2))
    with pytest.raises(rl.RoundelayError, match="is a part"):
        lower(part, 0)
