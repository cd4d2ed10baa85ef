"""The page's server, its data, and the one file: true values, and a clear refusal of all else."""

import http.client
import json
import re
import socket
from contextlib import closing
from fractions import Fraction
from threading import Thread

import numpy as np
import pytest
import uvicorn

import roundelay as rl
from roundelay.errors import RoundelayError
from roundelay.show import frames, words
from roundelay.simulate import step_ends
from roundelay.web import page as pages
from roundelay.web.data import QUESTIONS, answer, places
from roundelay.web.data.breaking import without
from roundelay.web.data.grouped import grouped
from roundelay.web.data.player import player
from roundelay.web.server import HEADERS, make_app
from roundelay.web.states import VIEWS, asked, state_text

ALL = pytest.mark.parametrize("a", rl.algorithms(), ids=lambda a: f"{a.collective}/{a.name}")


class Answer:
    """What the server said."""

    def __init__(self, found):
        self.status_code, self.content = found.status, found.read()
        self.headers = {name.lower(): value for name, value in found.getheaders()}

    @property
    def text(self):
        return self.content.decode()

    def json(self):
        return json.loads(self.content)


class Client:
    """Asks as a browser does, but sends every path as it stands."""

    def __init__(self, port):
        self.port = port

    def get(self, path, method="GET", headers=()):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        with closing(connection):
            connection.request(method, path, headers=dict(headers))
            return Answer(connection.getresponse())


@pytest.fixture(scope="module")
def client():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = uvicorn.Server(uvicorn.Config(make_app(), log_level="error", lifespan="off"))
        thread = Thread(target=server.run, args=([listener],), daemon=True)
        thread.start()
        yield Client(listener.getsockname()[1])
        server.should_exit = True
        thread.join(30)
        assert not thread.is_alive()


