"""Every algorithm that the registry finds: right at every n, and as dear as its card says.

A new file below `algorithms/` is covered here without a change here.
"""

import ast
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import reference

import roundelay as rl
from roundelay import Algorithm, RoundelayError, Schedule, algorithms, find, prove, verify
from roundelay.algorithms import formulas
from roundelay.schedule import ScheduleError

EVEN = algorithms()
EVERY = pytest.mark.parametrize("algorithm", EVEN, ids=lambda a: f"{a.collective}/{a.name}")
PACKAGE = Path(formulas.__file__).parent
FILES = sorted(p for p in PACKAGE.glob("*/*.py") if p.stem != "__init__")


def sizes(algorithm: Algorithm, *candidates: int) -> list[int]:
    return [n for n in candidates if algorithm.fits(n)]


# --- right, and as dear as the card says ---------------------------------------------------


@EVERY
def test_proved_at_every_n_with_every_variant(algorithm: Algorithm) -> None:
    """n = 1 to 33, every group that divides n: right, same bits, counted = card."""
    for n in sizes(algorithm, *range(1, 34)):
        for params in algorithm.variants(n):
            verdict = prove(algorithm, n, params=params)
            assert verdict.ok, f"n = {n}, {params}: {verdict.reason}"
            assert verdict.sampled is None
            assert verdict.same_bits in (True, None)


@EVERY
def test_exact_counts_agree(algorithm: Algorithm) -> None:
    """The same by loops that count every contribution, with the order of summation."""
    for n in sizes(algorithm, *range(1, 9)):
        for params in algorithm.variants(n):
            schedule = algorithm(n, **params)
            outcome = reference.run(schedule)
            assert (outcome.illegal, outcome.wrong) == ("", {})
            assert outcome.same_bits
            if schedule.kind.sums:
                assert verify(schedule, orders=0).summation == outcome.summation(n)


@EVERY
def test_any_root(algorithm: Algorithm) -> None:
    rooted = algorithm(2).kind.rooted
    rng = np.random.default_rng(7)
    for n in sizes(algorithm, 2, 3, 4, 7, 8, 12, 16, 21, 32):
        root = int(rng.integers(1, n))
        if not rooted:
            with pytest.raises(ScheduleError, match="has no root"):
                algorithm(n, root)
            continue
        schedule = algorithm(n, root)
        assert schedule.root == root
        verdict = prove(algorithm, n, root=root)
        assert verdict.ok, verdict.reason
        if n <= 8:
            assert not reference.run(schedule).wrong


@EVERY
def test_large(algorithm: Algorithm) -> None:
    """4,000 ranks by a sample of chunks; where there are n * n moves, 128 ranks completely."""
    if algorithm.dense:
        verdict = prove(algorithm, 128, complete=True)
        assert verdict.sampled is None
    else:
        verdict = prove(algorithm, 4000 if algorithm.fits(4000) else 4096, samples=4)
        assert verdict.sampled is None or verdict.sampled >= 4
    assert verdict.ok, verdict.reason


@pytest.mark.soak
@pytest.mark.timeout(3600)
@EVERY
def test_larger_soak(algorithm: Algorithm) -> None:
    for n in sizes(algorithm, *range(34, 130), 144, 192, 255, 256):
        if algorithm.dense and n > 72:
            break
        for params in itertools.islice(algorithm.variants(n), 12):
            verdict = prove(algorithm, n, params=params)
            assert verdict.ok, f"n = {n}, {params}: {verdict.reason}"


@pytest.mark.parametrize("name", ["all_gather_v", "reduce_scatter_v", "all_to_all_v"])
def test_uneven_forms_are_the_even_ones(name: str) -> None:
    """The same algorithms under another name; the ids, and so the proofs, are the same."""
    even = algorithms(name.removesuffix("_v"))
    uneven = algorithms(name)
    assert [a.name for a in uneven] == [a.name for a in even]
    for a, b in zip(even, uneven, strict=True):
        assert reference.expand(a(6)) == reference.expand(b(6))
        assert prove(b, 6).ok
        assert b(6).collective == name


# --- parts that are named -------------------------------------------------------------------


NAMED = [a for a in EVEN if {"inner", "outer"} & set(a.parameters)]


