"""The order of ranks by what was measured between hosts, beside the best of all orders."""

import json
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roundelay.cli import run
from roundelay.errors import RoundelayError
from roundelay.place import read_job
from roundelay.place.pairs import Cost, Pairs, order_by_pairs, read_pairs

JOBS = ("tensor=8,data=6,data_bytes=1GB",
        "tensor=8,pipeline=3,data=2,data_bytes=1GB,pipeline_bytes=1GB",
        "data=48,expert=24,data_bytes=1MB,expert_bytes=1GB")  # fmt: skip
CSV = "bytes_per_second,a,b,c\na,,10e9,1e9\nb,10e9,-,1e9\nc,2e9,1e9,0\n"


def measured(seed, n=6):
    """Two groups of hosts, or none, with some noise; both ways differ."""
    rng = np.random.default_rng(seed)
    group = rng.permutation(n) % (1 + seed % 2)
    apart = np.where(group[:, None] == group, 1.0, 4.0)
    seconds = apart * rng.uniform(1, 1.3 if seed % 2 else 5, (n, n)) * (1 - np.eye(n))
    return Pairs(tuple(f"h{i}" for i in range(n)), seconds / 1e9)


@settings(max_examples=30)
@given(st.integers(0, 10**6), st.sampled_from(JOBS))
def test_no_order_is_much_cheaper(seed, text):
    pairs, job = measured(seed), read_job(text)
    found = order_by_pairs(job, pairs)
    cost = Cost(job, 8, pairs)
    every = cost(np.array(list(permutations(range(6)))))
    assert every.min() * (1 - 1e-9) <= found.cost <= 1.02 * every.min()
    assert found.given == pytest.approx(every[0])
    nodes = [pairs.hosts.index(host) for host in found.hosts[::8]]
    assert found.cost == pytest.approx(float(cost(np.array([nodes]))[0]))
    assert sorted(found.hosts[::8]) == sorted(pairs.hosts)


def test_the_cost_by_hand():
    """A chain over three hosts: the middle one sends two messages, at 1 and at 3 s a byte."""
    seconds = np.array([[0, 1, 9], [1, 0, 3], [9, 3, 0.0]])
    job = read_job("pipeline=3,pipeline_bytes=10")
    cost = Cost(job, 1, Pairs(("a", "b", "c"), seconds))
    assert cost(np.array([[0, 1, 2], [1, 0, 2]])).tolist() == [40.0, 100.0]


def test_files():
    found = read_pairs(CSV.encode(), "pairs.csv")
    assert found.hosts == ("a", "b", "c")
    assert found.seconds.tolist() == [[0, 1e-10, 1e-9], [1e-10, 0, 1e-9], [5e-10, 1e-9, 0]]
    tree = {"hosts": ["a", "b"], "seconds": [[None, 2], [3, None]]}
    assert read_pairs(json.dumps(tree).encode(), "p.json").seconds.tolist() == [[0, 2], [3, 0]]
    assert found.only(["c", "a"]).seconds.tolist() == [[0, 5e-10], [1e-9, 0]]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "expected a first line of bytes_per_second"),
        ("rate,a,b\n", "expected a first line of bytes_per_second"),
        (CSV.replace("10e9,1e9", ",1e9", 1), "a to b: nothing; expected a number above 0"),
        (CSV.replace("10e9,1e9", "nan,1e9", 1), "a to b: 'nan'; expected a number"),
        (CSV.replace("10e9,1e9", "-1,1e9", 1), "a to b: '-1'"),
        (CSV.replace("10e9,1e9", "0,1e9", 1), "a to b: '0'"),
        (CSV.replace("10e9,1e9", "inf,1e9", 1), "a to b: 'inf'"),
        (CSV.replace("10e9,1e9", "fast,1e9", 1), "a to b: 'fast'"),
        (CSV.replace("\nb,", "\nc,"), "a row of 'c' where the columns have 'b'"),
        (CSV.replace("second,a,b,c", "second,a,b,a").replace("\nc,", "\na,"), "'a' is there twice"),
        (CSV.replace("c,2e9,1e9,0\n", ""), "2 rows for 3 hosts"),
        (CSV.replace("c,2e9,1e9,0", "c,2e9,1e9"), "the row of c has 2 entries; expected 3"),
        ("seconds,a\na,0\n", "1 hosts; expected 2 to"),
        ('seconds,"a\n', "1 hosts|unexpected end"),
    ],
)
def test_csv_that_is_none(text, complaint):
    with pytest.raises(RoundelayError, match=rf"pairs\.csv: .*({complaint})"):
        read_pairs(text.encode(), "pairs.csv")


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        "3",
        '{"hosts": ["a", "b"]}',
        '{"hosts": ["a", "b"], "seconds": 3}',
        '{"hosts": ["a", "b"], "seconds": [[0, true], [1, 0]]}',
        '{"hosts": ["a", "b"], "seconds": [[0, NaN], [1, 0]]}',
        '{"hosts": ["a", "b"], "seconds": [[0, {}], [1, 0]]}',
        '{"hosts": ["a", "b"], "seconds": [3, 4]}',
        '{"hosts": ["a", "b"], "seconds": [[0, 1], [1, 0]], "bytes_per_second": []}',
    ],
)
def test_json_that_is_none(text):
    with pytest.raises(RoundelayError, match=r"^pairs\.json: "):
        read_pairs(text.encode(), "pairs.json")


def test_the_command(tmp_path, capsys):
    """Ranks 0 and 1 exchange: they get the two hosts that are near."""
    file = tmp_path / "pairs.csv"
    file.write_text("bytes_per_second,n1,n2,n3,n4\nn1,,1,9,1\nn2,1,,1,9\nn3,9,1,,1\nn4,1,9,1,\n")
    words = ["order", "tensor=2,data=2,tensor_bytes=90,data_bytes=1", "--pairs", str(file),
             "--nodes", "n[1-4]"]  # fmt: skip
    assert run([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {frozenset(found["hosts"][:2]), frozenset(found["hosts"][2:])} == {
        frozenset(("n1", "n3")), frozenset(("n2", "n4"))}  # fmt: skip
    assert found["cost"] < found["against"]["as_given"]
    assert run(words) == 0
    assert "would take" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--nodes", "0-1"], "Name --cluster"),
        (
            ["--nodes", "a,b", "--pairs", "p.csv", "--cluster", "dgx-h100:2"],
            "--cluster changes nothing with --pairs",
        ),
        (["--nodes", "a,b", "--pairs", "p.csv", "--write", "x"], "--write changes nothing with"),
        (["--nodes", "a,x", "--pairs", "p.csv"], "no host 'x' among the pairs"),
        (["--nodes", "a,b,c", "--pairs", "p.csv"], "16 ranks on 3 hosts; expected a multiple"),
        (["--nodes", "a,b", "--pairs", "none.csv"], "none.csv"),
    ],
)
def test_the_command_refuses(words, complaint, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.csv").write_text(CSV)
    assert run(["order", "tensor=8,data=2,data_bytes=1G", *words]) == 2
    assert complaint in capsys.readouterr().err
