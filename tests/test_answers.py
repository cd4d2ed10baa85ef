"""What a reader of an answer meets first, and that nothing in it is idle or far from the point."""

import pytest

from roundelay import cli
from roundelay.cli.output import write_whole
from roundelay.diagnose.finding import shown
from roundelay.diagnose.nccl.logs import log_findings
from roundelay.formats.nccl_log import read_nccl_log

DEVICES = "".join(
    f"#  Rank  {i} Group  0 Pid  9 on     box device  {i} [0000:{i}a:00] NVIDIA A100-SXM4-40GB\n"
    for i in range(8)
)
TABLE = f"""# Collective test starting: all_reduce_perf
{DEVICES}#       size         count      type   redop    root     time   algbw   busbw #wrong
   33554432     8388608     float     sum      -1    370.0   90.69  158.70      0
 1073741824   268435456     float     sum      -1  {{time}}      0
"""
SOUND = TABLE.format(time="8200.0  130.94  229.15")
SLOW = TABLE.format(time="98000.0   10.96   19.17")
TREE = """{host}:4:5 [5] NCCL INFO === System : maxBw {rate} totalBw 48.0 ===
{host}:4:5 [5] NCCL INFO CPU/0-0 (1/1/2)
{host}:4:5 [5] NCCL INFO + PCI[{rate}] - PCI/0-65000 (104c823200000000)
{host}:4:5 [5] NCCL INFO ==========================================
"""


@pytest.fixture
def told(capsys, tmp_path, monkeypatch):
    """What is printed of files, by name and text."""
    monkeypatch.chdir(tmp_path)

    def tell(*options, **files):
        for name, text in files.items():
            (tmp_path / f"{name}.txt").write_text(text)
        status = cli.run(["diagnose", ".", "--lang", "en", *options])
        return (status, *capsys.readouterr())

    return tell


@pytest.mark.parametrize(
    ("table", "status", "words"), [(SOUND, 0, "Of 2 times 2 are"), (SLOW, 1, "Of 2 times 1 are")]
)
def test_a_table_is_said_to_be_good_or_not(told, table, status, words):
    got, out, _ = told(t=table)
    assert got == status
    assert words in " ".join(out.split())
    assert "Name the cluster" not in out
    assert "e+0" not in out


@pytest.mark.parametrize(
    ("value", "text"),
    [(14390.2, "14390"), (0.18750, "0.1875"), (1.5e12, "1.5e+12"), (2592.0, "2592"),
     (987654.3, "987654"), (3e-7, "3e-07")],
)  # fmt: skip
def test_figures_have_no_powers_of_ten_where_people_expect_none(value, text):
    assert shown("time_us", value) == text


def test_what_is_off_is_said_of_the_files_that_show_it(told):
    good, bad = TREE.format(host="a1", rate="48.0"), TREE.format(host="b1", rate="0.2")
    status, out, _ = told(a=good, b=bad)
    assert status == 1
    assert out.startswith("off: virtual_pcie (b1, b.txt)\n")


def test_what_a_log_does_not_tell_is_not_listed():
    log = read_nccl_log(b"a:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0\n")
    built = next(f for f in log_findings("f", log) if f.kind == "built")
    assert "Connections: NET/IB 1." in str(built.reason)
    assert "?" not in str(built.reason)
    assert "Version" not in str(built.reason)


def test_findings_come_before_notes_and_lists_of_files(told, tmp_path):
    files = {f"f{i}": "nothing at all\n" for i in range(30)}
    _, out, err = told("--save", "r.md", **files, t=SLOW)
    assert out.startswith("off: ")
    assert err.count("left out, as nothing known is in them: f0.txt, f1.txt") == 1
    assert "... (30)" in err
    report = (tmp_path / "r.md").read_text().split("## ")
    assert report[1].startswith("off: ")
    assert report[-1].startswith("Files read")
    told("--save", "r.html", t=SLOW)
    page = (tmp_path / "r.html").read_text()
    assert page.index("off: ") < page.index("f29.txt") < page.index("</details>")
    assert "<details>" in page


def test_one_card_is_a_machine_too(told):
    status, out, _ = told(m="\tGPU0\tCPU Affinity\tNUMA Affinity\nGPU0\t X \t0-15\t0\n")
    assert status == 0
    assert "One card" in out


def test_json_that_cannot_be_read_alone_is_an_error(told):
    status, out, err = told(f='{"gpus": 8,')
    assert (status, out) == (2, "")
    assert err.startswith("error: f.txt: no JSON object of facts")


def test_advice_of_the_library_is_no_fault(told):
    log = ("m:1:2 [0] graph/xml.cc:1 NCCL WARN NUMA auto balancing enabled which can lead to "
           "variability\nm:1:2 [0] init.cc:9 NCCL WARN Missing \"iommu=pt\" from kernel command "
           "line\n")  # fmt: skip
    status, out, _ = told(log=log)
    assert status == 0
    assert "numa_balancing=0" in out
    assert "nccl_warns" not in out


def test_a_file_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    file = tmp_path / "r.md"
    write_whole(file, "before")
    file.chmod(0o640)

    def full(self, data):
        with self.open("wb") as part:
            part.write(data[:3])
        raise OSError(28, "No space left on device", str(self))

    monkeypatch.setattr("pathlib.Path.write_bytes", full)
    with pytest.raises(OSError, match="No space left") as error:
        write_whole(file, "after")
    assert error.value.filename == str(file)
    monkeypatch.undo()
    assert [path.name for path in tmp_path.iterdir()] == ["r.md"]
    assert file.read_text() == "before"
    write_whole(file, "after")
    assert (file.read_text(), file.stat().st_mode & 0o777) == ("after", 0o640)
    write_whole(tmp_path / "/dev/null", "nowhere")


def test_findings_are_told_though_the_report_cannot_be_saved(told):
    status, out, err = told("--save", "nowhere/r.md", t=SLOW)
    assert status == 2
    assert out.startswith("off: ")
    assert "error: nowhere/r.md: No such file or directory" in err


def test_a_table_of_other_cards_than_the_cluster_s_is_not_compared(told, capsys):
    status, out, err = told("--cluster", "dgx-h100", t=SOUND)
    assert status == 0
    assert "far_below" not in out
    assert "the table is of NVIDIA A100-SXM4-40GB, and the cards of the cluster are hopper" in err
    status, _, err = told("--cluster", "aws-p4d", t=SOUND)
    assert status == 0
    assert "not compared" not in err


def test_traces_of_all_ranks_are_not_asked_for_again(told):
    event = '{"ph": "X", "cat": "kernel", "name": "gemm", "ts": 0, "dur": 400, "tid": 7}'
    head = (
        '{"distributedInfo": {"backend": "nccl", "rank": %d, "world_size": 2}, "traceEvents": [%s]}'
    )
    both = {f"r{rank}": head % (rank, event) for rank in range(2)}
    assert "Trace all ranks" in told(r0=both["r0"])[1]
    out = told(**both)[1]
    assert "Trace all ranks" not in out
    assert "All ranks are here" in out