@pytest.mark.parametrize("algorithm", NAMED, ids=lambda a: f"{a.collective}/{a.name}")
def test_every_inner_with_every_outer(algorithm: Algorithm) -> None:
    """24 ranks in nodes of 4: what can be built is right; what cannot is refused in words."""
    names = sorted({a.name for a in EVEN})
    known = algorithm.parameters
    more = {"group": 4} if "group" in known else {"groups": (4, 2)}
    built = 0
    for inner in names if "inner" in known else [None]:
        for outer in names if "outer" in known else [None]:
            chosen = {"inner": inner, "outer": outer}
            try:
                schedule = algorithm(24, **more, **{k: v for k, v in chosen.items() if v})
            except RoundelayError:
                continue
            built += 1
            verdict = verify(schedule, orders=0)
            assert verdict.ok, f"{chosen}: {verdict.reason}"
    assert built >= (5 if "outer" not in known else 40)


@pytest.mark.parametrize("collective", ["all_reduce", "all_gather"])
def test_rails_take_any_parts(collective: str) -> None:
    """Every algorithm of both collectives will do inside, and every one between the nodes."""
    rails = find(f"{collective}/rails")
    both = {a.name for a in algorithms("reduce_scatter")} & {
        a.name for a in algorithms("all_gather")
    }
    inner = both if collective == "all_reduce" else {a.name for a in algorithms("all_gather")}
    for a, b in itertools.product(sorted(inner), (x.name for x in algorithms(collective))):
        assert rails(24, group=4, inner=a, outer=b).collective == collective


# --- parameters and names -------------------------------------------------------------------


BAD: dict[type, list[Any]] = {
    int: [0, -1, -(2**40)],
    str: ["rign", "", "ring ", "../ring"],
    tuple: [(0, 1), (1, 0), (-2, -3), (5, 5), (6,), (1, 2, 3), (), (2**40, 2**40)],
}


def bad_choices() -> list[Any]:
    return [
        pytest.param(a, name, value, id=f"{a.collective}/{a.name}-{name}-{value!r}")
        for a in EVEN
        for name, default in a.resolve(6, {}).items()
        for value in BAD[type(default)]
    ]


@pytest.mark.parametrize(("algorithm", "name", "value"), bad_choices())
def test_parameters_out_of_range(algorithm: Algorithm, name: str, value: Any) -> None:
    with pytest.raises(RoundelayError):
        algorithm(6, **{name: value})


@pytest.mark.parametrize("value", [1.5, 2.0, None, "3", [1]], ids=repr)
def test_parameters_of_another_type(value: Any) -> None:
    """Refused as bad input, not by an error from somewhere below."""
    for algorithm in EVEN:
        for name in algorithm.parameters:
            with pytest.raises(RoundelayError):
                algorithm(6, **{name: value})


def test_numbers_may_be_those_of_numpy() -> None:
    """n is taken as NumPy gives it, and so are parameters."""
    n, group = np.int64(12), np.array([2, 3, 4])[1]
    schedule = rl.build("all_reduce/rails", n, group=group)
    assert reference.expand(schedule) == reference.expand(rl.build("all_reduce/rails", 12, group=3))


@EVERY
def test_what_else_is_refused(algorithm: Algorithm) -> None:
    for n in (0, -1, 2.0, "4", True, None):
        with pytest.raises(RoundelayError, match="expected a whole number from 1 up"):
            algorithm(n)
    for root in (-1, 4, 1.0, True):
        with pytest.raises(RoundelayError, match="root = "):
            algorithm(4, root)
    with pytest.raises(RoundelayError, match="unknown parameter of"):
        algorithm(4, colour=1)
    if not algorithm.fits(6):
        with pytest.raises(RoundelayError, match="needs"):
            algorithm(6)


@pytest.mark.parametrize(
    ("what", "params", "message"),
    [
        ("all_reduce/rign", {}, "unknown algorithm of all_reduce 'rign'; did you mean ring"),
        ("all_reduce/halving_doublng", {}, "did you mean halving_doubling"),
        ("allreduce/ring", {}, "unknown collective 'allreduce'; did you mean all_reduce"),
        ("all_reduce/xyzzy", {}, "known: bine, double_tree, "),
        ("all_reduce/rails", {"groups": 2}, "did you mean group"),
        ("all_reduce/rails", {"inner": "brukc"}, "did you mean bruck"),
        ("all_reduce/rails", {"group": 5}, "8 ranks do not fill nodes of 5; .* go by leader"),
        ("all_reduce/rails3", {"groups": (3, 2)}, "whose product divides n = 8"),
        ("ring", {}, "expected COLLECTIVE/ALGORITHM"),
        ("a/b/c", {}, "expected COLLECTIVE/ALGORITHM"),
        ("/", {}, "unknown collective"),
    ],
)
def test_unknown_names_suggest(what: str, params: dict[str, Any], message: str) -> None:
    with pytest.raises(RoundelayError, match=message):
        rl.build(what, 8, **params)


