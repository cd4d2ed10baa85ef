"""What an algorithm is, and where they are found: every module below this package.

An algorithm file holds a function of n (and parameters) that returns a `Schedule`, under the
decorator `algorithm` with its cost card. Nothing else knows its name.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import numpy as np

from ..collectives import COLLECTIVES, Collective, UnknownName, collective
from ..errors import RoundelayError
from ..schedule import MAX_RANKS, Schedule, ScheduleError
from ..verbs import TRANSPOSE, on, reverse
from .formulas import evaluate

QUANTITIES = ("messages", "bytes_sent", "steps")


class Card(NamedTuple):
    """What an algorithm costs by its formulas.

    Attributes:
        messages: messages sent by the rank that sends most of them.
        bytes_sent: bytes sent by the rank that sends most of them.
        steps: steps of the schedule.
    """

    messages: Fraction
    bytes_sent: Fraction
    steps: Fraction


@dataclass(frozen=True, eq=False)
class Algorithm:
    """One algorithm of one collective; call it with n to get its schedule.

    Attributes:
        collective, name: as on the command line, `collective/name`.
        function: n and parameters to a schedule with root 0.
        messages, bytes_sent, steps: the cost card, formulas for n >= 2 (alone, a rank has
            nothing to exchange and every cost is 0). See `formulas` for the names in them.
        good, bad: when it wins and when it loses, in a few words.
        source: where it was published or is described.
        defaults: parameters whose default depends on n.
        tries: values of parameters that are worth proving at n, beside the default.
        needs: a condition on n and the parameters, as a formula.
        dense: whether it has n * n moves, so that large n are counted by the card.
    """

    collective: str
    name: str
    function: Callable[..., Schedule]
    messages: str
    bytes_sent: str
    steps: str
    good: str
    bad: str
    source: str
    defaults: Mapping[str, Callable[[int], Any]] = field(default_factory=dict)
    tries: Mapping[str, Callable[[int], Iterable[Any]]] = field(default_factory=dict)
    needs: str = ""
    dense: bool = False

    @property
    def kind(self) -> Collective:
        """The collective itself."""
        return collective(self.collective)

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Parameter names and their defaults; None where the default depends on n."""
        names = list(inspect.signature(self.function).parameters.values())[1:]
        return {p.name: None if p.name in self.defaults else p.default for p in names}

    def resolve(self, n: int, params: Mapping[str, Any]) -> dict[str, Any]:
        """All parameters for n ranks: those given, the others by default.

        Raises:
            UnknownName: a parameter the algorithm does not have.
            ScheduleError: a parameter of the wrong type.
        """
        computed = {name: default(n) for name, default in self.defaults.items()}
        known = {**self.parameters, **computed}
        for name, value in params.items():
            if name not in known:
                raise UnknownName(f"parameter of {self.collective}/{self.name}", name, known)
            value = int(value) if isinstance(value, np.integer) else value
            kind = type(known[name])
            part = kind is str and isinstance(value, Schedule)
            if not (part or isinstance(value, kind)) or isinstance(value, bool):
                example = "x".join(map(str, np.atleast_1d(known[name])))
                raise ScheduleError(f"{name} = {value!r}; expected such as {example}")
            known[name] = value
        if self.needs and not evaluate(self.needs, {"n": n, **known}):
            found = ", ".join(f"{k} = {v}" for k, v in {"n": n, **known}.items())
            raise ScheduleError(f"{self.collective}/{self.name} needs {self.needs}; found {found}")
        return known

    def fits(self, n: int, params: Mapping[str, Any] = MappingProxyType({})) -> bool:
        """Whether n and the parameters are what the algorithm needs."""
        try:
            self.resolve(rank_count(n), params)
        except RoundelayError:
            return False
        return True

    def __call__(self, n: int, root: int = 0, **params: Any) -> Schedule:
        """The schedule for n ranks.

        Args:
            n: number of ranks, at least 1.
            root: the root, for a rooted collective.
            **params: the algorithm's own parameters.

        Raises:
            ScheduleError: n, the root or a parameter is out of range.
            UnknownName: a parameter the algorithm does not have.
        """
        n = rank_count(n)
        if isinstance(root, bool) or not isinstance(root, int | np.integer) or not 0 <= root < n:
            raise ScheduleError(f"root = {root!r}; expected a rank, 0 to {n - 1}")
        if root and not self.kind.rooted:
            raise ScheduleError(f"{self.collective} has no root; found root = {root}")
        resolved = self.resolve(n, params)
        schedule = self.function(n, **resolved)
        self._check(schedule, n)
        if root:
            schedule = on((np.arange(n) + root) % n, schedule)
        return replace(
            schedule, collective=self.collective, name=self.name, params=MappingProxyType(resolved)
        )

    def _check(self, schedule: Any, n: int) -> None:
        """Refuse what the function gave, if it is not what was asked for."""
        name = f"{self.collective}/{self.name}"
        if not isinstance(schedule, Schedule):
            raise ScheduleError(f"{name} at n = {n} gave {schedule!r:.60}; expected a Schedule")
        kind = schedule.whole().kind
        found = (kind.before, kind.after, schedule.ranks, schedule.root)
        if found != (self.kind.before, self.kind.after, n, 0):
            raise ScheduleError(
                f"{name} at n = {n} gave {kind.name} over {schedule.ranks} ranks with root "
                f"{schedule.root}; expected {self.collective} over {n} with root 0"
            )

    def card(self, n: int, size: int | Fraction = 1, **params: Any) -> Card:
        """The cost card's figures for n ranks and `size` bytes."""
        n = rank_count(n)
        known = self.resolve(n, params)
        if n == 1:
            return Card(Fraction(0), Fraction(0), Fraction(0))

        def value(quantity: str) -> Fraction:
            def of(name: str) -> Callable[..., Fraction]:
                def cost(algorithm: str, ranks: Any, size: Any) -> Fraction:
                    part = find(name, algorithm).card(int(ranks), size)
                    return Fraction(getattr(part, quantity))

                return cost

            parts = {name: of(name) for name in COLLECTIVES}
            names = {"n": n, "S": Fraction(size), **known, **parts}
            return evaluate(getattr(self, quantity), names)

        return Card(*(value(q) for q in QUANTITIES))

    def transpose(self, name: str = "", each: str = "", **changes: Any) -> Algorithm:
        """The algorithm of the transposed collective, by `reverse`; a card may differ in part."""

        def backwards(n: int, **params: Any) -> Schedule:
            return reverse(self.function(n, **params))

        backwards.__signature__ = inspect.signature(self.function)  # type: ignore[attr-defined]
        if each:
            changes |= dict.fromkeys(QUANTITIES, each)
        return replace(
            self,
            collective=TRANSPOSE[self.collective],
            name=name or self.name,
            function=backwards,
            **changes,
        )

    def variants(self, n: int) -> Iterator[dict[str, Any]]:
        """Parameter values worth proving at n: the defaults, and every group that divides n."""
        default = self.resolve(n, {})
        yield {}
        for name, values in self.tries.items():
            yield from ({name: v} for v in values(n) if v != default[name])


