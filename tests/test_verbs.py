"""`on`, `then`, `split` and `reverse`: what they make is right, and what they cannot is refused."""

import itertools
from collections import Counter
from math import prod
from typing import Any

import numpy as np
import pytest
import reference
from hypothesis import event, given, settings
from hypothesis import strategies as st
from reference import Event

import roundelay as rl
from roundelay import COPY, REDUCE, Round, Schedule, build, on, reverse, split, then, verify
from roundelay.schedule import ScheduleError
from roundelay.verbs import TRANSPOSE

EVERY = pytest.mark.parametrize(
    "algorithm", rl.algorithms(), ids=lambda a: f"{a.collective}/{a.name}"
)


def proved(schedule: Schedule, collective: str) -> Schedule:
    """The schedule, shown to be right by the library and, where small, by exact counts."""
    assert schedule.collective == collective
    verdict = verify(schedule)
    assert verdict.ok, verdict.reason
    if schedule.expanded() <= 5000:
        outcome = reference.run(schedule)
        assert not outcome.illegal
        assert not outcome.wrong
    return schedule


def moments(schedule: Schedule) -> dict[int, Counter[Event]]:
    """What moves at every step of the schedule."""
    found: dict[int, Counter[Event]] = {}
    for moment in reference.expand(schedule):
        found.setdefault(moment.at, Counter()).update(moment.events)
    return found


def nodes(n: int, group: int) -> np.ndarray:
    return np.arange(n).reshape(-1, group)


# --- on -----------------------------------------------------------------------------------


@EVERY
def test_every_row_does_the_same(algorithm: rl.Algorithm) -> None:
    """Row i of `on` is the schedule with its ranks, and its own helpers, put in place."""
    rows = np.array([[9, 0, 4, 2], [1, 7, 3, 8]])  # 5 and 6 have nothing to do
    alone = algorithm(4)
    both = on(rows, alone)
    assert (both.ranks, both.helpers) == (10, 2 * alone.helpers)
    assert (both.chunks, both.steps) == (alone.chunks, alone.steps)
    wanted: dict[int, Counter[Event]] = {}
    for at, events in moments(alone).items():
        wanted[at] = Counter()
        for i, row in enumerate(rows.tolist()):
            names = [*row, *range(10 + i * alone.helpers, 10 + (i + 1) * alone.helpers)]
            for e, times in events.items():
                wanted[at][Event(names[e.src], names[e.dst], e.chunk, e.op)] += times
    assert moments(both) == wanted


@EVERY
def test_a_permutation_of_all_ranks_stays_right(algorithm: rl.Algorithm) -> None:
    """Root and owners move with the ranks."""
    order = np.array([3, 0, 5, 4, 1, 2])
    rooted = algorithm(6).kind.rooted
    for root in (0, 4) if rooted else (0,):
        plain = algorithm(6, root)
        moved = proved(on(order, plain), plain.collective)
        owners = plain.setting.owner
        assert moved.setting.owner.tolist() == order[owners].tolist()
        assert moved.root == (order[root] if rooted else 0)


def test_one_row_of_all_ranks_is_plain() -> None:
    assert on([2, 0, 1], build("all_reduce/ring", 3)).groups is None
    assert on([[2, 0, 1]], build("all_reduce/ring", 3)).groups is None
    part = on([2, 0, 1, 4], build("all_reduce/ring", 4))
    assert part.groups is not None
    assert part.groups.tolist() == [[2, 0, 1, 4]]


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([[0, 1], [1, 2]], "a rank stands twice"),
        ([0, 0], "a rank stands twice"),
        ([0, 1, 2], "rows have 3 ranks but the schedule is for 2"),
        ([[0], [1]], "rows have 1 ranks but the schedule is for 2"),
        ([-1, 0], "groups must be rows of ranks"),
        ([0.0, 1.0], "groups must"),
        ([True, False], "groups must"),
        ([[[0, 1]]], "groups must be rows of ranks"),
        ([], "groups must be rows of ranks"),
        ("01", "groups must"),
        ([[0, 1], [2]], "groups must be"),
        ([0, 2**70], "groups must"),
    ],
    ids=repr,
)
def test_on_refuses(groups: Any, message: str) -> None:
    with pytest.raises(ScheduleError, match=message):
        on(groups, build("all_reduce/ring", 2))


