"""The tuner table for NCCL: which choices are written, which are not dared, and which rows."""

import json
from itertools import pairwise

import pytest

from roundelay import RoundelayError, cli
from roundelay.clusters import cluster
from roundelay.formats.tuner import COLLECTIVES, MOST, read_tuner
from roundelay.nccl_tuner import spans, tuner_file
from roundelay.simulate.nccl import options, predict


@pytest.fixture(scope="module")
def found():
    return spans(cluster("dgx-h100:4"), sizes=[1 << k for k in range(10, 35, 3)])


def test_every_size_of_every_communicator_has_one_row(found):
    for collective in COLLECTIVES:
        for ranks, nodes in ((8, 1), (32, 4)):
            rows = [s.row for s in found if s.row.collective == collective and s.row.ranks == ranks]
            assert {row.nodes for row in rows} == {nodes}
            assert rows[0].low == 0
            assert rows[-1].high == MOST
            assert all(a.high + 1 == b.low for a, b in pairwise(rows))


def test_what_is_written_is_the_clock_s_choice_where_it_wins_clearly(found):
    here = cluster("dgx-h100:4")
    dared = [choice for span in found for choice in span.choices if choice.dared]
    kept = [choice for span in found for choice in span.choices if not choice.dared]
    assert dared
    assert any(choice.gain > 1 for choice in kept)
    for choice in (*dared, *kept):
        known = options(here, choice.collective, choice.size, choice.ranks)
        quickest = min(prediction.time_s for _, prediction in known)
        wins = known[0][1].time_s / quickest
        written = predict(here, choice.collective, choice.size, choice.ranks,
                          choice.written.algorithm, choice.written.protocol)  # fmt: skip
        if wins >= choice.needed:
            assert written.time_s == quickest
        else:
            assert choice.written == known[0][0]


def test_the_file_has_legal_rows_and_last_ones_for_all_calls(found):
    rows, notes = read_tuner(tuner_file(found))
    assert not notes
    assert list(rows[: len(found)]) == [span.row for span in found]
    for name in COLLECTIVES:
        last = [row for row in rows[len(found) :] if row.collective == name]
        assert last[-1].fits_all
        assert {row.algorithm for row in last} == {"ring"}


def test_where_nccl_s_choice_is_not_known_nothing_is_written():
    with pytest.raises(RoundelayError, match="NCCL's own choice on mi300x"):
        spans(cluster("mi300x:1"))
    with pytest.raises(RoundelayError, match="all_to_all: the tuner has"):
        spans(cluster("dgx-h100:1"), ["all_to_all"])


def run(capsys, *words):
    status = cli.run(list(words))
    return status, *capsys.readouterr()


def test_command(tmp_path, capsys):
    file = tmp_path / "t.conf"
    words = ["tune", "--cluster", "dgx-h100:4", "--for", "nccl", "--collectives", "broadcast",
             "--sizes", "8K,4M,1G", "-n", "32", "-o", str(file)]  # fmt: skip
    status, out, err = run(capsys, *words)
    assert status == 0
    assert "not dared: ring/LL wins by less than 1.41" in out
    assert "NCCL_TUNER_CONFIG_FILE" in err
    rows, _ = read_tuner(file.read_bytes())
    assert {row.ranks for row in rows} == {32, -1}
    value = json.loads(run(capsys, *words, "--json")[1])
    assert [row["high"] for row in value][-1] == MOST
    assert value[1]["sizes"][0]["gain"] > 1.2
    assert not value[1]["dared"]


@pytest.mark.parametrize("sizes", ["0", "8K,0", "-1", "1.5", "many", "", "9E"])
def test_sizes_that_cannot_be_are_refused(capsys, sizes):
    for words in (["--cluster", "dgx-h100:2", "--for", "nccl"], ["-n", "2"]):
        status, _, err = run(capsys, "tune", *words, f"--sizes={sizes}")
        assert status == 2
        assert "size" in err


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "inf", "long"])
def test_times_that_cannot_be_are_refused(capsys, seconds):
    status, _, err = run(capsys, "tune", "-n", "2", f"--seconds={seconds}")
    assert status == 2
    assert "expected a number above 0" in err


@pytest.mark.parametrize("words", [["--cluster", "dgx-h100:2", "--for", "nccl"], ["-n", "2"]])
def test_what_others_have_written_is_not_written_over(capsys, tmp_path, words):
    file = tmp_path / "mine"
    file.write_text("# mine\nallreduce,0,10,ring,ll,8,-1,-1\n")
    status, _, err = run(capsys, "tune", *words, "-o", str(file))
    assert status == 2
    assert "is there already, and roundelay tune has not written it" in err
    assert file.read_text().startswith("# mine")


def test_its_own_file_is_written_anew(capsys, tmp_path):
    words = ["tune", "--cluster", "dgx-h100:2", "--for", "nccl", "--collectives", "broadcast",
             "--sizes", "4M", "-o", str(tmp_path / "t.conf")]  # fmt: skip
    assert run(capsys, *words)[0] == 0
    assert run(capsys, *words)[0] == 0


def test_a_half_of_the_options_is_refused(capsys):
    status, _, err = run(capsys, "tune", "--for", "nccl")
    assert status == 2
    assert "expected both --cluster and --for nccl" in err
