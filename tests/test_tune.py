"""Tables of algorithms: reading, choosing, and making them from measured times."""

import pytest

import roundelay as rl
from roundelay.selection import Rule, Table, Topology
from roundelay.tune import Winner, candidates, rules, write

ONE = Topology(4, (4,))
EVEN = Topology(4, (2, 2))
UNEVEN = Topology(5, (2, 3))


def table(text):
    return Table.read(text, "a table")


def test_the_first_rule_that_fits_is_taken():
    found = table(
        """
        [[rule]]
        collective = "all_reduce"
        nodes = "one"
        ranks = [2, 4]
        below = "1 KiB"
        algorithm = "one_shot"
        [[rule]]
        collective = "all_reduce"
        nodes = "even"
        algorithm = "rails"
        [[rule]]
        collective = "all_reduce"
        algorithm = "ring"
        """
    )
    assert found.choose("all_reduce", ONE, 1023) == ("one_shot", {})
    assert found.choose("all_reduce", ONE, 1024) == ("ring", {})
    assert found.choose("all_reduce", Topology(5, (5,)), 8) == ("ring", {})
    assert found.choose("all_reduce", EVEN, 8) == ("rails", {"group": 2})
    assert found.choose("all_reduce", UNEVEN, 8) == ("ring", {})
    assert found.choose("all_to_all", ONE, 8) == ("direct", {})


@pytest.mark.parametrize("topology", [ONE, EVEN, UNEVEN, Topology(1, (1,)), Topology(9, (4, 4, 1))])
@pytest.mark.parametrize("size", [0, 8, 4096, 1 << 20, 1 << 30])
def test_the_shipped_table_has_an_algorithm_for_every_call(topology, size):
    shipped = Table.load()
    assert shipped.measured
    for collective in ("all_reduce", "reduce", "broadcast", "all_gather", "reduce_scatter",
                       "gather", "scatter", "all_to_all", "barrier"):  # fmt: skip
        name, parameters = shipped.choose(collective, topology, size)
        schedule = rl.build(f"{collective}/{name}", topology.ranks, **parameters)
        assert schedule.ranks == topology.ranks


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rule = 3", "array"),
        ('[[rule]]\ncollective = "all_reduce"\nalgorithm = "rign"', "did you mean"),
        ('[[rule]]\ncollective = "x"\nalgorithm = "ring"', "unknown"),
        ('[[rule]]\ncollective = "all_reduce"\nalgorithm = "ring"\nbelow = "many"', "size"),
        ("[[rule]]\nwrong = 1", "wrong"),
        ('[[rule]]\ncollective = "all_reduce"\nalgorithm = "ring"\nlimit = 5', "limit"),
        ("not toml", "a table:"),
    ],
)
def test_a_bad_table_is_refused_with_its_name(text, message):
    with pytest.raises(rl.RoundelayError, match=message):
        table(text)


def test_a_missing_table_is_named(tmp_path):
    with pytest.raises(rl.RoundelayError, match="roundelay tune"):
        Table.load(str(tmp_path / "none.toml"))


def test_rules_from_measured_times_choose_what_won():
    def row(n, size, algorithm):
        return Winner("all_reduce", n, size, algorithm, {algorithm: 1.0})

    winners = [row(2, 8, "one_shot"), row(2, 4096, "one_shot"), row(2, 1 << 20, "two_shot"),
               row(8, 8, "one_shot"), row(8, 4096, "ring"), row(8, 1 << 20, "ring")]  # fmt: skip
    made = rules(winners)
    assert made[0] == Rule("all_reduce", "one_shot", "one", (2, 5), "65536 B")
    made = Table.read(write(winners, Table.load(), "here"), "made")
    assert made.measured == "here"
    for w in winners:
        assert made.choose("all_reduce", Topology(w.ranks, (w.ranks,)), w.size)[0] == w.algorithm
    # What was not measured stays as it was.
    for topology in (EVEN, UNEVEN):
        for size in (8, 1 << 20):
            before = Table.load().choose("all_reduce", topology, size)
            assert made.choose("all_reduce", topology, size) == before
    for ranks in (1, 9, 64):
        few = Topology(ranks, (ranks,))
        assert made.choose("all_reduce", few, 4096) == Table.load().choose("all_reduce", few, 4096)
    assert made.choose("broadcast", ONE, 8) == Table.load().choose("broadcast", ONE, 8)


def test_candidates_need_no_switch_and_no_second_node():
    found = candidates("all_reduce", 4)
    assert {"one_shot", "two_shot", "ring"} <= set(found)
    assert not {"switch", "rails", "star", "leader"} & set(found)


def test_tuning_a_little_gives_a_table_that_is_used(tmp_path, capfd):
    pytest.importorskip("roundelay._native", reason="the native core is not built")
    from roundelay.cli import run

    file = tmp_path / "table.toml"
    words = "tune -n 2 --collectives all_gather --sizes 8,64K --seconds 0.01 --lang en -o"
    assert run([*words.split(), str(file)]) == 0
    said = capfd.readouterr()
    assert "all_gather" in said.out
    assert "ROUNDELAY_TABLE" in said.err
    found = Table.load(str(file))
    assert found.choose("all_gather", Topology(2, (2,)), 8)[0] in candidates("all_gather", 2)