def test_on_refuses_rows_of_rows() -> None:
    rows = on([[0, 1], [2, 3]], build("all_reduce/ring", 2))
    with pytest.raises(ScheduleError, match="found one for rows"):
        on([0, 1, 2, 3], rows)


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.uint8, np.uint32,
                                   np.uint64])  # fmt: skip
def test_rows_of_any_whole_type(dtype: Any) -> None:
    """Helpers come after the last rank, also where the ranks' type could not hold them."""
    rows = np.arange(128).reshape(2, 64)[:, ::-1].astype(dtype)
    between = on(nodes(128, 64).T.astype(dtype), build("all_reduce/switch", 2))
    spread = on(rows, build("broadcast/switch", 64))
    collect = on(rows, build("reduce/switch", 64))
    leaders = on(rows[:, 0], build("all_reduce/ring", 2))
    proved(then(collect, leaders, spread), "all_reduce")
    assert between.helpers == 64


# --- then: two levels, spelt out ----------------------------------------------------------


def test_names_of_two_levels() -> None:
    """Nodes of 2, written out by hand: who sends which chunk in which step."""
    rows = nodes(4, 2)
    inside = build("reduce_scatter/direct", 2), build("all_gather/direct", 2)
    between = build("all_reduce/recursive_doubling", 2)
    made = proved(then(on(rows, inside[0]), on(rows.T, between), on(rows, inside[1])), "all_reduce")
    assert made.chunks == 2
    assert moments(made) == {
        0: Counter([Event(1, 0, 0, REDUCE), Event(0, 1, 1, REDUCE),
                    Event(3, 2, 0, REDUCE), Event(2, 3, 1, REDUCE)]),
        1: Counter([Event(0, 2, 0, REDUCE), Event(2, 0, 0, REDUCE),
                    Event(1, 3, 1, REDUCE), Event(3, 1, 1, REDUCE)]),
        2: Counter([Event(0, 1, 0, COPY), Event(1, 0, 1, COPY),
                    Event(2, 3, 0, COPY), Event(3, 2, 1, COPY)]),
    }  # fmt: skip


def test_names_inside_an_open_piece() -> None:
    """The ring on a rail cycles inside its rail's piece, in chunks half as large."""
    rows = nodes(4, 2)
    made = then(
        on(rows, build("reduce_scatter/direct", 2)),
        on(rows.T, build("all_reduce/ring", 2)),
        on(rows, build("all_gather/direct", 2)),
    )
    assert made.chunks == 4
    found = moments(made)
    assert found[0] == Counter(
        Event(src, dst, chunk, REDUCE)
        for src, dst, chunks in ((1, 0, (0, 1)), (0, 1, (2, 3)), (3, 2, (0, 1)), (2, 3, (2, 3)))
        for chunk in chunks
    )
    assert found[1] == Counter(
        [Event(0, 2, 0, REDUCE), Event(2, 0, 1, REDUCE), Event(1, 3, 2, REDUCE),
         Event(3, 1, 3, REDUCE)]
    )  # fmt: skip
    assert found[2] == Counter(
        [Event(0, 2, 1, COPY), Event(2, 0, 0, COPY), Event(1, 3, 3, COPY), Event(3, 1, 2, COPY)]
    )


def test_then_at_one_level_renames_nothing() -> None:
    for n in (1, 2, 5, 8):
        first, second = build("reduce_scatter/ring", n), build("all_gather/pat", n)
        made = then(first, second)
        later = {at + first.steps: events for at, events in moments(second).items()}
        assert moments(made) == moments(first) | later
        assert made.chunks == n


