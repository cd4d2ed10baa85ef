"""Rounds and schedules: what they mean, what they refuse, and what a collective asks for."""

import itertools
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import reference
from hypothesis import event, given, settings
from hypothesis import strategies as st

import roundelay as rl
from roundelay import COPY, REDUCE, Round, Schedule, collectives, verify
from roundelay.schedule import ScheduleError, Step, apply

PER_MOVE = ("src", "dst", "chunk", "op", "count", "start")
SCALARS = ("stride", "times", "shift", "unit", "wrap", "begin")
EVERY = pytest.mark.parametrize(
    "algorithm", rl.algorithms(), ids=lambda a: f"{a.collective}/{a.name}"
)


def schedule_of(*rounds: Round, ranks: int = 3, chunks: int = 12, **more: Any) -> Schedule:
    return Schedule("all_reduce", ranks, chunks, list(rounds), **more)


# --- fields -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"src": [0, 3]}, "round 0, move 1: src = 3; expected 0 to 2"),
        ({"src": -1}, "move 0: src = -1; expected 0 to 2"),
        ({"dst": [0, 1, 4]}, "move 2: dst = 4; expected 0 to 2"),
        ({"dst": -(2**40)}, f"dst = {-(2**40)}; expected 0 to 2"),
        ({"chunk": 12}, "chunk = 12; expected 0 to 11"),
        ({"chunk": [1, -1]}, "move 1: chunk = -1; expected 0 to 11"),
        ({"chunk": 2**61}, f"chunk = {2**61}; expected 0 to 11"),
        ({"chunk": 6, "unit": 2}, "chunk = 6; expected 0 to 5"),
        ({"chunk": 6, "unit": 2, "wrap": 3}, "chunk = 6; expected 0 to 5"),
        ({"op": 2}, "op = 2; expected 0 to 1"),
        ({"op": [0, -1]}, "move 1: op = -1; expected 0 to 1"),
        ({"count": 13}, "count = 13; expected 0 to 12"),
        ({"count": -1}, "count = -1; expected 0 to 12"),
        ({"count": [1, -1, 0]}, "count = -1"),
        ({"count": 5, "wrap": 4}, "count = 5; expected 0 to 4"),
        ({"count": 7, "unit": 2}, "count = 7; expected 0 to 6"),
        ({"count": 7, "stride": 2}, "count = 7; expected 0 to 6"),
        ({"count": 4, "stride": -8}, "count = 4; expected 0 to 3"),
        ({"count": 2, "stride": 0}, "count = 2; expected 0 to 1"),
        ({"count": 2, "stride": 4, "wrap": 4}, "count = 2; expected 0 to 1"),
        ({"start": -1}, "start = -1; expected 0"),
        ({"start": [3, -2]}, "move 1: start = -2; expected 0"),
        ({"unit": 0}, "unit = 0; expected at least 1"),
        ({"unit": -1}, "unit = -1; expected at least 1"),
        ({"unit": 5}, "unit = 5 does not divide the 12 chunks"),
        ({"unit": 2**70}, "unit = [0-9]* does not divide the 12 chunks"),
        ({"wrap": -1}, "wrap = -1; expected at least 0"),
        ({"wrap": 5}, "wrap = 5 does not divide the 12 ids"),
        ({"wrap": 4, "unit": 2}, "wrap = 4 does not divide the 6 ids"),
        ({"wrap": 24}, "wrap = 24 does not divide the 12 ids"),
        ({"begin": -1}, "begin = -1; expected at least 0"),
        ({"times": -1}, "times = -1; expected at least 0"),
    ],
)
def test_out_of_range(fields: dict[str, Any], message: str) -> None:
    """Named by round, move, field and value, with what was expected."""
    given = {"src": 0, "dst": 1, "chunk": 0} | fields
    with pytest.raises(ScheduleError, match=message):
        schedule_of(Round(**given))


@pytest.mark.parametrize("field", PER_MOVE)
@pytest.mark.parametrize(
    "value",
    [1.0, [0.0, 1.0], True, [False, True], None, "1", 2**62, 2**70, -(2**62) - 1, np.uint64(2**63),
     [0, 2**70], [[0]], [None], [[0], [0, 1]]],
    ids=repr,
)  # fmt: skip
def test_not_whole_numbers(field: str, value: Any) -> None:
    given = {"src": [0], "dst": [1], "chunk": [0]} | {field: value}
    with pytest.raises(ScheduleError):
        schedule_of(Round(**given))


