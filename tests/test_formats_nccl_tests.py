"""Printed tables of nccl-tests: every layout, and what launchers and logs do to them."""

import os
from pathlib import Path

import pytest
from fuzzing import seeds
from hypothesis import given
from hypothesis import strategies as st

from roundelay import RoundelayError
from roundelay.bench.cells import Point, Request
from roundelay.bench.figures import Figure, Line
from roundelay.bench.table import Table as BenchTable
from roundelay.clusters import cluster
from roundelay.diagnose.given import Given
from roundelay.diagnose.together import diagnose
from roundelay.formats.nccl_tests import bus_factor, read_nccl_tests, read_nccl_tests_json
from roundelay.simulate.nccl import predict

DEVICES = """\
# Using devices
#  Rank  0 Group  0 Pid   4001 on     left-1 device  0 [0x1a] NVIDIA H100 80GB HBM3
#  Rank  1 Group  0 Pid   4002 on     left-1 device  1 [0x3b] NVIDIA H100 80GB HBM3
#  Rank  2 Group  0 Pid   5001 on    right-1 device  0 [0x1a] NVIDIA H100 80GB HBM3
#  Rank  3 Group  0 Pid   5002 on    right-1 device  1 [0x3b] NVIDIA H100 80GB HBM3
"""
NEW = """\
# nccl-tests version 2.17.6 nccl-headers=22809 nccl-library=22809
# Collective test starting: all_gather_perf
# nThread 1 nGpus 1 minBytes 1024 maxBytes 1048576 step: 1024(factor) warmup iters: 1 iters: 20
#
{devices}#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
        1024            64     float    none      -1    20.00    0.05    0.04      0    19.00    0.05    0.04      0
     1048576         65536     float    none      -1    50.00   20.97   15.73      0    40.00   26.21   19.66      2
# Out of bounds values : 1 FAILED
# Avg bus bandwidth    : 8.8675
#
# Collective test concluded: all_gather_perf
"""  # noqa: E501


def one(text):
    """The only table of a text."""
    (table,) = read_nccl_tests(text).tables
    return table


def test_a_table_of_the_newest_kind():
    measured = read_nccl_tests(NEW.format(devices=DEVICES))
    (table,) = measured.tables
    assert (table.collective, table.stated) == ("all_gather", True)
    assert (table.ranks, table.ranks_from, table.nodes, table.average) == (4, "text", 2, 8.8675)
    assert table.devices[3].host == "right-1"
    assert table.devices[3].name == "NVIDIA H100 80GB HBM3"
    small, large = table.rows
    assert (small.size, small.count, small.dtype, small.redop, small.root) == (
        1024, 64, "float", "none", -1
    )  # fmt: skip
    assert large.out_of_place == (50.0, 20.97, 15.73, 0, None)
    assert large.in_place == (40.0, 26.21, 19.66, 2, None)
    assert large.best is large.in_place
    assert (table.line, large.line) == (12, 15)
    assert measured.versions == ("nccl-tests 2.17.6",)
    assert not measured.notes


def test_line_ends_colours_and_indentation_do_not_matter():
    plain = read_nccl_tests(NEW.format(devices=DEVICES))
    text = NEW.format(devices=DEVICES)
    for changed in (
        text.replace("\n", "\r\n"),
        text.replace("1048576 ", "\x1b[1;32m1048576\x1b[0m "),
        "".join(f"    {line}\n" for line in text.splitlines()),
        "".join(f"> {line}\n" for line in text.splitlines()),
        "".join(f"[1,0]<stdout>:{line}\n" for line in text.splitlines()),
        "".join(f"0: {line}\n" for line in text.splitlines()),
        text.encode(),
    ):
        found = read_nccl_tests(changed)
        assert [(r.size, r.out_of_place, r.in_place) for r in found.tables[0].rows] == [
            (r.size, r.out_of_place, r.in_place) for r in plain.tables[0].rows
        ]
        assert found.tables[0].ranks == 4


def test_tags_and_log_lines_inside_rows():
    text = (
        "# [1,0]<stdout>:\n"
        "[0]   1048576   262144   float   sum   -1[0]   50.00  20.97  31.46   0"
        "[0]   40.00  26.21  39.32   0\n"
        "\n"
        "[0]   2097152   524288   float   sum   -1node-1:77:78 [0] NCCL INFO AllReduce: 7 Bytes\n"
        "node-1:77:78 [0] NCCL INFO more of it\n"
        "[0]   90.00  23.30  34.95   0[0]   80.00  26.21  39.32   0\n"
    )
    table = one(text)
    assert [r.size for r in table.rows] == [1 << 20, 2 << 20]
    assert table.rows[1].line == 4
    assert table.rows[1].in_place == (80.0, 26.21, 39.32, 0, None)
    assert (table.collective, table.ranks, table.ranks_from) == ("all_reduce", 4, "factor")


