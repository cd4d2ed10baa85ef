"""What commands, schedulers and profilers print is understood, and what is sound is not blamed."""

import re
import tomllib
from pathlib import Path

import pytest

from roundelay import RoundelayError
from roundelay.clusters import cluster
from roundelay.diagnose.given import Given
from roundelay.diagnose.machine.host import TOLD
from roundelay.diagnose.recognise import kinds_of
from roundelay.diagnose.together import diagnose
from roundelay.simulate.nccl import predict

FILES = Path(__file__).parent / "files"
HOST, PLACED = (tomllib.loads((FILES / f"{name}.toml").read_text("utf-8"))["case"]
                for name in ("host", "placed"))  # fmt: skip


def findings(text):
    return diagnose([Given("f", data=text.encode())], None, predict, cluster).findings


@pytest.mark.parametrize("case", [*HOST, *PLACED], ids=lambda case: case["name"])
def test_what_commands_print_is_understood(case):
    first, *others = findings(case["text"])
    assert (first.kind, first.fault) == (case["kind"], case["fault"])
    assert re.search(case["words"], str(first.reason), re.S), str(first.reason)
    assert case["fault"] or not [f for f in others if f.fault]


@pytest.mark.parametrize("kind", TOLD)
def test_what_is_none_of_a_command_is_refused(kind):
    with pytest.raises(RoundelayError):
        TOLD[kind]("f", b"words that no command prints\n")


def test_several_commands_in_one_text_are_all_read():
    text = "\n".join(
        case["text"] for case in HOST if case["name"] in ("lanes", "port that is down")
    )
    assert kinds_of(Given("f", data=text.encode())) == ("smi_query", "ib_ports")
    assert {f.kind for f in findings(text)} >= {"pcie_narrow", "link_down"}


def test_a_part_that_cannot_be_read_hides_no_other():
    text = "node 0 cpus:\nCA 'a'\nPort 1:\nState: Active\nRate: 100\n"
    found = diagnose([Given("f", data=text.encode())], None, predict, cluster)
    assert found.files == [("f", ("ib_ports",))]
    assert [f.kind for f in found.findings] == ["ports"]


def test_a_row_that_is_broken_hides_no_other():
    head = "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Name\n"
    rows = "1,2,3\r4,5,6,7\n60.0,6,3,2,2,ncclDevKernel_A\n"
    assert [f.kind for f in findings(head + rows)] == ["kernel_times"]