@pytest.mark.parametrize("field", SCALARS)
@pytest.mark.parametrize("value", [1.0, 0.5, "1", [1, 2], np.array([1.0])], ids=repr)
def test_not_one_whole_number(field: str, value: Any) -> None:
    with pytest.raises(ScheduleError, match=field):
        schedule_of(Round(0, 1, 0, **{field: value}))


@pytest.mark.parametrize(
    "fields",
    [
        {"src": [0, 1], "dst": [1, 0, 2]},
        {"src": [0], "dst": [1, 2]},
        {"src": [0, 1], "count": [1, 1, 1]},
        {"src": [0, 1], "op": [0]},
        {"start": [0, 1, 2], "chunk": [0, 1]},
        {"src": [[0, 1]], "dst": [[1, 0]]},
        {"src": [], "dst": [0]},
    ],
    ids=repr,
)
def test_lists_of_different_lengths(fields: dict[str, Any]) -> None:
    given = {"src": 0, "dst": 1, "chunk": 0} | fields
    with pytest.raises(ScheduleError, match="one entry a move or a single value"):
        Round(**given)


def test_one_value_stands_for_all_moves() -> None:
    r = Round([0, 1, 2], 3, [4, 5, 6], np.array([REDUCE, REDUCE, REDUCE]), count=np.int64(2))
    assert r.dst.tolist() == [3, 3, 3]
    assert (r.op, r.count) == (REDUCE, 2)
    assert len(r) == 3


def test_a_count_of_zero_is_no_move() -> None:
    r = Round([0, 1, 2], [1, 2, 0], 5, [COPY, REDUCE, COPY], count=[1, 0, 2], start=[0, 9, 1])
    assert (r.src.tolist(), r.dst.tolist(), r.chunk.tolist()) == ([0, 2], [1, 0], [5, 5])
    assert r.length == 2
    assert len(Round([0, 1], [1, 0], 0, count=0)) == 0
    assert len(Round(0, 1, 0, times=0)) == 0
    empty = Schedule("all_reduce", 2, 1, [Round([], [], []), Round(0, 1, 0, times=0)])
    assert (list(empty), empty.steps, empty.expanded(), empty.nbytes) == ([], 0, 0, 0)


def test_a_round_keeps_its_own_copy() -> None:
    src = np.array([0, 1], np.int32)
    r = Round(src, [1, 0], 0)
    src[0] = 1
    assert r.src.tolist() == [0, 1]
    with pytest.raises(ValueError, match="read-only"):
        r.src[0] = 1


def test_ids_above_32_bits() -> None:
    big = 2**36
    chain = Schedule("broadcast", 2, big, [Round(0, 1, big - 1, times=2, shift=1)])
    assert [(s.at, s.col.tolist()) for s in chain.moves()] == [(0, [big - 1]), (1, [0])]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"ranks": 0}, "ranks = 0"),
        ({"ranks": True}, "ranks = True"),
        ({"ranks": 2.0}, "ranks = 2.0"),
        ({"chunks": 0}, "chunks = 0"),
        ({"chunks": 5}, "5 chunks do not divide among the 2 pieces"),
        ({"helpers": -1}, "helpers = -1"),
        ({"root": -1}, "root = -1"),
        ({"root": 2}, "root = 2; expected a rank, 0 to 1"),
        ({"owner": [0, 0]}, "owner must name every rank once"),
        ({"owner": [0, 1, 2]}, "owner must name every rank once"),
        ({"owner": [0.0, 1.0]}, "owner must hold whole numbers"),
        ({"ranks": 2**70}, "expected at most"),
        ({"helpers": 2**40}, "expected at most"),
        ({"chunks": 2**62}, "expected at most"),
        ({"collective": "allgather"}, "did you mean all_gather"),
    ],
    ids=repr,
)
def test_schedule_fields(fields: dict[str, Any], message: str) -> None:
    given = {"collective": "all_gather", "ranks": 2, "chunks": 4, "rounds": []} | fields
    with pytest.raises(rl.RoundelayError, match=message):
        Schedule(**given)