def test_a_header_helps_a_row_that_has_lost_its_root():
    text = NEW.format(devices="").replace(
        "none      -1    50.00", "none\nn:1:2 [3] NCCL INFO x\n  50.00"
    )
    row = one(text).rows[1]
    assert row.root is None
    assert row.in_place.busbw == 19.66


def test_old_columns_error_and_no_root():
    table = one(
        "#                                                     out-of-place        in-place\n"
        "#       size         count    type   redop     time   algbw   busbw  error"
        "     time   algbw   busbw  error\n"
        "#        (B)    (elements)                     (us)  (GB/s)  (GB/s)"
        "            (us)  (GB/s)  (GB/s)\n"
        "     1048576        262144   float     sum    50.00   20.97   31.46  2e-07"
        "    50.00   20.97   31.46  1e-07\n"
        "# Out of bounds values : 0 OK\n"
    )
    row = table.rows[0]
    assert (row.out_of_place.error, row.out_of_place.wrong) == (2e-07, None)
    assert (row.in_place.error, row.in_place.wrong, row.root) == (1e-07, None, None)
    assert (table.collective, table.ranks) == ("all_reduce", 4)


def test_the_first_version_prints_milliseconds():
    measured = read_nccl_tests(
        "#  bytes             N    type      op     time  algbw  busbw      res"
        "     time  algbw  busbw      res\n"
        " 10000000       2500000   float     sum    2.000   5.00   7.50    1e-06"
        "    1.000  10.00  15.00    1e-06\n"
    )
    row = measured.tables[0].rows[0]
    assert (row.out_of_place.time_us, row.in_place.time_us) == (2000.0, 1000.0)
    assert row.in_place.error == 1e-06


def test_a_unit_that_the_figures_contradict_is_noted():
    measured = read_nccl_tests(
        "# size count type redop time algbw busbw #wrong\n"
        "# (B) (elements) (us) (GB/s) (GB/s)\n"
        " 10000000 2500000 float sum 2.000 5.00 7.50 0\n"
    )
    assert measured.tables[0].rows[0].out_of_place.time_us == 2000.0
    assert "times are in ms, though the header says us" in [str(n.what) for n in measured.notes]


def test_sizes_with_letters_and_bare_rows():
    text = (
        "| size | time | algbw | busbw |\n|---|---|---|---|\n"
        "| 4K | 20.0 | 0.20 | 0.36 |\n| 8M | 100.0 | 83.89 | 146.8 |\n"
    )
    table = one(text)
    assert [r.size for r in table.rows] == [4096, 8 << 20]
    assert table.rows[1].out_of_place == (100.0, 83.89, 146.8, None, None)
    assert table.rows[1].in_place is None
    assert (table.collective, table.ranks) == ("all_reduce", 8)


def test_a_single_form_is_put_where_the_header_says():
    text = (
        "#                                   in-place\n"
        "# size count type redop root time algbw busbw #wrong\n"
        " 1048576 262144 float sum -1 50.00 20.97 31.46 0\n"
    )
    row = one(text).rows[0]
    assert row.out_of_place is None
    assert row.in_place.busbw == 31.46


def test_numbers_of_other_kinds_are_no_rows():
    with pytest.raises(RoundelayError, match="no table of results"):
        read_nccl_tests("1 2 3 4 5\n100 200 300 400 500 600 700\n2024 11 29 21 17\n")


def test_several_tables_and_types_under_one_header():
    text = NEW.format(devices=DEVICES)
    other = text.replace("all_gather_perf", "alltoall_perf")
    measured = read_nccl_tests(text + other)
    assert [t.collective for t in measured.tables] == ["all_gather", "all_to_all"]
    assert [t.ranks for t in measured.tables] == [4, 4]
    lines = text.splitlines(keepends=True)
    twice = "".join(lines[:-4] + [line.replace("float", "int32") for line in lines[-6:]])
    tables = read_nccl_tests(twice).tables
    assert [t.rows[0].dtype for t in tables] == ["float", "int32"]
    assert [len(t.rows) for t in tables] == [2, 2]