@pytest.mark.parametrize(("n", "group"), [(4, 2), (6, 2), (6, 3), (12, 4), (12, 6)])
def test_owners_of_two_levels(n: int, group: int) -> None:
    """The digit opened first is the first digit of a piece's number."""
    rows = nodes(n, group)
    inner, outer = build("reduce_scatter/ring", group), build("reduce_scatter/ring", n // group)
    near = proved(then(on(rows, inner), on(rows.T, outer)), "reduce_scatter")
    far = proved(then(on(rows.T, outer), on(rows, inner)), "reduce_scatter")
    count = n // group
    assert near.setting.owner.tolist() == [p % count * group + p // count for p in range(n)]
    assert far.setting.owner.tolist() == list(range(n))
    gather = then(
        on(rows.T, build("all_gather/ring", count)), on(rows, build("all_gather/ring", group))
    )
    assert proved(gather, "all_gather").setting.owner.tolist() == near.setting.owner.tolist()


def test_owners_of_the_algorithm_count() -> None:
    """Swing's owners are not in rank order; two levels of it keep both orders."""
    swing = build("reduce_scatter/swing", 8)
    assert swing.owner is not None
    rows = nodes(64, 8)
    made = proved(then(on(rows, swing), on(rows.T, swing)), "reduce_scatter")
    places = [(a, b) for a in swing.owner.tolist() for b in swing.owner.tolist()]
    assert made.setting.owner.tolist() == [node * 8 + local for local, node in places]


# --- then: parts that fit -----------------------------------------------------------------


@pytest.mark.parametrize("n", [3, 4, 6, 8])
def test_reduce_scatter_then_all_gather_is_all_reduce(n: int) -> None:
    """Every pair whose owners agree is proved; every other pair is refused."""
    fits = Counter[bool]()
    for first in rl.algorithms("reduce_scatter"):
        for second in rl.algorithms("all_gather"):
            a, b = first(n), second(n)
            agree = a.setting.owner.tolist() == b.setting.owner.tolist()
            fits[agree] += 1
            if agree:
                proved(then(a, b), "all_reduce")
            else:
                with pytest.raises(ScheduleError, match="must mirror its open"):
                    then(a, b)
    assert fits[True] >= 30
    assert fits[False] > 0 or n == 3


def test_swing_does_not_close_a_ring() -> None:
    with pytest.raises(ScheduleError, match=r"mirror"):
        then(build("reduce_scatter/swing", 8), build("all_gather/ring", 8))


def test_scatter_then_all_gather_is_broadcast() -> None:
    for first, second in itertools.product(rl.algorithms("scatter"), rl.algorithms("all_gather")):
        a, b = first(6, 4), second(6)
        if b.owner is None:  # a scatter from another root than 0 has owners in another order
            with pytest.raises(ScheduleError, match="mirror"):
                then(a, b)
            made = then(a, on(a.setting.owner, b))
            assert proved(made, "broadcast").root == 4


@pytest.mark.parametrize("inner", ["ring", "bruck", "pat", "direct", "swing", "switch"])
def test_nodes_may_lie_anywhere(inner: str) -> None:
    """Rails over 24 ranks scattered over 6 nodes in random order, written with the verbs."""
    for seed in range(3):
        rows = np.random.default_rng(seed).permutation(24).reshape(6, 4)
        made = then(
            on(rows, build(f"reduce_scatter/{inner}", 4)),
            on(rows.T, build("all_reduce/ring", 6)),
            on(rows, build(f"all_gather/{inner}", 4)),
        )
        proved(made, "all_reduce")
        assert (
            rl.cost(made).bytes_sent_max
            >= rl.bound("all_reduce", 24, in_switch=inner == "switch").bytes_sent_max
        )


def test_each_row_reads_its_rails_by_owner() -> None:
    """Rows whose order differs from node to node: rails go by the owner, not by the column."""
    rows = np.array([[0, 1, 2], [5, 3, 4]])
    inside = build("reduce_scatter/ring", 3), build("all_gather/ring", 3)
    rails = on(rows.T, build("all_reduce/ring", 2))
    proved(then(on(rows, inside[0]), rails, on(rows, inside[1])), "all_reduce")
    wrong = on([[0, 3], [1, 4], [2, 5]], build("all_reduce/ring", 2))
    with pytest.raises(ScheduleError, match=r"ranks \[0, 3\] of one group own different pieces"):
        then(on(rows, inside[0]), wrong, on(rows, inside[1]))


@pytest.mark.parametrize("sizes", [(8, 8, 7, 5), (1, 2, 3), (5,), (1, 1), (4, 1)])
@pytest.mark.parametrize("inner", ["binomial", "chain", "double_tree", "switch"])
def test_uneven_nodes_by_leader(sizes: tuple[int, ...], inner: str) -> None:
    """One `on` for every size of node, side by side in one stage."""
    ends = np.cumsum(sizes)
    rows = [np.arange(end - size, end) for size, end in zip(sizes, ends, strict=True)]
    leaders = np.array([row[0] for row in rows])
    made = then(
        [on(row, build(f"reduce/{inner}", len(row))) for row in rows],
        on(leaders, build("all_reduce/ring", len(leaders))),
        [on(row, build(f"broadcast/{inner}", len(row))) for row in rows],
    )
    proved(made, "all_reduce")
    assert made.ranks == sum(sizes)


def test_parts_of_one_stage_begin_together() -> None:
    short, long = build("reduce/binomial", 2), build("reduce/binomial", 8)
    made = then(
        [on(np.arange(8), long), on([8, 9], short)],
        on([0, 8], build("all_reduce/ring", 2)),
        [on(np.arange(8), reverse(long)), on([8, 9], reverse(short))],
    )
    proved(made, "all_reduce")
    assert made.steps == 3 + 2 + 3
    assert Event(9, 8, 0, REDUCE) in moments(made)[0]


def test_gather_of_gathers() -> None:
    """Levels that nobody opened are found from the closes; leaders gather what nodes gathered."""
    for group, name in itertools.product((2, 3, 4, 6), ("binomial", "direct")):
        rows = nodes(12, group)
        made = then(
            on(rows, build(f"gather/{name}", group, root=group - 1)),
            on(rows[:, group - 1], build(f"gather/{name}", 12 // group)),
        )
        assert proved(made, "gather").root == group - 1


def test_scatter_of_scatters() -> None:
    for group, name in itertools.product((2, 3, 4, 6), ("binomial", "direct")):
        rows = nodes(12, group)
        made = then(
            on(rows[:, 1], build(f"scatter/{name}", 12 // group, root=12 // group - 1)),
            on(rows, build(f"scatter/{name}", group, root=1)),
        )
        assert proved(made, "scatter").root == 12 - group + 1


def test_three_levels_by_nesting_and_in_a_row() -> None:
    """A two-level all-reduce in the place of the rails is the same as five stages in a row."""
    for a, b, c in ((2, 2, 2), (2, 3, 2), (3, 2, 4)):
        n = a * b * c
        rows, upper = nodes(n, a), nodes(b * c, b)
        first, second = build("reduce_scatter/ring", a), build("reduce_scatter/bruck", b)
        top = build("all_reduce/ring", c)
        nested = then(
            on(rows, first),
            on(
                rows.T,
                then(on(upper, second), on(upper.T, top), on(upper, build("all_gather/pat", b))),
            ),
            on(rows, build("all_gather/ring", a)),
        )
        grid = np.arange(n).reshape(c, b, a)
        middle = grid.transpose(0, 2, 1).reshape(-1, b)
        in_a_row = then(
            on(rows, first),
            on(middle, second),
            on(grid.transpose(1, 2, 0).reshape(-1, c), top),
            on(middle, build("all_gather/pat", b)),
            on(rows, build("all_gather/ring", a)),
        )
        proved(nested, "all_reduce")
        proved(in_a_row, "all_reduce")
        assert moments(nested) == moments(in_a_row)


@st.composite
def grids(draw: st.DrawFn) -> np.ndarray:
    """Up to 24 ranks in random order on a grid of one to three levels."""
    sizes = draw(
        st.sampled_from([(2, 3), (4, 2), (2, 2, 2), (3, 4), (5,), (2, 3, 2), (1, 4), (4, 6), (6, 1),
                         (3, 2, 4), (8, 2)])
    )  # fmt: skip
    order = draw(st.permutations(range(prod(sizes))))
    return np.array(order).reshape(sizes)


@settings(max_examples=80)
@given(grids(), st.data())
def test_any_nesting_of_matching_parts_is_right(grid: np.ndarray, data: st.DataObject) -> None:
    """Opens along the axes in any order, closes mirrored, any algorithm whose owners agree."""
    axes = data.draw(st.permutations(range(grid.ndim)))
    inner, top = axes[:-1], axes[-1]
    opens, closes = [], []
    for axis in axes:
        size = grid.shape[axis]
        rows = np.moveaxis(grid, axis, -1).reshape(-1, size)
        gather = data.draw(st.sampled_from(rl.algorithms("all_gather")))(size)
        fitting = [a for a in rl.algorithms("reduce_scatter")
                   if a(size).setting.owner.tolist() == gather.setting.owner.tolist()]  # fmt: skip
        opens.append(on(rows, data.draw(st.sampled_from(fitting))(size)))
        closes.append(on(rows, gather))
    what = data.draw(st.sampled_from(["all_reduce", "rails", "all_gather", "reduce_scatter"]))
    event(what)
    if what == "all_reduce":
        proved(then(*opens, *closes[::-1]), "all_reduce")
    elif what == "rails":
        rows = np.moveaxis(grid, top, -1).reshape(-1, grid.shape[top])
        middle = on(rows, data.draw(st.sampled_from(rl.algorithms("all_reduce")))(rows.shape[1]))
        last = len(inner)
        proved(then(*opens[:last], middle, *closes[:last][::-1]), "all_reduce")
    elif what == "all_gather":
        proved(then(*closes[::-1]), "all_gather")
    else:
        proved(then(*opens), "reduce_scatter")


def test_helpers_of_stages_are_shared_by_the_same_rows() -> None:
    rows = nodes(8, 4)
    up, down = build("reduce_scatter/switch", 4), build("all_gather/switch", 4)
    made = then(on(rows, up), on(rows.T, build("all_reduce/switch", 2)), on(rows, down))
    proved(made, "all_reduce")
    assert made.helpers == 2 + 4


# --- then: what it refuses ----------------------------------------------------------------


def scattered(n: int) -> Schedule:
    return build("reduce_scatter/ring", n)


def gathered(n: int) -> Schedule:
    return build("all_gather/ring", n)


@pytest.mark.parametrize(
    ("stages", "message"),
    [
        (lambda: [], "at least one schedule"),
        (lambda: [[]], "at least one schedule"),
        (
            lambda: [on(nodes(8, 4), scattered(4)), on(nodes(8, 2), gathered(2))],
            "all_gather over 2 ranks does not close what was opened over 4",
        ),
        (
            lambda: [on(nodes(6, 3), scattered(3)), on(nodes(6, 3)[:, ::-1], gathered(3))],
            "must mirror",
        ),
        (
            lambda: [
                on(nodes(8, 2), scattered(2)),
                on(nodes(8, 2).T, scattered(4)),
                on(nodes(8, 2), gathered(2)),
                on(nodes(8, 2).T, gathered(4)),
            ],
            "does not close|own different pieces",
        ),
        (
            lambda: [on(nodes(4, 2), scattered(2)), build("all_reduce/ring", 4)],
            r"ranks \[0, 1, 2, 3\] of one group own different pieces",
        ),
        (
            lambda: [[on([0, 1], scattered(2)), on([2, 3, 4], scattered(3))]],
            "groups of different sizes cannot open one level",
        ),
        (
            lambda: [[on([0, 1], gathered(2)), on([2, 3, 4], gathered(3))]],
            "groups of different sizes cannot open one level",
        ),
        (
            lambda: [[on([0, 1], scattered(2)), on([2, 3], build("all_reduce/ring", 2))]],
            "all open, all close, or do neither",
        ),
        (
            lambda: [[on([0, 1], gathered(2)), on([2, 3], build("all_reduce/ring", 2))]],
            "all open, all close, or do neither",
        ),
        (lambda: [gathered(4), scattered(4)], "all_gather ... reduce_scatter is no collective"),
        (
            lambda: [build("broadcast/binomial", 4), build("reduce/binomial", 4)],
            "broadcast ... reduce is no collective",
        ),
        (lambda: [on([0, 1], scattered(2)), on([2, 3], scattered(2))], "own different pieces"),
        (lambda: [on([[0, 1]], scattered(2)), on([[2, 3]], gathered(2))], "mirror"),
    ],
)
def test_then_refuses(stages: Any, message: str) -> None:
    with pytest.raises(ScheduleError, match=message):
        then(*stages())


def test_an_empty_stage_is_refused() -> None:
    ring = build("all_reduce/ring", 2)
    for stages in ([[], ring], [ring, []]):
        with pytest.raises(ScheduleError):
            then(*stages)


def test_a_close_of_some_groups_only_is_refused() -> None:
    """Both nodes opened, one closes: the other would be left with a piece."""
    rows = nodes(4, 2)
    rails = on(rows.T, build("all_reduce/ring", 2))
    with pytest.raises(ScheduleError):
        then(on(rows, scattered(2)), rails, on(rows[:1], gathered(2)))


def test_parts_of_one_stage_that_share_ranks_are_refused() -> None:
    """They are done at the same time, by different ranks."""
    with pytest.raises(ScheduleError):
        then([on([0, 1], build("all_reduce/ring", 2)), on([1, 2], build("all_reduce/ring", 2))])


# --- split --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "n"),
    [
        (("all_reduce/ring", "all_reduce/ring"), 5),
        (("all_reduce/ring", "all_reduce/recursive_doubling", "all_reduce/double_tree"), 6),
        (("all_reduce/switch", "all_reduce/halving_doubling"), 6),
        (("all_reduce/switch", "all_reduce/leader_switch", "all_reduce/switch"), 6),
        (("broadcast/chain", "broadcast/binomial"), 7),
        (("reduce/reduce_scatter_gather", "reduce/switch"), 4),
        (("all_reduce/two_shot", "all_reduce/rails"), 6),
        (("all_reduce/ring",), 4),
    ],
)
def test_split_is_its_parts_side_by_side(names: tuple[str, ...], n: int) -> None:
    """Part i moves what it moved alone, at the same steps, in the i-th share of the chunks."""
    parts = [build(name, n) for name in names]
    made = proved(split(*parts), parts[0].collective)
    share = made.chunks // len(parts)
    wanted: dict[int, Counter[Event]] = {}
    for i, part in enumerate(parts):
        finer = share // part.chunks
        for at, events in moments(part).items():
            for e, times in events.items():
                for fine in range(finer):
                    chunk = i * share + e.chunk * finer + fine
                    wanted.setdefault(at, Counter())[e._replace(chunk=chunk)] += times
    assert moments(made) == wanted
    assert made.steps == max(part.steps for part in parts)
    assert made.helpers == max(part.helpers for part in parts)


def test_split_keeps_the_root() -> None:
    tree = build("broadcast/binomial", 6, root=2)
    chain = build("broadcast/chain", 6, root=2)
    assert proved(split(tree, chain), "broadcast").root == 2


@pytest.mark.parametrize("name", ["all_gather", "reduce_scatter", "gather", "scatter", "all_to_all",
                                  "send_recv", "barrier"])  # fmt: skip
def test_split_refuses_owned_pieces(name: str) -> None:
    one = rl.algorithms(name)[0](4)
    with pytest.raises(ScheduleError, match="its pieces have owners"):
        split(one, one)


@pytest.mark.parametrize(
    "parts",
    [
        lambda: (build("all_reduce/ring", 4), build("all_reduce/ring", 5)),
        lambda: (build("all_reduce/ring", 4), build("broadcast/chain", 4)),
        lambda: (build("broadcast/chain", 4), build("broadcast/chain", 4, root=1)),
        lambda: (build("all_reduce/ring", 4), on(nodes(4, 2), build("all_reduce/ring", 2))),
        lambda: (),
    ],
)
def test_split_refuses_parts_that_differ(parts: Any) -> None:
    with pytest.raises(ScheduleError, match="split"):
        split(*parts())


# --- reverse ------------------------------------------------------------------------------


def turned(schedule: Schedule) -> Schedule | None:
    try:
        return reverse(schedule)
    except ScheduleError:
        return None


@EVERY
def test_reverse_is_the_transpose(algorithm: rl.Algorithm) -> None:
    """Time runs backwards and every move the other way; twice is where one began."""
    if algorithm.collective not in TRANSPOSE:
        with pytest.raises(ScheduleError, match="has no transpose"):
            reverse(algorithm(6))
        return
    for n in (1, 2, 3, 5, 6, 8):
        schedule = algorithm(n, n // 2 if algorithm(n).kind.rooted else 0)
        back = turned(schedule)
        if back is None:
            assert schedule.helpers or algorithm.name == "scatter_all_gather"
            continue
        proved(back, TRANSPOSE[algorithm.collective])
        assert (back.steps, back.root) == (schedule.steps, schedule.root)
        assert back.setting.owner.tolist() == schedule.setting.owner.tolist()
        last = schedule.steps - 1
        wanted = {
            last - at: Counter({(e.dst, e.src, e.chunk): times for e, times in events.items()})
            for at, events in moments(schedule).items()
        }
        found = {
            at: Counter({(e.src, e.dst, e.chunk): times for e, times in events.items()})
            for at, events in moments(back).items()
        }
        assert found == wanted
        again = turned(back)
        if again is not None:
            proved(again, algorithm.collective)
            ops = {e.op for events in moments(schedule).values() for e in events}
            if len(ops) < 2:
                assert moments(again) == moments(schedule)


def test_most_algorithms_have_a_transpose() -> None:
    """So that the test above is not empty."""
    tried = [a(6) for a in rl.algorithms() if a.collective in TRANSPOSE]
    assert sum(turned(s) is not None for s in tried) >= 0.7 * len(tried)


@pytest.mark.parametrize("pieces", [1, 2, 5])
def test_starts_of_pipelines_are_mirrored(pieces: int) -> None:
    """A chain of 5: the last hop comes first, and the last piece goes first."""
    down = build("broadcast/chain", 5, pieces=pieces)
    up = proved(reverse(down), "reduce")
    (hop,) = up
    assert np.broadcast_to(hop.start, 4).tolist() == [3, 2, 1, 0]
    assert up.steps == down.steps == 4 + pieces - 1
    assert moments(up)[0] == Counter([Event(4, 3, pieces - 1, REDUCE)])
    assert moments(up)[up.steps - 1] == Counter([Event(1, 0, 0, REDUCE)])


def test_reverse_stays_lazy() -> None:
    direct = build("all_gather/direct", 6)
    assert callable(direct.rounds)
    back = reverse(direct)
    assert callable(back.rounds)
    assert moments(back) == moments(back)
    proved(back, "reduce_scatter")


def test_reverse_of_rows() -> None:
    """Parts for rows turn round like plain ones, inside and outside of `then`."""
    rows = nodes(6, 3)
    gather = on(rows, build("all_gather/ring", 3))
    back = reverse(gather)
    assert back.groups is not None
    assert moments(back) == moments(on(rows, reverse(build("all_gather/ring", 3))))
    tree = on(rows, build("broadcast/binomial", 3, root=1))
    made = then(reverse(tree), on(rows[:, 1], build("all_reduce/ring", 2)), tree)
    proved(made, "all_reduce")


@pytest.mark.parametrize(
    ("schedule", "message"),
    [
        (build("all_reduce/ring", 4), "all_reduce has no transpose; all_gather, reduce_scatter"),
        (build("all_to_all/direct", 4), "all_to_all has no transpose"),
        (build("broadcast/switch", 4), "adding switches"),
        (build("broadcast/scatter_all_gather", 4), "rank 0 writes . chunks but misses 0"),
        (
            Schedule("broadcast", 3, 1, [Round([0, 0], [1, 2], 0), Round(1, 2, 0)]),
            "rank 2 writes 2 chunks but misses 1",
        ),
        (
            Schedule("all_gather", 2, 2, [Round([0, 1], [1, 0], [0, 1]), Round(0, 1, 0)]),
            "rank 1 writes 2 chunks but misses 1",
        ),
        (
            Schedule("broadcast", 2, 2, [Round(0, 1, 0, count=2), Round(0, 1, 0, REDUCE)]),
            "only copies can be transposed",
        ),
    ],
)
def test_reverse_refuses(schedule: Schedule, message: str) -> None:
    with pytest.raises(ScheduleError, match=message):
        reverse(schedule)


@pytest.mark.parametrize("shape", [(2, 2, 2), (2, 3, 2), (3, 2, 2, 2)])
def test_gathers_of_many_levels(shape: tuple[int, ...]) -> None:
    """Gather in the node, then between leaders, then between their leaders; and its mirror."""
    ranks = np.arange(np.prod(shape)).reshape(shape)
    gathers = []
    for level in reversed(range(len(shape))):
        groups = ranks[(*[slice(None)] * (level + 1), *[0] * (len(shape) - level - 1))]
        groups = groups.reshape(-1, shape[level])
        gathers.append(on(groups, build("gather/binomial", shape[level])))
    proved(then(*gathers), "gather")
    proved(then(*[reverse(g) for g in reversed(gathers)]), "scatter")


def test_a_level_left_open_is_refused() -> None:
    rows = nodes(8, 4)
    with pytest.raises(ScheduleError, match="is no collective"):
        then(on(rows, build("reduce_scatter/ring", 4)), on(rows.T, build("all_reduce/ring", 2)))