def test_helpers_are_participants() -> None:
    up = Round([0, 1], 2, 0, [COPY, REDUCE])
    assert schedule_of(up, ranks=2, chunks=1, helpers=1).steps == 1
    with pytest.raises(ScheduleError, match="dst = 2; expected 0 to 1"):
        schedule_of(up, ranks=2, chunks=1)


def test_lazy_rounds_are_checked_when_met() -> None:
    lazy = Schedule("all_reduce", 2, 1, lambda: [Round(0, 1, 0, REDUCE), Round(0, 5, 0)])
    rounds = iter(lazy)
    assert next(rounds).dst.tolist() == [1]
    with pytest.raises(ScheduleError, match="round 1, move 0: dst = 5"):
        next(rounds)


# --- meaning ------------------------------------------------------------------------------


@st.composite
def rounds(draw: st.DrawFn, ranks: int, chunks: int) -> Round:
    """Any legal round."""

    def whole(low: int, high: int) -> int:
        return draw(st.integers(low, high))

    def listed(moves: int, low: int, high: int) -> Any:
        if draw(st.booleans()):
            return whole(low, high)
        return draw(st.lists(st.integers(low, high), min_size=moves, max_size=moves))

    unit = draw(st.sampled_from([u for u in range(1, chunks + 1) if chunks % u == 0]))
    ids = chunks // unit
    wrap = draw(st.sampled_from([0, *(w for w in range(1, ids + 1) if ids % w == 0)]))
    block = wrap or ids
    stride = whole(-2 * block, 2 * block)
    longest = len({j * stride % block for j in range(block)})
    moves = draw(st.sampled_from([5, 4, 3, 2, 1]))
    src, dst, chunk = (
        draw(st.lists(st.integers(0, high), min_size=moves, max_size=moves))
        for high in (ranks - 1, ranks - 1, ids - 1)
    )
    return Round(
        src,
        dst,
        chunk,
        listed(moves, COPY, REDUCE),
        count=listed(moves, draw(st.sampled_from([1, 0])), longest),
        stride=stride,
        times=draw(st.sampled_from([3, 7, 2, 1, 0])),
        shift=whole(-2 * block, 2 * block),
        start=listed(moves, 0, 5),
        unit=unit,
        wrap=wrap,
        begin=draw(st.none() | st.integers(0, 6)),
    )


@st.composite
def schedules(draw: st.DrawFn) -> Schedule:
    """Any rounds in range, whatever they compute (most compute nothing)."""
    ranks = draw(st.sampled_from([3, 2, 4, 1]))
    chunks = draw(st.sampled_from([6, 4, 12, 2, 3, 8, 18, 24, 1]))
    listed = draw(st.lists(rounds(ranks, chunks), min_size=1, max_size=3))
    return Schedule("all_reduce", ranks, chunks, listed)


def events(step: Step) -> list[reference.Event]:
    op = np.broadcast_to(step.op, len(step.src))
    lists = (a.tolist() for a in (step.src, step.dst, step.col, op))
    return [reference.Event(*one) for one in zip(*lists, strict=True)]


def by_place(listed: list[reference.Event]) -> list[reference.Event]:
    """Listed order matters at one place only: sorted by place, otherwise as listed."""
    return sorted(listed, key=lambda e: (e.dst, e.chunk))


@settings(max_examples=300)
@given(schedules())
def test_moves_are_the_definition_spelt_out(schedule: Schedule) -> None:
    """Every round by loops and % gives the same events, in the same order."""
    found = [reference.Moment(s.round, s.at, events(s)) for s in schedule.moves()]
    wanted = reference.expand(schedule)
    assert found == wanted
    assert schedule.expanded() == sum(len(m.events) for m in wanted)
    last = max((m.at + 1 for m in wanted), default=0)
    assert schedule.steps == last
    event(f"{len(wanted)} steps" if len(wanted) < 3 else "more steps")