def algorithm(
    collective: str, *, each: str = "", messages: str = "", bytes_sent: str = "", steps: str = "",
    good: str = "", bad: str = "", source: str = "", **more: Any,
) -> Callable[[Callable[..., Schedule]], Algorithm]:  # fmt: skip
    """Make a function of n an `Algorithm` of the collective, with its cost card.

    `each` is one formula for all three costs, where an algorithm is the sum of its parts:
    ``reduce_scatter(inner, group, S)`` stands for the part's cost of the same kind.
    """

    def decorate(function: Callable[..., Schedule]) -> Algorithm:
        made = Algorithm(
            collective, function.__name__, function, messages or each, bytes_sent or each,
            steps or each, good, bad, source, **more,
        )  # fmt: skip
        file = function.__globals__.get("__doc__")
        object.__setattr__(made, "__doc__", function.__doc__ or file)
        return made

    return decorate


@cache
def everything() -> Mapping[str, Mapping[str, Algorithm]]:
    """Every algorithm, by collective and name."""
    package = importlib.import_module(__package__)
    found: dict[str, dict[str, Algorithm]] = {name: {} for name in COLLECTIVES}
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        for value in vars(importlib.import_module(module.name)).values():
            if isinstance(value, Algorithm):
                found[value.collective][value.name] = value
    for name in COLLECTIVES:
        if even := COLLECTIVES[name].even:
            found[name] = {a.name: replace(a, collective=name) for a in found[even].values()}
    return MappingProxyType(
        {c: MappingProxyType(dict(sorted(named.items()))) for c, named in found.items()}
    )