def refused(answer, status):
    """The error of an answer that must be one."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    value = answer.json()
    assert set(value) == {"error"}
    assert value["error"]
    return value["error"]


def last_state(played):
    """(contributions, mark) of every place, after all the changes."""
    shape = (played.ranks + played.helpers, len(played.pieces))
    counts, marks = np.zeros(shape, int), np.zeros(shape, int)
    for state in played.states:
        for place, piece, count, mark in state.changes:
            counts[place, piece], marks[place, piece] = count, mark
    return counts, marks


@ALL
@pytest.mark.parametrize("n", [5, 8])
def test_player_ends_as_the_frames_do(a, n):
    if not a.fits(n):
        pytest.skip("not for this n")
    schedule, played = a(n), player(a.collective, a.name, n)
    last = frames(schedule)[-1]
    counts, marks = last_state(played)
    assert np.array_equal(counts, last.holds.sum(axis=-1))
    assert np.array_equal(marks == 1, last.complete & last.holds.any(axis=-1))
    assert not (marks == 2).any()
    assert played.right
    assert len(played.states) == schedule.steps + 1
    assert played.outcome["en"] == str(words.outcome(schedule, last.counts))
    assert sum(last - first + 1 for first, last, _ in played.parts) == schedule.steps


@ALL
def test_player_sends_what_the_cost_counts(a):
    n = 8
    played, counted = player(a.collective, a.name, n, size=8 * 5040), rl.cost(a(n), 8 * 5040)
    sent = np.zeros(played.ranks + played.helpers)
    for state in played.states:
        for src, dst, pieces, _ in state.moves:
            sent[src] += len(pieces) * played.piece_bytes * (src != dst)
    assert sent[:n].max() == pytest.approx(float(counted.bytes_sent_max))
    assert played.card["steps"][1] == float(a.card(n).steps)


def test_every_algorithm_of_64_ranks_is_shown():
    for a in rl.algorithms():
        if a.fits(64):
            assert player(a.collective, a.name, 64).right, a.name


@pytest.mark.parametrize(
    ("name", "layout"),
    [
        ("all_reduce/ring", "circle"),
        ("all_reduce/star", "star"),
        ("all_reduce/switch", "switch"),
        ("all_reduce/rails", "grid"),
        ("all_reduce/rails_switch", "switches"),
        ("broadcast/binomial", "tree"),
    ],
)
@pytest.mark.parametrize("n", [8, 64])
def test_places_are_apart(name, layout, n):
    played = player(*name.split("/"), n)
    assert played.layout == layout
    where = np.array(played.places)
    assert ((where >= 0) & (where <= 1)).all()
    assert len({tuple(p) for p in played.places}) == n + played.helpers


def test_ring_splits_into_two_halves():
    assert player(n=4).parts == [(1, 3, "reduce_scatter"), (4, 6, "all_gather")]
    assert player(algorithm="star", n=4).parts == [(1, 1, "reduce"), (2, 2, "broadcast")]
    assert player(algorithm="recursive_doubling", n=4).parts == [(1, 2, "adding")]


def test_seconds_end_with_the_clock():
    clock = rl.Clock(rl.build("all_reduce/ring", 16), rl.cluster("dgx-h100:2"))
    ends = step_ends(clock, 1 << 20)
    timing = clock.time(1 << 20)
    assert timing.slices == 1
    assert ends[-1] == pytest.approx(timing.time, rel=1e-9)
    assert (np.diff(ends) >= 0).all()
    assert ends[0] > 0
    played = player(n=16, cluster="dgx-h100:2")
    assert played.seconds == ends.tolist()
    assert played.timing["binding_link"] == timing.binding_link


def test_a_move_left_out_is_found():
    played = player(n=4, drop=(2, 0, 1, 3))
    assert not played.right
    assert "chunk 3 lacks" in played.broken["en"]
    assert "分块 3" in played.broken["zh"]
    counts, _ = last_state(played)
    assert counts[:, 3].min() < 4
    illegal = player("broadcast", "binomial", 4, drop=(1, 0, 2, 0))
    assert "holds nothing" in illegal.broken["en"]
    assert len(illegal.states) == 2


def test_leaving_out_keeps_all_other_moves():
    for name in ("all_reduce/ring", "all_reduce/double_tree", "all_reduce/switch"):
        schedule = rl.build(name, 6)
        first = next(iter(schedule.moves()))
        drop = (first.at + 1, int(first.src[0]), int(first.dst[0]), int(first.col[0]))
        assert without(schedule, drop).expanded() == schedule.expanded() - 1
    with pytest.raises(RoundelayError, match="no move of piece 9"):
        player(n=4, drop=(1, 0, 1, 9))


@pytest.mark.parametrize("name", ["ring", "rails", "double_tree", "bine", "rails_switch"])
def test_groups_send_what_the_cost_counts(name):
    schedule = rl.build(f"all_reduce/{name}", 96)
    each = Fraction(1 << 20, schedule.chunks)
    flows = sum(
        flow.bytes
        for step in range(1, schedule.steps + 1)
        for flow in grouped(algorithm=name, n=96, step=step).flows
    )
    moved = sum(int((s.src != s.dst).sum()) for s in schedule.moves())
    assert flows == pytest.approx(float(moved * each))
    most = max(grouped(algorithm=name, n=96, step=schedule.steps, rank=r).part_sent
               for r in range(96))  # fmt: skip
    assert most == pytest.approx(float(rl.cost(schedule, 1 << 20).bytes_sent_max))


def test_groups_list_a_ranks_moves():
    found = grouped(n=100, step=3, rank=7)
    wanted = {
        (int(a), int(b), int(c))
        for s in rl.build("all_reduce/ring", 100).moves()
        if s.at == 2
        for a, b, c in zip(s.src, s.dst, s.col, strict=True)
        if 7 in (a, b)
    }
    assert {move[:3] for move in found.part} == wanted
    assert found.groups[-1][1] == 99


def test_the_largest_groups_are_answered():
    for name in ("ring", "halving_doubling", "star", "rails_switch"):
        found = grouped(algorithm=name, n=16384, step=1, rank=16383)
        assert found.flows
        assert len(found.groups) <= 17


def test_index_and_modules_are_served(client):
    index = client.get("/")
    assert index.status_code == 200
    assert index.headers["content-type"].startswith("text/html")
    assert "<script>" not in index.text
    assert "style=" not in index.text
    for name, kind in (("main.js", "text/javascript"), ("style.css", "text/css")):
        found = client.get(f"/static/{name}")
        assert found.status_code == 200
        assert found.headers["content-type"].startswith(kind)


@pytest.mark.parametrize("path", ["/", "/static/main.js", "/api/catalogue", "/nothing", "/api/x"])
def test_headers_are_on_every_answer(client, path):
    found = client.get(path)
    for name, value in HEADERS.items():
        assert found.headers[name.lower()] == value
    policy = found.headers["content-security-policy"]
    assert "unsafe" not in policy
    assert "http:" not in policy


@pytest.mark.parametrize(
    "path",
    [
        "/nothing",
        "/static/",
        "/static/nothing.js",
        "/static/../server.py",
        "/static/%2e%2e/server.py",
        "/static/..%2fserver.py",
        "/static/views",
        "/static//etc/passwd",
        "/static/%00",
        "/static/views/../../server.py",
        "/api/",
        "/api/player/more",
    ],
)
def test_unknown_paths_are_not_found(client, path):
    refused(client.get(path), 404)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("n=1", "2 to 64"),
        ("n=1000000", "2 to 64"),
        ("n=65", "2 to 64"),
        ("n=-4", "2 to 64"),
        ("n=4.5", "2 to 64"),
        ("n=" + "9" * 150, "2 to 64"),
        ("n=%EF%BC%94", "2 to 64"),
        ("n=", "2 to 64"),
        ("n=4&n=5", "more than once"),
        ("nn=4", "unknown parameter"),
        ("collective=../../etc", "unknown collective"),
        ("algorithm=__class__", "unknown algorithm"),
        ("collective=all_gather_v&algorithm=star", "unknown algorithm"),
        ("root=3", "no root"),
        ("collective=broadcast&algorithm=binomial&root=9", "root"),
        ("params=group", "key=value"),
        ("params=group=8", "unknown parameter"),
        ("algorithm=rails&params=group=0", "ranks a node"),
        ("algorithm=rails&params=group=99999999999999999", "ranks a node"),
        ("algorithm=rails&params=inner=nothing", "unknown algorithm"),
        ("algorithm=double_tree&params=pieces=1000000000", ""),
        ("algorithm=double_tree&params=pieces=100000", "can be shown"),
        ("size=lots", "size"),
        ("size=1e99", ""),
        ("size=-1", ""),
        ("cluster=/etc/passwd", "unknown cluster"),
        ("cluster=here", "unknown cluster"),
        ("cluster=dgx-h100:999999999", "1 to 64"),
        ("cluster=dgx-h100:0", "1 to 64"),
        ("cluster=dgx-h100&n=16", "cards"),
        ("algorithm=switch&cluster=v100-pcie", ""),
        ("drop=1.0.1", "step.source"),
        ("drop=1.0.3.0", "no move"),
        ("collective=" + "x" * 300, "characters"),
    ],
)
def test_bad_parameters_are_refused(client, query, said):
    assert said in refused(client.get(f"/api/player?{query}"), 400)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("n=1000000", "2 to 16,384"),
        ("n=16385", "2 to 16,384"),
        ("n=16384&algorithm=one_shot", "1,024"),
        ("collective=all_to_all&algorithm=direct&n=2000", "1,024"),
        ("n=128&step=9999", "step"),
        ("n=128&rank=128", "rank"),
        ("n=16384&algorithm=double_tree&params=pieces=999999999999999", ""),
    ],
)
def test_bad_questions_about_groups_are_refused(client, query, said):
    assert said in refused(client.get(f"/api/grouped?{query}"), 400)


def test_other_methods_long_queries_and_hosts_are_refused(client):
    refused(client.get("/api/player", "POST"), 405)
    refused(client.get("/api/player?" + "a" * 5000), 414)
    assert "unknown view" in refused(client.get("/api/nothing"), 400)
    for host in ("evil.example", "127.0.0.1.evil.example", "", "127.0.0.1:80:80"):
        refused(client.get("/api/catalogue", headers={"host": host}), 400)
    assert client.get("/api/catalogue", headers={"host": "localhost:8765"}).status_code == 200


def test_answers_are_the_functions(client):
    found = client.get("/api/player?n=5&algorithm=star")
    assert found.status_code == 200
    assert found.headers["cache-control"] == "no-store"
    assert found.json() == json.loads(answer("player", {"n": "5", "algorithm": "star"}))
    known = client.get("/api/catalogue").json()["collectives"]
    assert {(c, a["name"]) for c, listed in known.items() for a in listed} == {
        (a.collective, a.name) for a in rl.algorithms()
    }


def test_one_file_is_whole_and_small():
    text = pages.page(asked("player", {"n": "8", "against": "star"}), "player?n=8&against=star")
    assert len(text.encode()) < 400_000
    assert not re.search(r'(?:src|href)="(?!data:,|#)', text)
    assert "\nimport " not in text
    assert "\nexport " not in text
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)[1]
    assert "default-src 'none'" in policy
    assert policy.count("'sha256-") == 2
    inside = json.loads(re.search(r'id="inside">(.*?)</script>', text, re.S)[1])
    assert len(inside["data"]) == 3


def test_modules_that_cannot_be_joined_are_named(monkeypatch):
    files = {}
    monkeypatch.setattr(pages, "static", lambda path: files.get(path))
    files["main.js"] = b'import {a} from "./a.js";\nconst b = a;\n'
    with pytest.raises(RoundelayError, match=r"no module a\.js"):
        pages.bundle()
    files["a.js"] = b"export const a = 1;\n"
    assert pages.bundle() == "const a = 1;\nconst b = a;"
    files["a.js"] = b"export const a = 1;\nfunction b() {}\n"
    with pytest.raises(RoundelayError, match="b is a name at the top of"):
        pages.bundle()
    files["a.js"] = b"export default 1;\n"
    with pytest.raises(RoundelayError, match="expected import"):
        pages.bundle()
    files["a.js"] = b'import {b} from "./main.js";\nexport const a = b;\n'
    with pytest.raises(RoundelayError, match="imports itself"):
        pages.bundle()


def test_words_of_both_languages_are_the_same():
    tables = [
        {k: set(re.findall(r"\{\w+\}", v)) for k, v in re.findall(
            r'^  (\w+): ((?:"[^"]*"(?: \+\n\s+)?)+),$', pages._text(f"words/{lang}.js"), re.M)}
        for lang in ("en", "zh")
    ]  # fmt: skip
    assert len(tables[0]) > 50
    assert tables[0] == tables[1]


def test_states_are_known():
    assert set(VIEWS) <= set(QUESTIONS)
    assert state_text("player", {"n": "8", "cluster": "dgx-h100:2", "drop": ""}) == (
        "player?n=8&cluster=dgx-h100:2"
    )
    assert state_text("player", {}) == "player"
    with pytest.raises(RoundelayError, match="unknown view"):
        asked("nothing", {})
    assert places.CROWD < 64
