"""Which algorithm the shipped table takes for ranks on several nodes."""

import pytest

from roundelay.errors import RoundelayError
from roundelay.selection import Table, Topology

MIB = 1 << 20


@pytest.mark.parametrize(
    ("nodes", "group"),
    [((4,), 4), ((2, 2), 2), ((3, 3, 1), 3), ((3, 1), 3), ((1, 3), None), ((3, 2, 2), None)],
)
def test_groups_are_nodes_of_which_the_last_may_be_smaller(nodes, group):
    assert Topology(sum(nodes), nodes).group == group


@pytest.mark.parametrize(
    ("nodes", "size", "algorithm"),
    [
        ((4,), 16 * MIB, "two_shot"),
        ((2, 2), 8, "recursive_doubling"),
        ((2, 2), 8 << 10, "leader"),
        ((2, 2), 16 * MIB, "rails"),
        ((3, 1), 16 * MIB, "leader"),
        ((3, 2, 2), 8 << 10, "recursive_doubling"),
        ((3, 2, 2), 16 * MIB, "ring"),
    ],
)
def test_all_reduce(nodes, size, algorithm):
    topology = Topology(sum(nodes), nodes)
    found, parameters = Table.load().choose("all_reduce", topology, size)
    assert found == algorithm
    assert parameters.get("group", topology.group) == topology.group


@pytest.mark.parametrize("collective", ["all_gather", "reduce_scatter"])
def test_uneven_nodes_need_no_rails(collective):
    assert Table.load().choose(collective, Topology(7, (3, 2, 2)), MIB)[0] == "ring"
    assert Table.load().choose(collective, Topology(6, (3, 3)), MIB)[0] == "rails"


def test_parameters_that_an_algorithm_does_not_have_are_refused():
    rule = '[[rule]]\ncollective = "all_reduce"\nalgorithm = "rails"\nparameters = { grup = 2 }'
    with pytest.raises(RoundelayError, match=r"mine.toml: unknown parameter.*'grup'.*group"):
        Table.read(rule, "mine.toml")
