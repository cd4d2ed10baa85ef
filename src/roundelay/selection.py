"""Which algorithm, by a table of collective, ranks, topology and size.

A table is a TOML file of rules. The first rule that fits is taken::

    [[rule]]
    collective = "all_reduce"
    nodes = "one"              # one, even (nodes of equal size), uneven; absent: any
    ranks = [2, 8]             # from, to; absent: any
    below = "32 KiB"           # bytes in the sense of nccl-tests' size column; absent: any
    algorithm = "one_shot"
    parameters = { pieces = 4 }
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from .algorithms import algorithms, find
from .collectives import UnknownName
from .errors import RoundelayError
from .units import parse_size

SHIPPED: Final = "default.toml"
"""The table that comes with the package; it says where it was measured."""


class Topology(NamedTuple):
    """How ranks share nodes.

    Attributes:
        ranks: n.
        nodes: ranks of each node.
    """

    ranks: int
    nodes: tuple[int, ...]

    @property
    def kind(self) -> str:
        """One node, even nodes or uneven ones."""
        if len(self.nodes) == 1:
            return "one"
        return "even" if len(set(self.nodes)) == 1 else "uneven"

    @property
    def group(self) -> int | None:
        """Ranks of each node, where only the last may have fewer; else None."""
        first, *others = self.nodes
        whole = all(ranks == first for ranks in others[:-1])
        return first if whole and self.nodes[-1] <= first else None


class Rule(msgspec.Struct, forbid_unknown_fields=True):
    """One line of a table; see the module."""

    collective: str
    algorithm: str
    nodes: str = ""
    ranks: tuple[int, int] = (1, 2**31)
    below: str = ""
    parameters: dict[str, Any] = {}

    def __post_init__(self) -> None:
        self.limit()

    def limit(self) -> int | None:
        """Bytes that it is below of, or None."""
        return parse_size(self.below) if self.below else None

    def fits(self, collective: str, topology: Topology, size: int) -> bool:
        """Whether it is for this call."""
        return (
            self.collective == collective
            and self.nodes in ("", topology.kind)
            and self.ranks[0] <= topology.ranks <= self.ranks[1]
            and ((limit := self.limit()) is None or size < limit)
        )


class _File(msgspec.Struct, forbid_unknown_fields=True):
    measured: str = ""
    rule: list[Rule] = []


class Table:
    """Rules, first to last."""

    def __init__(self, rules: Sequence[Rule], measured: str = "") -> None:
        self.rules, self.measured = list(rules), measured

    @classmethod
    def read(cls, text: str, name: str) -> Table:
        """A table from TOML.

        Raises:
            RoundelayError: it is no table; the message says where.
        """
        try:
            found = msgspec.convert(tomllib.loads(text), _File)
            for rule in found.rule:
                _check(rule)
        except (tomllib.TOMLDecodeError, msgspec.ValidationError, RoundelayError) as error:
            raise RoundelayError(f"{name}: {error}; see `roundelay tune --help`") from None
        return cls(found.rule, found.measured)

    @classmethod
    def load(cls, path: str | None = None) -> Table:
        """The table of a file, or the one that comes with the package."""
        if path:
            try:
                return cls.read(Path(path).read_text("utf-8"), path)
            except OSError as error:
                raise RoundelayError(
                    f"cannot read the table {path}: {error.strerror}; write one with "
                    "`roundelay tune`, or unset ROUNDELAY_TABLE"
                ) from None
            except UnicodeDecodeError as error:
                raise RoundelayError(f"{path} is no table, for it is no text: {error}") from None
        text = resources.files(__package__).joinpath("tables", SHIPPED).read_text("utf-8")
        return cls.read(text, SHIPPED)

    def choose(
        self, collective: str, topology: Topology, size: int
    ) -> tuple[str, Mapping[str, Any]]:
        """Algorithm and parameters for a call.

        Parameters called `group` are the ranks of a node where the rule does not say them; a rule
        that needs them is passed over where nodes have different numbers.
        """
        for rule in self.rules:
            if not rule.fits(collective, topology, size):
                continue
            algorithm = find(f"{collective}/{rule.algorithm}")
            parameters = dict(rule.parameters)
            if "group" in algorithm.parameters and "group" not in parameters:
                if topology.group is None:
                    continue
                parameters["group"] = topology.group
            if algorithm.fits(topology.ranks, parameters):
                return rule.algorithm, parameters
        return default(collective, topology), {}


def _check(rule: Rule) -> None:
    algorithm = find(f"{rule.collective}/{rule.algorithm}")
    for name in rule.parameters:
        if name not in algorithm.parameters:
            raise UnknownName(
                f"parameter of {rule.collective}/{rule.algorithm}", name, algorithm.parameters
            )


def default(collective: str, topology: Topology) -> str:
    """An algorithm that is right at any size, where no rule fits."""
    for name in ("two_shot", "direct", "dissemination"):
        for a in algorithms(collective):
            if a.name == name and a.fits(topology.ranks):
                return name
    raise RoundelayError(f"no algorithm of {collective} fits {topology.ranks} ranks")