@pytest.mark.parametrize(
    ("rows", "collective", "ranks"),
    [
        ("1048576 262144 float sum -1 50.0 20.97 20.97 0 50.0 20.97 20.97 N/A", "send_recv", None),
        ("1048576 262144 float sum -1 50.00 20.97 20.97 0 50.00 20.97 20.97 0", "all_reduce", 2),
        ("1048576 262144 float sum 0 50.00 20.97 20.97 0 50.00 20.97 20.97 0", "reduce", None),
        ("1048576 262144 float none 0 50.00 20.97 20.97 0 50.00 20.97 20.97 0", "broadcast", None),
        ("1048576 65536 float none -1 50.00 20.97 15.73 0 50.00 20.97 15.73 0", "all_gather", 4),
        ("1048576 65536 float none -1 50.00 20.97 15.73 0 50.00 20.97 15.73 N/A", "all_to_all", 4),
        ("1048576 65536 float sum -1 50.00 20.97 15.73 0 50.00 20.97 15.73 0", "reduce_scatter", 4),
        ("1048576 65536 float none 3 50.00 20.97 15.73 0 50.00 20.97 15.73 0", "gather", 4),
    ],
)  # fmt: skip
def test_the_figures_tell_the_collective(rows, collective, ranks):
    table = one(
        "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n" + rows
    )
    assert not table.stated
    assert (table.collective, table.ranks) == (collective, ranks)


def test_a_row_that_is_cut_short_is_noted_and_the_rest_is_read():
    text = NEW.format(devices=DEVICES).splitlines()
    cut = "\n".join([*text[:15], text[14][:62]])
    measured = read_nccl_tests(cut)
    assert len(measured.tables[0].rows) == 2
    assert [n.line for n in measured.notes] == [16]
    half = "\n".join([*text[:14], text[14][:92]])
    row = read_nccl_tests(half).tables[0].rows[1]
    assert (row.out_of_place.busbw, row.in_place) == (15.73, None)


def test_a_rate_that_is_not_size_over_time_is_noted():
    notes = read_nccl_tests(NEW.format(devices=DEVICES).replace("20.97", "29.97")).notes
    assert (notes[0].line, "size over time is 20.97 GB/s" in str(notes[0].what)) == (15, True)


def test_one_rank():
    table = one(
        "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n"
        " 1048576 262144 float none -1 5.00 209.72 0.00 0 0.80 1310.72 0.00 N/A\n"
    )
    assert (table.collective, table.ranks) == ("all_to_all", 1)


def test_the_table_of_our_own_bench_is_read():
    point = Point("all_reduce", "ring", 4, 1 << 18, "float32", "sum", 0)
    gather = Point("all_to_all", "auto", 4, 1 << 18, "float32", "sum", 0)
    figure = Figure(50.0, 10, 0)
    lines = [Line(point, {False: figure, True: figure}, {"gloo": 90.0}, 70.0),
             Line(gather, {False: figure}, {"gloo": None}, 70.0)]  # fmt: skip
    request = Request(["all_reduce"], [4], [1 << 20], against=["gloo"], algorithm="ring")
    table = BenchTable(request, ping=True)
    text = "\n".join(line for item in lines for line in table.lines(item))
    reduced, exchanged = read_nccl_tests(text).tables
    assert (reduced.collective, reduced.ranks, reduced.stated) == ("all_reduce", 4, True)
    assert reduced.rows[0].in_place == (50.0, 20.97, 31.46, 0, None)
    assert (exchanged.collective, exchanged.rows[0].in_place) == ("all_to_all", None)


@pytest.mark.parametrize(
    ("text", "found", "hint"),
    [
        ("", "empty", "columns"),
        ("hello\n", "line 1: 'hello'", "whole output"),
        ("x\nnode: Test CUDA failure common.cu:99 'system not yet initialized'\n", "line 2",
         "fabric manager"),
        ("bash: all_reduce_perf: command not found\n", "command not found", "Mend that"),
        ("common.cu:1 'out of memory'\n", "out of memory", "smaller -e"),
    ],
)  # fmt: skip
def test_without_a_table_it_says_what_was_found(text, found, hint):
    with pytest.raises(RoundelayError) as caught:
        read_nccl_tests(text)
    assert found in str(caught.value)
    assert hint in str(caught.value)