def algorithms(name: str | None = None) -> list[Algorithm]:
    """The algorithms of one collective, or of all (the uneven forms, the same again, left out).

    Raises:
        UnknownName: there is no such collective.
        RoundelayError: its schedules depend on a routing.
    """
    every = [c.name for c in COLLECTIVES.values() if not c.even]
    names = every if name is None else [name]
    return [a for c in names for a in _of(c).values()]


def _of(name: str) -> Mapping[str, Algorithm]:
    """The algorithms of a collective by name."""
    if collective(name).routed:
        raise RoundelayError(
            f"{name} follows from where tokens go, not from a number of ranks; write its schedule "
            "to a file with `roundelay moe export` and name the file, or see roundelay.moe"
        )
    return everything()[name]


def find(what: str, name: str | None = None) -> Algorithm:
    """The algorithm called `what` ("all_reduce/ring"), or `what` and `name`.

    Raises:
        UnknownName: with the nearest known names.
        RoundelayError: `what` does not name an algorithm of a collective.
    """
    if name is None:
        if what.count("/") != 1:
            raise RoundelayError(f"{what!r}; expected COLLECTIVE/ALGORITHM, as all_reduce/ring")
        what, name = what.split("/")
    known = _of(what)
    name = _HALVES.get((what, name), name)
    if name not in known:
        raise UnknownName(f"algorithm of {what}", name, known)
    return known[name]


_HALVES: Final = MappingProxyType(
    {
        ("reduce_scatter", "recursive_doubling"): "recursive_halving",
        ("all_gather", "recursive_halving"): "recursive_doubling",
    }
)
"""The two halves of one algorithm go by two names; either finds its own half."""


def build(what: str, n: int, *, root: int = 0, **params: Any) -> Schedule:
    """The schedule of ``"all_reduce/ring"`` (say) over n ranks.

    Args:
        what: COLLECTIVE/ALGORITHM.
        n: number of ranks, at least 1.
        root: the root, for a rooted collective.
        **params: the algorithm's own parameters, such as ``group=8``.

    Raises:
        UnknownName: no such collective, algorithm or parameter.
        ScheduleError: n, the root or a parameter is out of range.
    """
    return find(what)(n, root, **params)


def pick(name: str, choice: str | Schedule, n: int) -> Schedule:
    """The part an algorithm is told to use: by name, or a schedule as it is."""
    return choice if isinstance(choice, Schedule) else find(name, choice)(n)


def rank_count(n: Any) -> int:
    """The number of ranks, if it is one.

    Raises:
        ScheduleError: it is not a whole number from 1 up, or beyond what arrays can hold.
    """
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise ScheduleError(f"{n!r} ranks; expected a whole number from 1 up")
    if n > MAX_RANKS:
        raise ScheduleError(f"{n:,} ranks; expected at most {MAX_RANKS:,}")
    return int(n)


def divisors(n: int) -> list[int]:
    """The divisors of n, rising."""
    return [g for g in range(1, n + 1) if n % g == 0]


def pairs(n: int) -> list[tuple[int, int]]:
    """All pairs of numbers whose product divides n."""
    return [(a, b) for a in divisors(n) for b in divisors(n // a)]


def node_size(n: int) -> int:
    """Cards of a node where nobody says: the largest divisor of n up to 8, but not n itself."""
    return max((g for g in range(1, 9) if n % g == 0 and g < n), default=1)
