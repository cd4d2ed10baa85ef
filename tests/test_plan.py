"""Plans: what the engine does, run here on numbers, in the order in which it does it."""

from collections import defaultdict, deque

import numpy as np
import pytest

import roundelay as rl
from roundelay.plan import plan
from roundelay.program import OWN, Bounce, Space
from roundelay.schedule import apply
from roundelay.verify.numbers import AddAndMix, start

CASES = [
    (f"{a.collective}/{a.name}", n, tuple(sorted(dict(params).items())))
    for a in rl.algorithms()
    for n in (1, 2, 3, 4, 5, 7, 8, 9)
    for params in a.variants(n)
]


def build(name, n, params):
    a = rl.find(name)
    return a(n, n // 2 if a.kind.rooted else 0, **dict(params))


class Rank:
    """One rank's memory and program counter."""

    def __init__(self, made, values):
        self.plan, self.next = made, 0
        self.memory = {space: {} for space in Space}
        for chunk, value in enumerate(values):
            self.memory[Space.INPUT][chunk] = value

    def chunks(self, entry, of):
        for s in entry.segments:
            for chunk in range(s.first, s.first + s.chunks):
                yield chunk, s.space if of == "space" else s.home


def go(ranks, streams, r):
    """Do the next entry of a rank, if its messages are there."""
    rank = ranks[r]
    entry = rank.plan.entries[rank.next]
    if entry.send:
        message = [rank.memory[space][c] for c, space in rank.chunks(entry, "space")]
        for peer in entry.peers:
            streams[r, peer].append((entry.step, message))
    else:
        peers = [p for p in entry.peers if p != OWN]
        if not all(streams[p, r] for p in peers):
            return False
        own = [rank.memory[s].get(c) for c, s in rank.chunks(entry, "space")]
        total = None
        for p in entry.peers:
            if p == OWN:
                values = own
            else:
                step, values = streams[p, r].popleft()
                assert step == entry.step
                assert len(values) == len(own)
            total = values if total is None else [AddAndMix()(a, b) for a, b in
                                                  zip(total, values, strict=True)]  # fmt: skip
        for (c, home), value in zip(rank.chunks(entry, "home"), total, strict=True):
            rank.memory[home][c] = value
    rank.next += 1
    return True


@pytest.mark.parametrize(("name", "n", "params"), CASES, ids=str)
def test_plans_done_in_order_give_the_bits_of_the_schedule(name, n, params):
    schedule = build(name, n, params)
    everyone = range(n + schedule.helpers)
    values, _ = start(schedule, np.arange(schedule.chunks), np.random.default_rng(n))
    before = schedule.before()
    ranks = {r: Rank(plan(schedule, r), values[r]) for r in everyone}
    streams = defaultdict(deque)
    moved = True
    while moved:
        moved = False
        for r in everyone:
            while ranks[r].next < len(ranks[r].plan.entries) and go(ranks, streams, r):
                moved = True
    assert all(k.next == len(k.plan.entries) for k in ranks.values())
    assert not any(streams.values())
    for step in schedule.moves():
        apply(step, values, AddAndMix())
    for r, chunk in np.argwhere(schedule.after()).tolist():
        found = ranks[r].memory[Space.OUTPUT][chunk]
        assert np.array_equal(found, values[r, chunk]), (r, chunk, before[r, chunk])


def test_one_shot_is_one_send_and_one_reception_of_all():
    made = plan(rl.build("all_reduce/one_shot", 4), 2)
    send, receive = made.entries
    assert (send.send, send.peers) == (True, (0, 1, 3))
    assert send.bounce == Bounce.IN_PLACE
    assert (receive.send, receive.peers) == (False, (0, 1, OWN, 3))
    assert receive.after == ((0, True),)


def test_everybody_begins_with_its_neighbour():
    made = plan(rl.build("all_to_all/direct", 5), 3)
    assert [e.peers[0] for e in made.entries if e.send] == [4, 0, 1, 2]


def test_a_piece_is_sent_once_whatever_the_number_of_readers():
    made = plan(rl.build("broadcast/direct", 9), 0)
    assert [e.peers for e in made.entries if e.send] == [tuple(range(1, 9))]
    own = [e for e in made.entries if not e.send]
    assert [e.peers for e in own] == [(OWN,)]


def test_what_is_sent_without_being_there_is_named():
    wrong = rl.Schedule("broadcast", 3, 1, [rl.Round([1], [2], 0, rl.COPY)])
    with pytest.raises(rl.RoundelayError, match="holds nothing"):
        plan(wrong, 1)


def test_runs_that_overlap_in_one_step_are_refused():
    both = rl.Round([0, 1], [2, 2], [0, 1], [rl.REDUCE, rl.REDUCE], count=[2, 1])
    wrong = rl.Schedule("all_reduce", 3, 3, [both])
    with pytest.raises(rl.RoundelayError, match="twice in step"):
        plan(wrong, 2)