@pytest.mark.parametrize("ranks", [3, 5, 8, 24, 72, 256])
def test_ranks_are_found_by_the_factor(ranks):
    """As far as two decimals allow: 256 ranks need rates of some ten GB/s."""
    rows = []
    for size, algbw in ((1 << 26, 31.46), (1 << 28, 95.13), (1 << 30, 211.77)):
        busbw = algbw * float(bus_factor("all_reduce", ranks))
        time = size / algbw / 1e3
        rows.append(f"{size} {size // 4} float sum -1 {time:.1f} {algbw:.2f} {busbw:.2f} 0\n")
    head = "# size count type redop root time algbw busbw #wrong\n"
    assert one(head + "".join(rows)).ranks == ranks


CELLS = st.sampled_from(
    ["#", "size", "time", "algbw", "busbw", "#wrong", "1024", "4K", "256", "float", "sum", "none",
     "-1", "0", "1.5", "20.97", "1e-300", "1e400", "nan", "inf", "N/A", "-", "\n", "\r", "\x1b[3m",
     "[0]", "(ms)", "Rank", "1", "on", "a", "device", "[x]", "in-place", "Avg bus bandwidth : 3",
     "# all_reduce, n = 0", "# all_reduce, n = 2", "all_gather_perf", "999999999999999999999"]
)  # fmt: skip


@given(st.lists(CELLS, max_size=60))
def test_whatever_comes_it_is_read_or_refused(cells):
    try:
        measured = read_nccl_tests(" ".join(cells))
    except RoundelayError:
        return
    for table in measured.tables:
        assert table.rows
        for row in table.rows:
            assert all(t.time_us >= 0 for _, t in row.timings())


@given(st.binary(max_size=200))
def test_bytes_of_any_kind_are_read_or_refused(data):
    with pytest.raises(RoundelayError):
        read_nccl_tests(data)


if DATA := os.environ.get("ROUNDELAY_DATA"):
    CASES = Path(DATA, "cases", "nccl-tests")
    # file: collective, ranks, hosts, rows, average, highest busbw
    ANSWERS = {
        "01-": ("all_reduce", 8, 1, 9, 68.4048, 235.26),
        "03-": ("reduce", 8, 1, 9, 65.018, 228.83),
        "05-": ("all_reduce", 16, 2, 6, 27.5091, 57.78),
        "07-": ("all_reduce", 16, 2, 7, 139.56, 469.21),
        "09-": ("all_reduce", 24, None, 10, None, 29.5),
        "11-": ("all_to_all", 1, 1, 1, 0.0, 0.0),
        "13-": ("all_reduce", None, None, 4, None, 2.22),
        "17-": ("send_recv", None, None, 4, None, 195.56),
        "19-": ("all_reduce", 256, None, 4, None, 74.36),
    }

    @pytest.mark.parametrize("case", ANSWERS)
    def test_case(case):
        (path,) = CASES.glob(f"{case}*")
        table = one(path.read_bytes())
        peak = max(t.busbw for row in table.rows for _, t in row.timings())
        assert (table.collective, table.ranks, table.nodes, len(table.rows), table.average,
                peak) == ANSWERS[case]  # fmt: skip

    def test_case_errors_and_counts_are_told_apart():
        (old,) = CASES.glob("13-*")
        (new,) = CASES.glob("05-*")
        assert all(t.error == 1e-06 for r in one(old.read_bytes()).rows for _, t in r.timings())
        assert all(t.wrong == 0 for r in one(new.read_bytes()).rows for _, t in r.timings())

    def test_case_without_a_table():
        (path,) = CASES.glob("15-*")
        with pytest.raises(RoundelayError, match=r"line 2.*fabric manager.*driver"):
            read_nccl_tests(path.read_bytes())


# JSON of nccl-tests (-J).


def test_json():
    data = seeds()["tests.json"]
    (table,) = read_nccl_tests_json(data).tables
    assert (table.collective, table.stated, table.ranks, table.nodes) == ("all_reduce", True, 2, 1)
    assert [(row.size, row.best.busbw, row.best.wrong) for row in table.rows] == [
        (1 << 20, 20.13, 0), (1 << 30, 325.4, None)]  # fmt: skip
    assert table.average == 172.7
    assert read_nccl_tests_json(data).versions == ("nccl-tests 2.17.1", "NCCL 22703")
    found = diagnose([Given("x", data=data)], None, predict, cluster)
    assert found.files == [("x", ("nccl_tests_json",))]
    assert "peak_GBps" in {k for f in found.findings for k in f.figures}
    assert any("judged as dgx-h100:1" in str(note.what) for _, note in found.notes)
    with pytest.raises(RoundelayError, match="no JSON of nccl-tests"):
        read_nccl_tests_json(b'{"results": []}')
