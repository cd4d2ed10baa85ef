"""The page's server and the one file: what is asked, and a clear refusal of all else."""

import asyncio
import http.client
import json
import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import closing, contextmanager, suppress
from functools import partial
from threading import Event, Thread

import pytest
import uvicorn

import roundelay as rl
from roundelay import cli, patience
from roundelay.errors import RoundelayError
from roundelay.formats.timeline import write_timeline
from roundelay.web import page as pages
from roundelay.web.data import QUESTIONS, answer, curves, run
from roundelay.web.known import known
from roundelay.web.runs import examples
from roundelay.web.server import HEADERS, SLOWEST, make_app, refusal
from roundelay.web.states import VIEWS, asked, state_text
from roundelay.web.turns import Busy, Gone, Turns


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


@contextmanager
def serving(**rules):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        protocol = patience.impatient(HEADERS, 256, refusal)
        protocol.rules = protocol.rules._replace(**rules)
        config = uvicorn.Config(make_app(), log_level="error", lifespan="off", http=protocol)
        server = uvicorn.Server(config)
        thread = Thread(target=server.run, args=([listener],), daemon=True)
        thread.start()
        yield Client(listener.getsockname()[1])
        server.should_exit = True
        thread.join(30)
        assert not thread.is_alive()


@pytest.fixture(scope="module")
def client():
    with serving() as found:
        yield found


