"""`roundelay llm` as its clients meet it."""

import http.client
import json
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from llm_served import CONTEXT, ask, events, gauge, refused, served, text, until

pytest.importorskip("roundelay._native", reason="the native core is not built")

pytestmark = pytest.mark.timeout(150)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with served(tmp_path_factory.mktemp("server"), "--tp", "2", "--batch", "4",
                "--queue", "2") as (process, port):  # fmt: skip
        yield process, port
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


@pytest.fixture(scope="module")
def port(server):
    return server[1]


def test_completions_whole_and_streamed(port):
    status, found = text(port, "The capital of France is", 4)
    assert (status, found["object"]) == (200, "text_completion")
    choice = found["choices"][0]
    assert (choice["text"], choice["finish_reason"]) == (" Paris.\n\n", "length")
    assert found["usage"] == {"prompt_tokens": 5, "completion_tokens": 4, "total_tokens": 9}
    _, headers, body = ask(port, "/v1/completions", {
        "prompt": "The capital of France is", "max_tokens": 4, "temperature": 0, "stream": True,
        "stream_options": {"include_usage": True},
    })  # fmt: skip
    assert headers["content-type"].startswith("text/event-stream")
    *parts, counted, done = events(body)
    assert done == "[DONE]"
    assert "".join(p["choices"][0]["text"] for p in parts) == choice["text"]
    assert [p["choices"][0]["finish_reason"] for p in parts][-1] == "length"
    assert counted["usage"] == found["usage"]


def test_chats_and_choices(port):
    body = {"messages": [{"role": "user", "content": "What is the capital of France?"}],
            "temperature": 0, "max_tokens": 24, "n": 2}  # fmt: skip
    status, _, whole = ask(port, "/v1/chat/completions", body)
    found = json.loads(whole)
    said = [c["message"]["content"] for c in found["choices"]]
    assert status == 200
    assert "Paris" in said[0]
    assert said[0] == said[1]
    prompt = text(port, "a", 1)[1]["usage"]["prompt_tokens"]
    twice = text(port, "a", 1, n=2)[1]["usage"]
    assert (twice["prompt_tokens"], twice["completion_tokens"]) == (prompt, 2)
    *parts, _ = events(ask(port, "/v1/chat/completions", {**body, "stream": True})[2])
    for i in range(2):
        deltas = [c["delta"] for p in parts for c in p["choices"] if c["index"] == i]
        assert deltas[0]["role"] == "assistant"
        assert "".join(d["content"] for d in deltas) == said[i]


def test_models_health_and_metrics(port):
    models = json.loads(ask(port, "/v1/models")[2])
    assert [m["id"] for m in models["data"]] == ["SmolLM2-135M-Instruct.Q4_1"]
    assert json.loads(ask(port, "/v1/models/SmolLM2-135M-Instruct.Q4_1")[2]) == models["data"][0]
    assert ask(port, "/v1/models/gpt/4")[0] == 404
    status, _, body = ask(port, "/health")
    assert (status, json.loads(body)["status"]) == (200, "ok")
    before = gauge(port, "tokens_total")
    text(port, "a", 3)
    assert gauge(port, "tokens_total") == before + 3


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/v1/completions", b"\xff", 400),
        ("/v1/completions", b"{", 400),
        ("/v1/completions", {"prompt": ""}, 400),
        ("/v1/completions", {"prompt": "a " * CONTEXT}, 400),
        ("/v1/completions", {"prompt": "a", "max_tokens": -1}, 400),
        ("/v1/completions", {"prompt": "a", "model": "x"}, 404),
        ("/v1/completions", b"[" + b" " * (1 << 20), 413),
        ("/v1/chat/completions", {"messages": []}, 400),
        ("/v1/chat/completions", {"messages": [{"role": "cook", "content": "a"}]}, 400),
        ("/v1/chat/completions", None, 405),
        ("/v1/nothing", {}, 404),
        ("/v1/completions/", {}, 404),
        ("/v1/completions", b'{"prompt": ' + b"[" * 5000 + b"]" * 5000 + b"}", 400),
        ("/v1/completions", {"prompt": ["a", 5]}, 400),
    ],
)
def test_bad_requests(port, path, body, status):
    got, _, said = ask(port, path, body)
    assert got == status
    error = json.loads(said)["error"]
    assert error["type"] == "invalid_request_error"
    assert error["message"]