def test_found_by_either_spelling() -> None:
    assert find("all_reduce/ring") is find("all_reduce", "ring")
    assert [a.name for a in algorithms("barrier")] == ["dissemination"]
    with pytest.raises(RoundelayError, match="unknown collective"):
        algorithms("gossip")


def test_a_schedule_carries_its_name_and_parameters() -> None:
    schedule = rl.build("all_reduce/leader", 12, group=5, outer="swing")
    assert (schedule.collective, schedule.name) == ("all_reduce", "leader")
    assert dict(schedule.params) == {"group": 5, "inner": "binomial", "outer": "swing"}


# --- files ----------------------------------------------------------------------------------


@pytest.mark.parametrize("path", FILES, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_a_file_is_one_algorithm(path: Path) -> None:
    """Its path is its name; it is short; its card and docstring say what a reader needs."""
    algorithm = find(path.parent.name, path.stem)
    assert algorithm.collective == path.parent.name
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 60
    tree = ast.parse(text)
    assert (ast.get_docstring(tree) or "").strip()
    functions = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    assert path.stem in functions
    for field in ("messages", "bytes_sent", "steps", "good", "bad", "source"):
        assert getattr(algorithm, field).strip()


def test_every_algorithm_comes_from_such_a_file() -> None:
    """None is made elsewhere, and a transpose has the name of its file unless it says otherwise."""
    from_files = {(p.parent.name, p.stem) for p in FILES}
    names = {(a.collective, a.name) for a in EVEN}
    assert from_files <= names
    transposed = {name for _, name in names - from_files}
    assert transposed <= {p.stem for p in FILES} | {"recursive_halving"}
    assert len(names) == len(EVEN)


# --- cards ----------------------------------------------------------------------------------


@EVERY
def test_cards(algorithm: Algorithm) -> None:
    """Nothing to do alone; bytes grow with the size, messages and steps do not."""
    assert algorithm.card(1) == (0, 0, 0)
    for n in sizes(algorithm, 2, 6, 8, 12):
        one, many = algorithm.card(n), algorithm.card(n, 1 << 20)
        assert many == (one.messages, one.bytes_sent * (1 << 20), one.steps)
        assert one.messages.denominator == one.steps.denominator == 1


def test_a_wrong_card_is_found() -> None:
    for field, formula in (("messages", "n"), ("bytes_sent", "2*S"), ("steps", "2*n")):
        fields = {"messages": "2*(n-1)", "bytes_sent": "2*S*(n-1)/n", "steps": "2*(n-1)"}
        ring = find("all_reduce/ring").function
        lying = rl.algorithm(
            "all_reduce", **(fields | {field: formula}), good="-", bad="-", source="-"
        )(ring)
        verdict = prove(lying, 6)
        assert not verdict.ok
        assert f"{field}: counted" in verdict.reason
        assert formula in verdict.reason


@pytest.mark.parametrize(
    "formula",
    [
        "n +",
        "m",
        "n.real.x",
        "1/0",
        "'a' + 1",
        "__import__('os')",
        "None",
    ],
)
def test_formulas_that_are_none(formula: str) -> None:
    with pytest.raises(RoundelayError, match="cost formula"):
        formulas.evaluate(formula, {"n": 4})


def test_formula_functions() -> None:
    """Against loops that follow their descriptions."""
    for n in range(1, 200):
        powers = [2**k for k in range(9)]
        assert formulas.pow2_below(n) == max(p for p in powers if p <= n)
        assert formulas.pow2_above(n) == min(p for p in powers if p >= n)
        for base in (2, 3, 4, 8):
            assert formulas.ceil_log(n, base) == min(k for k in range(9) if base**k >= n)
            assert formulas.floor_log(n, base) == max(k for k in range(9) if base**k <= n)
            digits = sum(d != "0" for x in range(n) for d in np.base_repr(x, base))
            assert formulas.nonzero_digits(n, base) == digits
    assert formulas.evaluate("(n-1)/n", {"n": 3}) == formulas.Fraction(2, 3)


def test_an_algorithm_of_ones_own() -> None:
    """The decorator works outside the package; the registry does not know the result."""

    @rl.algorithm("broadcast", messages="1", bytes_sent="S", steps="n - 1",
                  good="a test", bad="all else", source="this file")  # fmt: skip
    def relay(n: int) -> Schedule:
        """Pass it on."""
        return Schedule("broadcast", n, 1, [rl.Round(r, r + 1, 0) for r in range(n - 1)])

    for n in range(1, 12):
        assert prove(relay, n, root=n // 2).ok
    assert relay.__doc__ == "Pass it on."
    with pytest.raises(RoundelayError, match="unknown algorithm"):
        find("broadcast/relay")