def refused(answer, status):
    """The error of an answer that must be one."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    value = answer.json()
    assert set(value) == {"error"}
    assert value["error"]
    return value["error"]


def test_the_slowest_answers_are_worked_out_beforehand(tmp_path):
    kept = curves._curves
    kept.cache_clear()
    run.drawn.cache_clear()
    (tmp_path / "mine.timeline").write_bytes(write_timeline(examples()["even"]))
    given = known([tmp_path / "mine.timeline"])

    async def started():
        app = make_app(known=given)
        async with app.router.lifespan_context(app):
            end = time.monotonic() + 60
            while not kept.cache_info().currsize:
                assert time.monotonic() < end
                await asyncio.sleep(0.02)

    asyncio.run(started())
    assert answer(*SLOWEST)
    assert (kept.cache_info().hits, kept.cache_info().misses) == (1, 1)
    assert answer("run", {"name": "mine"}, given)
    assert (run.drawn.cache_info().hits, run.drawn.cache_info().misses) == (1, 1)


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
        ("cluster=dgx-h100:999999999", "1 to 2,048"),
        ("cluster=dgx-h100:0", "1 to 2,048"),
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


@pytest.mark.parametrize("kill", [signal.SIGINT, signal.SIGTERM])
def test_serve_is_there_and_ends(kill):
    words = ["serve", "--no-open", "--port", "0", "--json"]
    program = f"import sys; from roundelay.cli import main; main({words})"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as served:  # fmt: skip
        try:
            said = "".join(iter(served.stdout.readline, "}\n")) + "}"
            port = int(json.loads(said)["url"].rsplit(":", 1)[1].strip("/"))
            for _ in range(100):
                if Client(port).get("/").status_code == 200:
                    break
            served.send_signal(kill)
            _, errors = served.communicate(timeout=30)
        finally:
            served.kill()
    assert errors == ""


def test_without_its_packages_serve_names_the_extra(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "starlette", None)
    assert cli.run(["serve", "--no-open", "--port", "0", "--lang", "en"]) == 2
    assert "pip install 'roundelay[web]'" in capsys.readouterr().err


def test_page_is_written(tmp_path, capsys):
    file = tmp_path / "ring.html"
    assert cli.run(["page", str(file), "-n", "4", "--cluster", "dgx-h100", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "file": str(file), "bytes": file.stat().st_size
    }  # fmt: skip
    assert "player?" in file.read_text("utf-8")
    assert cli.run(["page", str(file), "-n", "65", "--lang", "en"]) == 2
    assert "2 to 64" in capsys.readouterr().err


def said(port, data, seconds=30):
    """What the server says to these bytes until it closes."""
    with socket.create_connection(("127.0.0.1", port), timeout=seconds) as line:
        line.sendall(data)
        found = b""
        with suppress(ConnectionResetError):  # it does not read on
            while part := line.recv(65536):
                found += part
    head, _, body = found.partition(b"\r\n\r\n")
    return head.decode(), json.loads(body)


@pytest.mark.parametrize(
    "data",
    [
        b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: -1\r\n\r\n",
    ],
)
def test_what_is_no_request_is_refused_in_json(client, data):
    head, body = said(client.port, data)
    assert head.startswith("HTTP/1.1 400")
    assert "Content-Security-Policy" in head
    assert "expected" in body["error"]


def test_names_of_hosts_ignore_case(client):
    assert client.get("/", headers={"Host": "LOCALHOST:80"}).status_code == 200


def test_who_asks_nothing_whole_is_sent_away():
    with serving(head=0.5) as client:
        assert client.get("/").status_code == 200
        silent = [socket.create_connection(("127.0.0.1", client.port)) for _ in range(100)]
        for line in silent[1:]:
            line.sendall(b"GET / HTTP/1.1\r\nHost: 127.0")
        assert client.get("/").status_code == 200
        head, body = said(client.port, b"GET / HTTP/1.1\r\n")
        assert head.startswith("HTTP/1.1 408")
        assert "no whole head of a request in 0.5 s" in body["error"]
        for line in silent:
            line.settimeout(30)
            assert line.recv(4096).startswith(b"HTTP/1.1 408")
            line.close()


def test_work_that_nobody_wants_any_more_is_not_done():
    """Two are worked out, one waits, one is too many; the one that waits goes, so none is begun."""
    begun, let = [], Event()

    async def here():
        return False

    async def away():
        return True

    def work(number):
        begun.append(number)
        assert let.wait(30)
        return number

    async def go():
        turns = Turns(2, 2)
        running = [asyncio.create_task(turns.do(partial(work, n), here)) for n in range(2)]
        while len(begun) < 2:
            await asyncio.sleep(0.01)
        waiting = asyncio.create_task(turns.do(partial(work, 2), here))
        with pytest.raises(Gone):
            await turns.do(partial(work, 3), away)
        late = asyncio.create_task(turns.do(partial(work, 4), here))
        await asyncio.sleep(0.01)
        with pytest.raises(Busy):
            await turns.do(partial(work, 5), here)
        waiting.cancel()
        with pytest.raises(Busy, match="ends"):
            await waiting
        let.set()
        return await asyncio.gather(*running, late)

    assert asyncio.run(go()) == [0, 1, 4]
    assert begun == [0, 1, 4]


def test_an_error_in_a_thread_reaches_who_asked():
    def wrong():
        raise RoundelayError("no such thing")

    async def here():
        return False

    async def go():
        turns = Turns(1, 1)
        for _ in range(3):
            with pytest.raises(RoundelayError, match="no such thing"):
                await turns.do(wrong, here)

    asyncio.run(go())


def test_it_ends_at_once_whatever_it_works_out(tmp_path):
    """A clock on 256 cards, each of which has to do with each other, takes seconds."""
    told = tmp_path / "told.json"
    words = [sys.executable, "-m", "roundelay", "serve", "--no-open", "--port", "0",
             f"--json={told}"]  # fmt: skip
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        end = time.monotonic() + 60
        while not (told.exists() and told.read_text().endswith("\n")):
            assert time.monotonic() < end
            time.sleep(0.05)
        port = int(json.loads(told.read_text())["url"].rsplit(":", 1)[1].rstrip("/"))
        with socket.create_connection(("127.0.0.1", port)) as line:
            line.sendall(b"GET /api/cluster?cluster=dgx-h100:32&algorithm=one_shot HTTP/1.1\r\n"
                         b"Host: 127.0.0.1\r\n\r\n")  # fmt: skip
            time.sleep(0.5)
            process.send_signal(signal.SIGINT)
            assert process.wait(20) == 0
        assert process.stderr.read() == b""


@pytest.mark.parametrize("host", ["", " "])
def test_no_host_is_not_every_host(host, capsys):
    assert cli.run(["serve", "--no-open", "--port", "0", "--host", host]) == 2
    assert "expected an address" in capsys.readouterr().err


@pytest.mark.parametrize(("words", "said"), [
    (["-"], "-: expected the name of a file"),
    ([""], ".: expected the name of a file"),
    (["/dev/full"], "/dev/full: No space left on device"),
    (["x.html", "--view", "stack", "--algorithm", "zzz"],
     "--algorithm with --view stack; expected none of these"),
    (["x.html", "--view", "curves", "-n", "8"],
     "-n with --view curves; expected --collective, --cluster"),
])  # fmt: skip
def test_what_page_cannot_write_is_said(words, said, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cli.run(["page", *words, "--lang", "en"]) == 2
    assert said in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("name", "given", "said"), [
    ("bucket", {"slow": "1_0"}, "slow = '1_0'; expected 1 to 10"),
    ("bucket", {"slow": "nan"}, "slow = 'nan'; expected 1 to 10"),
    ("bucket", {"slow": "١"}, "expected 1 to 10"),
    ("player", {"algorithm": "ring", "params": "pieces=2"}, "'pieces'; it has none"),
    ("player", {"collective": "broadcast", "algorithm": "ring"}, "'ring'; known: bine"),
    ("stack", {"x": "1"}, "'x'; it has none"),
])  # fmt: skip
def test_what_is_refused_says_what_there_is(name, given, said):
    with pytest.raises(RoundelayError, match=re.escape(said)):
        answer(name, given)


def test_a_long_name_is_not_repeated_whole():
    with pytest.raises(RoundelayError) as found:
        answer("player", {"y" * 1900: "1"})
    assert len(str(found.value)) < 300