@settings(max_examples=300)
@given(schedules(), st.data())
def test_moves_of_some_columns_are_those_of_all(schedule: Schedule, data: st.DataObject) -> None:
    """Solved or looked up, `columns` selects from the whole and changes nothing else."""
    names = st.integers(0, schedule.chunks - 1)
    few = data.draw(st.lists(names, unique=True, min_size=1, max_size=min(3, schedule.chunks)))
    for columns in (np.sort(few), np.arange(schedule.chunks)):
        for r in schedule:
            solved = len(r.src) * len(columns) < r.expanded()
            event("solved" if solved else "looked up")
        check_columns(schedule, columns)


def check_columns(schedule: Schedule, columns: np.ndarray) -> None:
    index = {int(chunk): i for i, chunk in enumerate(columns)}
    wanted = []
    for number, at, listed in reference.expand(schedule):
        some = [e._replace(chunk=index[e.chunk]) for e in listed if e.chunk in index]
        if some:
            wanted.append((number, at, by_place(some)))
    found = [(s.round, s.at, by_place(events(s))) for s in schedule.moves(columns)]
    assert found == wanted


@EVERY
def test_columns_of_every_algorithm(algorithm: rl.Algorithm) -> None:
    for n in (3, 6, 8):
        schedule = algorithm(n)
        last = schedule.chunks - 1
        check_columns(schedule, np.array([last]))
        check_columns(schedule, np.unique([0, last // 2, last]))
        check_columns(schedule, np.arange(schedule.chunks))


def test_no_column_is_no_move() -> None:
    assert list(rl.build("all_reduce/ring", 4).moves(np.array([], np.int64))) == []


@settings(max_examples=300)
@given(schedules())
def test_waves_keep_the_order_of_writes(schedule: Schedule) -> None:
    """No wave writes a place twice; one after another they write each place as listed."""
    for step in schedule.moves():
        places = list(zip(step.dst.tolist(), step.col.tolist(), strict=True))
        done: dict[tuple[int, int], list[int]] = {}
        total = 0
        for wave in step.waves():
            some = np.arange(len(places))[wave].tolist()
            assert len({places[i] for i in some}) == len(some)
            total += len(some)
            for i in some:
                done.setdefault(places[i], []).append(i)
        assert total == len(places)
        assert all(order == sorted(order) for order in done.values())
        event("one wave" if len(set(places)) == len(places) else "several waves")


@settings(max_examples=300)
@given(schedules())
def test_writes_of_one_step_apply_in_listed_order(schedule: Schedule) -> None:
    """Run on numbers that tell order: the library's `apply` against loops."""
    ranks, chunks = schedule.ranks, schedule.chunks
    values = np.arange(1.0, ranks * chunks + 1).reshape(ranks, chunks)
    wanted = values.copy()
    for moment, step in zip(reference.expand(schedule), schedule.moves(), strict=True):
        apply(step, values, lambda a, b: (2 * a + b) % 1009)
        buffers = [wanted[e.src, e.chunk] for e in moment.events]
        for e, read in zip(moment.events, buffers, strict=True):
            old = wanted[e.dst, e.chunk]
            wanted[e.dst, e.chunk] = (2 * old + read) % 1009 if e.op == REDUCE else read
        assert np.array_equal(values, wanted)


@pytest.mark.parametrize("unit", [1, 2, 3])
@pytest.mark.parametrize("wrap", [0, 2, 4])
def test_only_shift_and_stride_wrap_and_only_inside_their_block(unit: int, wrap: int) -> None:
    """Whatever a move takes, in whatever repetition, lies in the block of its first id."""
    chunks = 24 * unit
    block = (wrap or 24) * unit
    for chunk, stride, shift in itertools.product((0, 5, 23), (1, -1, 3), (1, -5, 100)):
        r = Round(0, 1, chunk, count=2, stride=stride, times=5, shift=shift, unit=unit, wrap=wrap)
        home = chunk * unit // block
        touched = [s.col for s in schedule_of(r, chunks=chunks).moves()]
        assert len(touched) == 5
        assert {int(c) // block for col in touched for c in col} == {home}


def test_long_rounds_do_not_overflow() -> None:
    """Repetition times shift passes 2**31, in a round whose moves start apart."""
    pieces = 100_000
    r = Round([0, 0], [1, 2], 0, times=pieces, shift=-1, start=[0, 1])
    schedule = Schedule("broadcast", 3, pieces, [r])
    for t in (0, 1, 50_000, pieces - 1):
        move, chunk = r.active(t, pieces)
        assert chunk.tolist() == [(int(i) - t) % pieces for i in move]
    check = verify(schedule, complete=False, samples=6)
    assert check.ok, check.reason


def test_very_long_rounds_do_not_overflow() -> None:
    """Repetition times shift passes 2**63; a reverse works out the ids of the last repetition."""
    up = rl.build("reduce/chain", 3, pieces=10**10)
    (hop,) = rl.reverse(up)
    assert hop.chunk.tolist() == [0, 0]
    (back,) = up
    assert back.active(10**10 - 1, 10**10)[1].tolist() == [1, 0]


def test_begin() -> None:
    """After what stands before, unless told; a schedule is as long as its last step."""
    hop = [Round(0, 1, 0, times=3), Round(1, 2, 0), Round(0, 2, 0, begin=1), Round(2, 0, 0)]
    schedule = Schedule("broadcast", 3, 1, hop)
    assert [r.begin for r in schedule] == [0, 3, 1, 4]
    assert schedule.steps == 5
    assert hop[1].begin is None


def test_order_is_round_before_step() -> None:
    """A round that begins earlier but stands later comes later in the listing."""
    apart = Schedule("broadcast", 3, 1, [Round(0, 1, 0, begin=5), Round(0, 2, 0, begin=0)])
    assert verify(apart).ok
    assert [(s.round, s.at) for s in apart.moves()] == [(0, 5), (1, 0)]
    assert apart.steps == 6


@pytest.mark.parametrize(
    ("rounds", "early"),
    [
        # what is written in a step can be read in the next one
        ([Round(0, 1, 0, begin=0), Round(1, 2, 0, begin=1)], None),
        ([Round(0, 1, 0, begin=0), Round(1, 2, 0, begin=0)], "round 1, step 0"),
        ([Round(0, 1, 0, begin=5), Round(1, 2, 0, begin=3)], "round 1, step 3"),
        ([Round(0, 1, 0, begin=5, times=3), Round(1, 2, 0, begin=6)], "round 1, step 6"),
        # what is read in a step can be written in the same one, after all reads
        ([Round(1, 2, 0, begin=2), Round(0, 1, 0, begin=2)], None),
        ([Round(1, 2, 0, begin=2), Round(0, 1, 0, begin=1)], "round 1, step 1"),
        # writes to a place keep their order
        ([Round(0, 1, 0, begin=1), Round(2, 1, 0, REDUCE, begin=1)], None),
        ([Round(0, 1, 0, begin=1), Round(2, 1, 0, REDUCE, begin=0)], "round 1, step 0"),
        # other chunks, or other ranks, may go ahead
        ([Round(0, 1, 0, begin=5), Round(0, 1, 1, begin=0)], None),
        # in the middle of a long round, where a piece is there in time and where it is not
        ([Round(0, 1, 0, times=4, shift=1), Round(1, 2, 0, times=4, shift=1, begin=1)], None),
        ([Round(0, 1, 0, times=4, shift=1), Round(1, 2, 1, times=2, shift=1, begin=1)],
         "round 1, step 1"),
    ],
)  # fmt: skip
def test_rounds_that_overlap(rounds: list[Round], early: str | None) -> None:
    """Steps are what a schedule claims to need: it may not claim what its dependences deny."""
    schedule = Schedule("all_reduce", 3, 4, rounds)
    outcome = reference.run(schedule)
    for complete in (True, False):
        if early is None:
            assert not outcome.illegal
            assert not verify(schedule, complete=complete).ok  # it adds nothing up, but is legal
            assert rl.cost(schedule).depth <= schedule.steps
        else:
            assert outcome.illegal.startswith(early)
            with pytest.raises(ScheduleError, match=f"{early}:.* early"):
                verify(schedule, complete=complete)


def test_nbytes_is_what_the_arrays_take() -> None:
    """4 bytes an id while ids fit; one value for all moves takes nothing."""
    ids = list(range(10))
    assert Round(ids, ids, ids).nbytes == 3 * 4 * 10
    assert Round(ids, 0, 0, op=1, count=2, start=3).nbytes == 3 * 4 * 10
    assert Round(ids, 0, 0, start=ids).nbytes == 4 * 4 * 10
    assert Round([0, 0], [0, 0], [0, 2**40]).nbytes == 2 * 4 * 2 + 8 * 2
    ring = rl.build("all_reduce/ring", 1000)
    assert ring.nbytes == 2 * 3 * 4 * 1000


# --- laws ---------------------------------------------------------------------------------


def one(collective: str, ranks: int, chunks: int, *listed: Round, **more: Any) -> Schedule:
    return Schedule(collective, ranks, chunks, list(listed), **more)


def names(what: str, at: str, rank: int, chunk: int) -> str:
    """A pattern for a message that names all of these, in whatever order."""
    parts = (what, f"{at}:", f"rank {rank}\\b", f"chunk {chunk}\\b")
    return "".join(f"(?=.*{part})" for part in parts)


SENDS, REDUCES, COPIES = "sends", "REDUCE", "COPY"


@pytest.mark.parametrize(
    ("schedule", "message"),
    [
        (
            one("broadcast", 3, 1, Round(0, 1, 0), Round(2, 1, 0)),
            names(SENDS, "round 1, step 1", rank=2, chunk=0),
        ),
        (
            one("broadcast", 3, 4, Round([0, 1], [1, 2], 0, times=4, shift=1, start=[0, 0])),
            names(SENDS, "round 0, step 0", rank=1, chunk=0),
        ),
        (
            one("broadcast", 3, 6, Round(0, 1, 1, unit=2), Round(1, 2, 2, times=3, shift=1)),
            names(SENDS, "round 1, step 3", rank=1, chunk=4),
        ),
        (
            one("broadcast", 3, 4, Round(0, 1, 0, times=3, shift=1), Round(1, 2, 2, count=2)),
            names(SENDS, "round 1, step 3", rank=1, chunk=3),
        ),
        (
            one("broadcast", 2, 2, Round(0, 1, 1, REDUCE)),
            names(REDUCES, "round 0, step 0", rank=1, chunk=1),
        ),
        (
            one("all_reduce", 2, 1, Round([0, 1], 2, 0, REDUCE), helpers=1),
            names(REDUCES, "round 0, step 0", rank=2, chunk=0),
        ),
        (
            one("all_reduce", 3, 1, Round([0, 1], 2, 0, [REDUCE, COPY])),
            names(COPIES, "round 0, step 0", rank=2, chunk=0),
        ),
        (
            one("all_reduce", 3, 1, Round(0, 1, 0, REDUCE), Round([0, 1], 2, 0)),
            names(COPIES, "round 1, step 1", rank=2, chunk=0),
        ),
        (
            one("all_reduce", 4, 1, Round([0, 1, 3], 2, 0, [COPY, REDUCE, COPY])),
            names(COPIES, "round 0, step 0", rank=2, chunk=0),
        ),
        (
            one("all_reduce", 3, 2, Round([0, 1], 2, [1, 0], [COPY, COPY], count=[1, 2])),
            names(COPIES, "round 0, step 0", rank=2, chunk=1),
        ),
    ],
)
def test_what_is_illegal(schedule: Schedule, message: str) -> None:
    """Refused by round, step, rank and chunk, whether all chunks are looked at or some."""
    assert reference.run(schedule).illegal
    with pytest.raises(ScheduleError, match=message):
        verify(schedule)
    with pytest.raises(ScheduleError, match=message):
        verify(schedule, complete=False, samples=8)


def test_samples_name_the_chunk_itself() -> None:
    last = Schedule("broadcast", 3, 999, [Round(0, 1, 0, unit=999), Round(2, 1, 998)])
    with pytest.raises(ScheduleError, match=names(SENDS, "round 1, step 1", rank=2, chunk=998)):
        verify(last, complete=False)


@pytest.mark.parametrize(
    "schedule",
    [
        one("all_reduce", 2, 1, Round([0, 1], [1, 0], 0, REDUCE)),
        one("all_reduce", 2, 1, Round([0, 0, 1, 1], [0, 1, 0, 1], 0, [COPY, COPY, REDUCE, REDUCE])),
        one("broadcast", 2, 2, Round([0, 0], 1, [0, 1])),
    ],
)
def test_what_is_legal(schedule: Schedule) -> None:
    """Exchanges in place, sends to oneself, a copy before the reduces of its step."""
    assert verify(schedule).ok


# --- going through it ---------------------------------------------------------------------


@EVERY
def test_parts_of_all_ranks_are_the_whole(algorithm: rl.Algorithm) -> None:
    """Every move is one read of its source and one write of its destination, and no more."""
    for n, params in [(5, {}), (8, {}), *((12, p) for p in list(algorithm.variants(12))[:3])]:
        schedule = algorithm(n, **params)
        wanted = Counter[Any](
            (number, int(r.src[i]), int(r.dst[i]), int(r.chunk[i]),
             *(reference.each(f, i) for f in (r.op, r.count, r.start)),
             r.stride, r.times, r.shift, r.unit, r.wrap, r.begin)
            for number, r in enumerate(schedule)
            for i in range(len(r.src))
        )  # fmt: skip
        sides: dict[bool, Counter[Any]] = {False: Counter(), True: Counter()}
        for rank in range(n + schedule.helpers):
            part = schedule.part(rank)
            for h in part:
                src, dst = (h.peer, rank) if h.write else (rank, h.peer)
                key = (h.round, src, dst, h.chunk, h.op, h.count, h.start,
                       h.stride, h.times, h.shift, h.unit, h.wrap, h.begin)  # fmt: skip
                sides[h.write][key] += 1
            order = [(h.round, h.write) for h in part]
            assert order == sorted(order)
        assert sides == {False: wanted, True: wanted}


def test_part_of_a_ring_is_four() -> None:
    for n in (2, 3, 8, 1000):
        for rank in (0, n - 1):
            part = rl.build("all_reduce/ring", n).part(rank)
            assert [h.write for h in part] == [False, True, False, True]
            assert {h.peer for h in part if h.write} == {(rank - 1) % n}
            assert {h.peer for h in part if not h.write} == {(rank + 1) % n}


@pytest.mark.parametrize("rank", [-1, 5, 10**9])
def test_no_such_part(rank: int) -> None:
    with pytest.raises(ScheduleError, match="expected 0 to 4"):
        rl.build("all_reduce/switch", 4).part(rank)


def spelt(schedule: Schedule) -> list[tuple[int, int, list[reference.Event]]]:
    return [(s.round, s.at, events(s)) for s in schedule.moves()]


@EVERY
def test_rounds_can_be_gone_through_again(algorithm: rl.Algorithm) -> None:
    schedule = algorithm(6)
    again = spelt(schedule)
    half = iter(schedule)
    next(half)
    assert spelt(schedule) == again
    assert spelt(algorithm(6)) == again


def test_an_iterator_of_rounds_is_kept() -> None:
    """One who passes a generator gets a schedule that does not run dry."""
    schedule = Schedule("broadcast", 3, 1, (Round(r, r + 1, 0) for r in range(2)))
    assert spelt(schedule) == spelt(schedule)
    assert schedule.steps == 2


def test_lazy_rounds_stay_lazy() -> None:
    """What a function yields is taken one by one, through every verb that can."""
    met = 0

    def endless() -> Iterator[Round]:
        nonlocal met
        while True:
            met += 1
            yield Round([0, 1], [1, 0], 0, REDUCE)

    lazy = Schedule("all_reduce", 2, 1, endless)
    for made in (lazy, rl.on([1, 0], lazy), rl.split(lazy, lazy), rl.on([[0, 1], [2, 3]], lazy)):
        met = 0
        first = list(itertools.islice(made, 3))
        assert met <= 4
        assert [r.begin for r in first] == [0, 1, 2]


def test_repr_says_what_it_is() -> None:
    said = repr(rl.build("all_reduce/rails", 8, group=2))
    assert "all_reduce/rails" in said
    assert "8 ranks" in said
    assert "group=2" in said


# --- collectives --------------------------------------------------------------------------

OWNER = [1, 0, 3, 2]
PIECES = {
    # (gives wants) by piece, over 4 ranks, with root 2 and owners 1, 0, 3, 2
    "all_reduce": ["0123 0123"],
    "reduce": ["0123 2"],
    "broadcast": ["2 0123"],
    "all_gather": ["1 0123", "0 0123", "3 0123", "2 0123"],
    "reduce_scatter": ["0123 1", "0123 0", "0123 3", "0123 2"],
    "gather": ["1 2", "0 2", "3 2", "2 2"],
    "scatter": ["2 1", "2 0", "2 3", "2 2"],
    "all_to_all": ["1 1", "1 0", "1 3", "1 2", "0 1", "0 0", "0 3", "0 2",
                   "3 1", "3 0", "3 3", "3 2", "2 1", "2 0", "2 3", "2 2"],
    "send_recv": ["1 0", "0 3", "3 2", "2 1"],
    "barrier": ["1 0123", "0 0123", "3 0123", "2 0123"],
}  # fmt: skip
EVEN = {"all_gather_v": "all_gather", "reduce_scatter_v": "reduce_scatter",
        "all_to_all_v": "all_to_all"}  # fmt: skip


@pytest.mark.parametrize("name", [*PIECES, *EVEN])
@pytest.mark.parametrize("each", [1, 3])
def test_who_gives_and_who_wants(name: str, each: int) -> None:
    """Against a table written by hand; `each` chunks a piece; no helper gives or wants."""
    table = PIECES[EVEN.get(name, name)]
    schedule = Schedule(name, 4, each * len(table), [], helpers=2, root=2, owner=OWNER)
    for side, has in enumerate((schedule.before(), schedule.after())):
        found = ["".join(map(str, np.flatnonzero(column))) for column in has.T]
        assert found == [row.split(" ")[side] for row in table for _ in range(each)]


def test_in_rank_order_unless_owners_say_otherwise() -> None:
    around = Schedule("send_recv", 4, 4, [])
    assert np.argwhere(around.before()).tolist() == [[0, 0], [1, 1], [2, 2], [3, 3]]
    assert np.argwhere(around.after()).tolist() == [[0, 3], [1, 0], [2, 1], [3, 2]]
    pairs = Schedule("all_to_all", 2, 4, [])
    assert np.argwhere(pairs.before()).tolist() == [[0, 0], [0, 1], [1, 2], [1, 3]]
    assert np.argwhere(pairs.after()).tolist() == [[0, 0], [0, 2], [1, 1], [1, 3]]


def test_properties_of_collectives() -> None:
    table = {
        # name: opens, closes, rooted, sums, pieces of 4 ranks, bytes of all pieces for 100
        "all_reduce": (False, False, False, True, 1, 100),
        "reduce": (False, False, True, True, 1, 100),
        "broadcast": (False, False, True, False, 1, 100),
        "all_gather": (False, True, False, False, 4, 100),
        "reduce_scatter": (True, False, False, True, 4, 100),
        "gather": (False, True, True, False, 4, 100),
        "scatter": (True, False, True, False, 4, 100),
        "all_to_all": (False, False, False, False, 16, 400),
        "send_recv": (False, False, False, False, 4, 400),
        "barrier": (False, True, False, False, 4, 0),
    }
    for name, kind in collectives.COLLECTIVES.items():
        found = (kind.opens, kind.closes, kind.rooted, kind.sums, kind.piece_count(4),
                 kind.total_bytes(100, 4))  # fmt: skip
        assert found == table[name.removesuffix("_v")]
    assert set(table) | set(EVEN) == set(collectives.COLLECTIVES)


def test_matching_finds_the_even_form() -> None:
    for name in ("all_reduce", "reduce", "broadcast", "all_gather", "reduce_scatter", "gather"):
        kind = collectives.collective(name)
        assert collectives.matching(kind.before, kind.after) is kind
    root, owner = collectives.root, collectives.owner
    assert collectives.matching(root, root) is None
    assert collectives.matching(owner, owner) is None


def test_unknown_collective_suggests() -> None:
    with pytest.raises(rl.RoundelayError, match="did you mean all_reduce"):
        collectives.collective("allreduce")
    with pytest.raises(rl.RoundelayError, match="known: all_reduce, "):
        collectives.collective("xyzzy")
