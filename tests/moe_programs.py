"""What ranks do in the tests of dispatch to experts; see `rank_programs`."""

import os
import signal
import sys
import threading

import numpy as np

import roundelay as rl
from roundelay import moe

K, SLOTS, HIDDEN = 4, 2, 5


def main(name, arguments):
    comm = rl.init(timeout=float(os.environ.get("PATIENCE", "30")))
    globals()[name](comm, *arguments)
    comm.close()


def everybodys(ranks, group, seed, limit=None, counts=None):
    """The layout of all ranks' tokens, with some choices left out, and their values."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 7, ranks) if counts is None else np.asarray(counts)
    home = np.repeat(np.arange(ranks), counts)
    scores = rng.random((len(home), ranks * SLOTS))
    chosen = moe.choose(scores, min(K, ranks * SLOTS), ranks // group, limit).experts
    chosen = np.where(rng.random(chosen.shape) < 0.1, -1, chosen)
    layout = moe.Layout.of(chosen, home, moe.Placement.even(ranks * SLOTS, ranks))
    return layout, rng.integers(1, 9, (len(home), HIDDEN)).astype(float)


def there_and_back(comm, group, seeds, limit=None):
    for seed in seeds:
        layout, values = everybodys(comm.ranks, group, seed, limit)
        for scheme in moe.SCHEMES:
            once(comm, layout, values, scheme, group, limit)
    nothing = np.zeros(comm.ranks, int)
    once(comm, *everybodys(comm.ranks, group, 0, limit, nothing), "two_hop", group, limit)
    one = np.arange(comm.ranks) * (np.arange(comm.ranks) % 2)
    layout, values = everybodys(comm.ranks, group, 1, limit, one)
    layout.targets[:] = [0] + [-1] * (layout.targets.shape[1] - 1)  # all of them to one expert
    once(comm, layout, values, "two_hop", group, limit)


def once(comm, layout, values, scheme, group, limit):
    """Dispatch, let experts work, combine; and the same backwards."""
    mine = layout.home == comm.rank
    handle = moe.exchange(comm, layout.targets[mine], SLOTS, scheme, group=group, max_nodes=limit)
    same_moves(comm, handle, layout, scheme, group)
    rows = handle.dispatch(values[mine])
    wanted = received(layout, comm.rank, scheme)
    found = [(tuple(r), tuple(s)) for r, s in zip(rows.tolist(), handle.slots.tolist(),
                                                  strict=True)]  # fmt: skip
    assert sorted(found) == sorted((tuple(values[t]), slots) for t, slots in wanted), (
        scheme,
        found,
    )
    factor = (np.where(handle.slots < 0, 0, comm.rank * SLOTS + handle.slots + 1)).sum(axis=1)
    back = handle.combine(rows * factor[:, None])
    total = np.where(layout.targets < 0, 0, layout.targets + 1).sum(axis=1)
    assert (back == values[mine] * total[mine, None]).all(), scheme
    # <dispatch(x), y> = <x, combine(y)>: each is the other's transpose.
    y = np.random.default_rng(comm.rank).integers(1, 5, rows.shape).astype(float)
    left, right = (rows * y).sum(), (values[mine] * handle.combine(y)).sum()
    assert comm.all_reduce(np.array([left]))[0] == comm.all_reduce(np.array([right]))[0]


def received(layout, rank, scheme):
    """Tokens and their slots that must come to a rank, by loops."""
    every = []
    for t, row in enumerate(layout.targets.tolist()):
        here = [s % SLOTS if s >= 0 and s // SLOTS == rank else -1 for s in row]
        if scheme == "flat_expert":
            every += [(t, tuple(-1 if i != j else s for i in range(len(row))))
                      for j, s in enumerate(here) if s >= 0]  # fmt: skip
        elif max(here) >= 0:
            every.append((t, tuple(here)))
    return every


def same_moves(comm, handle, layout, scheme, group):
    """The hops send what the schedule's rounds do."""
    ranks = comm.ranks
    sent = np.array([sum(part.sent for part in parts) for parts in handle.hops])
    away = comm.all_gather(sent).reshape(ranks, len(sent), ranks)
    moves = np.zeros_like(away)
    if len(layout.home):
        schedule = moe.build(scheme, layout, group)
        assert rl.verify(schedule)
        assert rl.verify(moe.combine(schedule))
        for r in schedule:
            # A round without moves is left out of a schedule, so they are told by their step.
            hop = 1 if len(handle.hops) == 2 and (r.src // group == r.dst // group).all() else 0
            np.add.at(moves, (r.src, hop, r.dst), 1)
    assert (away == moves).all(), scheme


def in_fp8(comm, group):
    layout, values = everybodys(comm.ranks, group, 3)
    values = np.repeat(values, 60, axis=1) / 7
    mine = layout.home == comm.rank
    for scheme in moe.SCHEMES:
        handle = moe.exchange(comm, layout.targets[mine], SLOTS, scheme, group=group)
        exact = handle.dispatch(values[mine])
        rough = handle.dispatch(values[mine], fp8=True)
        assert rough.dtype == np.float32
        local = moe.from_fp8(*moe.to_fp8(exact))
        assert (rough == local).all()


def mistakes(comm):
    """All ranks make the same; nothing is exchanged, so that they can go on."""
    tokens = np.zeros((2, 2), int)
    for targets, more, message in (
        ([[0, comm.ranks * SLOTS]], {}, f"target {comm.ranks * SLOTS}; expected slots 0 to"),
        ([[-2, 0]], {}, "target -2"),
        ([[0.5, 0]], {}, "targets is float64"),
        ([0, 1], {}, "of shape (2,)"),
        (tokens, {"scheme": "three_hop"}, "no scheme 'three_hop'"),
        (tokens, {"group": 3}, "group = 3; expected a divisor"),
        (tokens, {"max_nodes": 0}, "max_nodes = 0; expected a whole number from 1 up"),
        ([[0, comm.ranks * SLOTS - 1]], {"group": 1, "max_nodes": 1}, "goes to 2 nodes"),
    ):
        says(message, lambda t=targets, m=more: moe.exchange(comm, t, SLOTS, **m))
    handle = moe.exchange(comm, tokens, SLOTS, group=2)
    says("x has shape (3, 4); expected (2, columns)", lambda: handle.dispatch(np.zeros((3, 4))))
    says("x has shape (2,)", lambda: handle.dispatch(np.zeros(2)))
    wrong = np.zeros((handle.received, 3), np.int64)
    says("y is of int64; expected float32 or float64", lambda: handle.combine(wrong))
    says("y has shape", lambda: handle.combine(np.zeros((handle.received + 1, 3))))
    says("for FP8", lambda: handle.dispatch(np.zeros((2, 3), int), fp8=True))
    assert handle.combine(handle.dispatch(np.ones((2, 3)))).sum() == 6
    widths = np.zeros((2, 2 + comm.rank % 2), int)
    says("targets a token here and", lambda: moe.exchange(comm, widths, SLOTS, group=2))
    comm.barrier()


def says(message, do):
    try:
        do()
    except rl.RoundelayError as error:
        found = str(error)
    else:
        found = "no error"
    assert message in found, found


def dies(comm, dying, phase):
    """One rank ends in the midst; all others must get an error and leave."""
    layout, values = everybodys(comm.ranks, 2, 5, counts=[40] * comm.ranks)
    mine = layout.home == comm.rank
    x = np.repeat(values[mine], 2000, axis=1)
    handle = moe.exchange(comm, layout.targets[mine], SLOTS, group=2)
    rows = handle.dispatch(x)
    if comm.rank == dying:
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGKILL)).start()
    try:
        while True:
            if phase == "layout":
                moe.exchange(comm, layout.targets[mine], SLOTS, group=2)
            elif phase == "dispatch":
                handle.dispatch(x)
            else:
                handle.combine(rows)
    except rl.ExchangeError as error:
        print(type(error).__name__)
        sys.stdout.flush()


def there_and_back_by_nodes(comm):
    tokens = np.zeros((1, 1), int)
    says("expected nodes of one size", lambda: moe.exchange(comm, tokens, 1))
    assert moe.exchange(comm, tokens, 1, "flat_card").dispatch(np.ones((1, 1))).sum() == (
        comm.ranks if comm.rank == 0 else 0
    )