def test_each_stream_has_its_own_tokens_and_too_many_are_refused(port):
    prompts = ["The capital of France is", "Once upon a time", "def f(x):", "Water boils at",
               "Roses are red,", "1, 2, 3,"]  # fmt: skip
    alone = {p: text(port, p, 12)[1]["choices"][0]["text"] for p in prompts}
    with ThreadPoolExecutor(16) as pool:
        fit = list(pool.map(lambda p: text(port, p, 12), prompts))
        many = list(pool.map(lambda p: text(port, p, 12)[0], prompts[:1] * 16))
    assert {p: f["choices"][0]["text"] for p, (_, f) in zip(prompts, fit, strict=True)} == alone
    assert set(many) == {200, 429}
    assert many.count(200) >= 6


def test_no_more_are_let_in_than_there_are_places(port):
    """Also where all come at once, before the first of them is with an instance."""
    body = {"prompt": "Once upon a time", "max_tokens": 60, "temperature": 0}
    with ThreadPoolExecutor(40) as pool:
        found = list(pool.map(lambda _: ask(port, "/v1/completions", body)[0], range(40)))
    assert found.count(200) < 12  # 4 + 2, and who came when the first had ended
    assert found.count(429) + found.count(200) == 40
    until(lambda: gauge(port, "requests{") == 0)
    assert text(port, "a", 1)[0] == 200


def test_a_client_that_goes_cancels(port):
    for stream in (True, False):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        body = {"prompt": "Once upon a time", "max_tokens": 490, "stream": stream,
                "temperature": 0}  # fmt: skip
        connection.request("POST", "/v1/completions", json.dumps(body))
        until(lambda: gauge(port, "requests{") == 1)
        assert gauge(port, "running") == 1
        if stream:
            connection.getresponse().read(100)
        connection.sock.close()
        connection.close()
        until(lambda: gauge(port, "requests{") == 0)
    assert gauge(port, 'requests_total{end="cancelled"}') >= 2


def test_a_dead_rank_is_an_error_and_a_new_start(tmp_path):
    with served(tmp_path, "--tp", "2", "--replicas", "2") as (_, port):
        instances = json.loads(ask(port, "/health")[2])["instances"]
        pids = [i["pids"] for i in instances]
        body = {"prompt": "Once upon a time", "max_tokens": 80, "temperature": 0, "stream": True}
        with ThreadPoolExecutor(4) as pool:
            asked = [pool.submit(ask, port, "/v1/completions", body) for _ in range(4)]
            until(lambda: gauge(port, "requests{") == 4)
            os.kill(pids[0][1], signal.SIGKILL)
            ended = [events(one.result()[2])[-1] for one in asked]
        failed = [e for e in ended if isinstance(e, dict) and "error" in e]
        assert len(failed) == 2  # the others were with the other instance
        assert "the instance ended" in failed[0]["error"]["message"]
        assert text(port, "a", 2)[0] == 200  # the one that lives goes on
        until(lambda: json.loads(ask(port, "/health")[2])["status"] == "ok")
        assert gauge(port, "restarts_total") == 1
        assert [text(port, "a", 2)[0] for _ in range(2)] == [200, 200]


def test_sigterm_finishes_what_runs(tmp_path):
    with served(tmp_path, "--tp", "2") as (process, port):
        pids = json.loads(ask(port, "/health")[2])["instances"][0]["pids"]
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(text, port, "Once upon a time", 60)
            until(lambda: gauge(port, "requests{") == 1)
            process.send_signal(signal.SIGTERM)
            until(lambda: refused(port))
            assert not running.done()
            status, found = running.result(60)
        assert (status, found["usage"]["completion_tokens"]) == (200, 60)
        assert process.wait(30) == 0
        assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


def test_instances_come_and_go_with_what_is_asked(tmp_path):
    """By the queue: four requests on two places want a second instance, and calm ends it."""

    def pids():
        return [i["pids"] for i in json.loads(ask(port, "/health")[2])["instances"]]

    words = ("--replicas", "1-2", "--batch", "2", "--calm", "1s", "--target", "1")
    with served(tmp_path, *words) as (process, port), ThreadPoolExecutor(4) as pool:
        first = pids()
        assert len(first) == 1
        asked = [pool.submit(text, port, "Once upon a time", 200) for _ in range(4)]
        until(lambda: len(pids()) == 2 and all(pids()))
        second = pids()[1]
        assert text(port, "a", 2)[0] == 200
        assert [one.result()[0] for one in asked] == [200] * 4
        until(lambda: len(pids()) == 1)
        assert text(port, "a", 2)[0] == 200
        gone = {*first[0], *second} - {*pids()[0]}
        assert gone
        until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in gone))
        assert gauge(port, "restarts_total") == 0
    assert process.returncode == 0
