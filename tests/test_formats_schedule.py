"""Schedule files: what is written is read back and proved again; hostile ones do no harm."""

import contextlib
import json

import jsonschema
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import roundelay as rl
from roundelay.cli.verify import EXPAND_LIMIT
from roundelay.formats.schedule import read_schedule, schema, write_schedule


@pytest.mark.parametrize("algorithm", rl.algorithms(), ids=lambda a: f"{a.collective}/{a.name}")
@pytest.mark.parametrize("n", [1, 2, 6, 9])
def test_written_and_read_back(algorithm, n):
    schedule = algorithm(n, root=n - 1 if algorithm.kind.rooted else 0)
    data = write_schedule(schedule)
    jsonschema.validate(json.loads(data), schema())
    again = read_schedule(data)
    assert write_schedule(again) == data
    assert rl.cost(again) == rl.cost(schedule)
    assert rl.verify(again).ok


def ring_file():
    return json.loads(write_schedule(rl.build("all_reduce/ring", 4)))


@pytest.mark.parametrize(
    ("where", "value", "says"),
    [
        (("version",), 2, "version"),
        (("format",), "other", "format"),
        (("collective",), "all_reduced", "did you mean all_reduce"),
        (("ranks",), 0, "ranks"),
        (("ranks",), -1, "ranks"),
        (("ranks",), 2.5, "ranks"),
        (("ranks",), 3, "expected 0 to 2"),
        (("ranks",), 10**12, "ranks"),
        (("chunks",), 0, "chunks"),
        (("chunks",), 10**15, "chunks"),
        (("chunks",), 2, "expected 0 to 1"),
        (("root",), 4, "root"),
        (("owner",), [0, 0, 1, 2], "owner"),
        (("helpers",), -1, "helpers"),
        (("surprise",), 1, "surprise"),
        (("rounds", 0, "src"), [0, 1, 2, 4], "move 3: src = 4; expected 0 to 3"),
        (("rounds", 0, "src"), [0, 1], "one entry a move"),
        (("rounds", 0, "src"), [0, 1, 2, -1], "src"),
        (("rounds", 0, "src"), [[0]], "src"),
        (("rounds", 0, "src"), 10**30, "src"),
        (("rounds", 1, "chunk"), [0, 1, 2, 7], "round 1, move 3: chunk = 7"),
        (("rounds", 0, "op"), "add", "op"),
        (("rounds", 0, "count"), 5, "count = 5; expected 0 to 4"),
        (("rounds", 0, "unit"), 3, "unit = 3 does not divide"),
        (("rounds", 0, "unit"), 0, "unit"),
        (("rounds", 0, "wrap"), 3, "wrap = 3 does not divide"),
        (("rounds", 0, "times"), -1, "times"),
        (("rounds", 0, "times"), 2**62 - 1, "too many"),
        (("rounds", 0), None, "rounds"),
    ],
)
def test_bad_files_say_where(where, value, says):
    file = ring_file()
    at = file
    for key in where[:-1]:
        at = at[key]
    at[where[-1]] = value
    with pytest.raises(rl.RoundelayError) as caught:
        read_schedule(json.dumps(file).encode())
    assert says in str(caught.value)


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b"null", b"\xff\xfe\x00", b"[" * 10**6, b'{"format":' * 1000]
)
def test_what_is_no_schedule_file(data):
    with pytest.raises(rl.RoundelayError, match="schedule file"):
        read_schedule(data)


numbers = st.integers(-2, 9) | st.sampled_from([2**31, 2**40, 2**61, 2**63, 10**30])
rounds = st.fixed_dictionaries(
    {name: numbers | st.lists(numbers, max_size=4) for name in ("src", "dst", "chunk")},
    optional={
        **dict.fromkeys(("stride", "times", "shift", "unit", "wrap", "begin"), numbers),
        **{name: numbers | st.lists(numbers, max_size=4) for name in ("count", "start")},
        "op": st.sampled_from(["copy", "reduce"]),
    },
)
files = st.fixed_dictionaries(
    {
        "format": st.just("roundelay/schedule"),
        "version": st.just(1),
        "collective": st.sampled_from(["all_reduce", "broadcast", "all_gather", "all_to_all"]),
        "ranks": st.integers(1, 4) | numbers,
        "chunks": st.integers(1, 16) | numbers,
        "rounds": st.lists(rounds, max_size=3),
    },
    optional={"helpers": st.integers(0, 2) | numbers, "root": st.integers(0, 2)},
)


def read_and_use(file):
    with contextlib.suppress(rl.RoundelayError):
        schedule = read_schedule(json.dumps(file).encode())
        assert rl.cost(schedule).steps >= 0
        if schedule.expanded() <= EXPAND_LIMIT:
            verdict = rl.verify(schedule, complete=schedule.ranks * schedule.chunks <= 10**6)
            assert verdict.ok == (not verdict.reason)


@settings(max_examples=400)
@given(files)
def test_hostile_files_do_no_harm(file):
    """Read, count and check: an answer or a complaint, whatever the numbers."""
    read_and_use(file)


@pytest.mark.soak
@settings(max_examples=20_000)
@given(files)
def test_hostile_files_do_no_harm_at_length(file):
    read_and_use(file)


def test_a_file_may_not_stand_for_too_many_moves(tmp_path, capsys):
    from roundelay import cli

    file = ring_file()
    file["rounds"][0]["times"] = 2**40
    path = tmp_path / "many.json"
    path.write_text(json.dumps(file))
    assert cli.run(["verify", str(path)]) == 2
    assert "chunk moves" in capsys.readouterr().err
    assert cli.run(["show", str(path)]) == 2


def test_large_schedules_are_not_listed():
    n = 4000
    rank = np.arange(n)
    many = rl.Schedule("all_to_all", n, n * n, lambda: (
        rl.Round(rank, (rank + d) % n, rank * n + (rank + d) % n, begin=0) for d in range(1, n)
    ))  # fmt: skip
    with pytest.raises(rl.RoundelayError, match="moves to list"):
        write_schedule(many)
