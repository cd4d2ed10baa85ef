"""Jobs over time, as the page gets them: only those given, and only what can have happened."""

import json
from importlib.resources import files

import pytest

from roundelay.errors import RoundelayError
from roundelay.web.data import answer
from roundelay.web.jobs import EXAMPLE, examples, open_logs
from roundelay.web.known import known
from roundelay.web.states import asked

DATA = files("roundelay.web").joinpath("examples", "jobs.json").read_bytes()


def test_the_example_shows_what_there_is_to_see():
    """Small, by three policies, with every kind of end, and dear placements beside cheap ones."""
    assert len(DATA) < 60_000
    log = examples()[EXAMPLE]
    assert [told.policy for told in log.policies] == ["first_fit", "best_fit", "ours"]
    *_, best, ours = log.policies
    assert {e.reason for e in ours.events if e.what == "stop"} >= {"card", "switch", "slow"}
    assert max(e.exchange for e in best.events) > 1.3 > max(e.exchange for e in ours.events)


def test_files_are_read(tmp_path):
    file = tmp_path / "mine.json"
    file.write_bytes(DATA)
    given = known(events=[file])
    assert json.loads(answer("jobs", {"name": "mine"}, given)) == json.loads(DATA)
    assert [row["name"] for row in json.loads(answer("logs", {}, given))] == [EXAMPLE, "mine"]
    assert asked("jobs", {"jobs": "mine"}) == [("logs", {}), ("jobs", {"name": "mine"})]
    with pytest.raises(RoundelayError, match="already"):
        open_logs([file, file])


@pytest.mark.parametrize("data", [b"", b"\xff", b"[" * 100_000, b"{}", DATA[:-9]])
def test_other_files_are_refused(tmp_path, data):
    file = tmp_path / "odd.json"
    file.write_bytes(data)
    with pytest.raises(RoundelayError, match=r"no jobs over time: .*--events"):
        open_logs([file])


@pytest.mark.parametrize("name", ["", "nobody", "../jobs.json", EXAMPLE + "\0"])
def test_only_known_names_are_given(name):
    with pytest.raises(RoundelayError):
        answer("jobs", {"name": name})
