"""Walks along a request, as the page gets them: only what a walk is, and only those given."""

import json
from importlib.resources import files

import pytest

from roundelay.errors import RoundelayError
from roundelay.web.data import answer
from roundelay.web.known import known
from roundelay.web.states import asked
from roundelay.web.walks import EXAMPLE, examples, open_walks

WALK = json.loads(files("roundelay.web").joinpath("examples", "walk.json").read_bytes())


def test_the_example_is_whole():
    walk = examples()[EXAMPLE]
    assert walk.ranks == 2
    assert walk.tokens == 8 == len({step.token for step in walk.steps})
    assert [step.name for step in walk.steps if step.token == 0] == [
        "request", "instance", "ranks", "weights", "compute", "exchange", "token"
    ]  # fmt: skip
    later = [step for step in walk.steps if step.token]
    assert {step.name for step in later} == {"ranks", "weights", "compute", "exchange", "token"}
    assert {step.exchanges for step in later if step.name == "exchange"} == {61}
    exchanging = sum(step.duration_us for step in later if step.name == "exchange") / 7
    assert exchanging == pytest.approx(walk.exchange_us)
    assert exchanging / walk.token_us == pytest.approx(walk.exchange_share)


def test_files_are_read(tmp_path):
    file = tmp_path / "mine.json"
    file.write_text(json.dumps(WALK | {"something": "new"}))
    given = known(requests=[file])
    assert json.loads(answer("walk", {"name": "mine"}, given))["text"] == WALK["text"]
    assert [row["name"] for row in json.loads(answer("walks", {}, given))] == [EXAMPLE, "mine"]
    assert asked("walk", {"walk": "mine"}) == [("walks", {}), ("walk", {"name": "mine"})]
    with pytest.raises(RoundelayError, match="already"):
        open_walks([file, file])


@pytest.mark.parametrize(
    ("change", "said"),
    [({"steps": []}, "length"), ({"steps": 3}, "Expected"), ({"ranks": -1}, ">= 0"),
     ({"token_us": float("1e300")}, "1000000000000000"), ({"prompt": 7}, "Expected `str`"),
     ({"steps": [WALK["steps"][0] | {"name": "<script>"}]}, "Invalid enum"),
     ({"steps": [WALK["steps"][0] | {"token": 1.5}]}, "Expected `int`")],
)  # fmt: skip
def test_what_is_no_walk_is_refused(tmp_path, change, said):
    file = tmp_path / "odd.json"
    file.write_text(json.dumps(WALK | change))
    with pytest.raises(RoundelayError, match=f"odd.json: no walk: .*{said}"):
        open_walks([file])


@pytest.mark.parametrize("data", [b"", b"\xff", b"[" * 100_000, b"{}"])
def test_what_is_no_json_is_refused(tmp_path, data):
    file = tmp_path / "odd.json"
    file.write_bytes(data)
    with pytest.raises(RoundelayError, match="no walk"):
        open_walks([file])


@pytest.mark.parametrize("name", ["", "nobody", "../walk.json"])
def test_only_known_walks_are_given(name):
    with pytest.raises(RoundelayError):
        answer("walk", {"name": name})
