"""Clients of `roundelay llm` that come and go for a while, as `Siege` has strangers at doors."""

import http.client
import json
import os
import random
import signal
import socket
import threading
import time
from collections import Counter
from contextlib import closing, suppress

from llm_served import CONTEXT, ask, events, gauge, text, until

PROMPTS = ("The capital of France is", "Once upon a time", "def f(x):", "Water boils at",
           "Roses are red,", "1, 2, 3,")  # fmt: skip
TOKENS = 24
PATH = "/v1/completions"
HOSTILE = (
    b"", b"{", b"\xff\xfe", b"null", b"[]", b"[" * 5000, b'{"prompt": 1e999}', b'{"prompt": "a"',
    b'{"prompt": ["a", 5]}', b'{"prompt": [-1]}', b'{"prompt": [99999999]}', b'{"prompt": []}',
    b'{"prompt": ""}', b'{"prompt": "\\ud800"}', b'{"prompt": "a", "n": 1000}',
    b'{"prompt": "a", "n": -1}', b'{"prompt": "a", "max_tokens": 0}',
    b'{"prompt": "a", "temperature": -1}', b'{"prompt": "a", "top_p": 0}',
    b'{"prompt": "a", "seed": 99999999999999999999}', b'{"prompt": "a", "stop": [""]}',
    b'{"prompt": "a", "stop": ["1", "2", "3", "4", "5"]}', b'{"prompt": "a", "logprobs": 1}',
    b'{"prompt": {"a": 1}}', b'{"prompt": "a", "model": "another"}',
    b'{"prompt": "' + b"a " * CONTEXT + b'"}', b"[" + b" " * (1 << 20),
)  # fmt: skip
HEAD = b"POST /v1/completions HTTP/1.1\r\nHost: a\r\n"
RAW = (
    b"\x16\x03\x01\x02\x00\x01\x00", b"GET\r\n\r\n", b"POST / HTTP/1.1\r\n\r\n",
    HEAD + b"Content-Length: -1\r\n\r\n", HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n",
)  # fmt: skip
"""What is no request of HTTP."""


class Clients:
    """Streams, clients that go, hostile ones, and one who kills a rank now and then.

    Attributes:
        met: what was done, by kind; and what came of it.
        wrong: what must not be.
    """

    def __init__(self, port, seconds, every, seed=1):
        """For so long, with a rank killed after so many seconds each."""
        self._port, self._seconds, self._every, self._seed = port, seconds, every, seed
        self._alone = {p: text(port, p, TOKENS)[1]["choices"][0]["text"] for p in PROMPTS}
        self._killed = []
        self.met, self.wrong = Counter(), []

    def run(self):
        self._end = time.monotonic() + self._seconds
        kinds = [*[self._stream] * 4, *[self._whole] * 2, *[self._goes] * 2, self._hostile,
                 self._half]  # fmt: skip
        threads = [threading.Thread(target=self._often, args=(kind, self._seed + i))
                   for i, kind in enumerate(kinds)]  # fmt: skip
        threads.append(threading.Thread(target=self._kill))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _often(self, kind, seed):
        dice = random.Random(seed)
        while time.monotonic() < self._end:
            begun = time.monotonic()
            try:
                came = kind(dice, begun)
            except Exception as error:
                self.wrong.append((kind.__name__, repr(error)))
                return
            self.met[f"{kind.__name__[1:]} {came}"] += 1

    def _body(self, dice, **more):
        prompt = dice.choice(PROMPTS)
        return prompt, {"prompt": prompt, "max_tokens": TOKENS, "temperature": 0, **more}

    def _stream(self, dice, begun):
        """It must come whole, or end in the one error that a killed rank explains."""
        prompt, body = self._body(dice, stream=True)
        status, _, told = ask(self._port, PATH, body)
        if status != 200:
            return self._failed(begun, status, told)
        *parts, last = events(told)
        if last != "[DONE]":
            return self._failed(begun, 503, json.dumps(last))
        choices = [part["choices"][0] for part in parts]
        ends = [c["finish_reason"] for c in choices]
        if ends[-1] is None or any(ends[:-1]):
            self.wrong.append(("ends", ends))
        return self._said(prompt, "".join(c["text"] for c in choices))

    def _whole(self, dice, begun):
        prompt, body = self._body(dice)
        status, _, told = ask(self._port, PATH, body)
        if status != 200:
            return self._failed(begun, status, told)
        return self._said(prompt, json.loads(told)["choices"][0]["text"])

    def _said(self, prompt, found):
        """What it says alone; rounding in other company may turn a near tie, and nothing else."""
        if found == self._alone[prompt]:
            return "done"
        for other, words in self._alone.items():
            if other != prompt and found[:40] == words[:40]:
                self.wrong.append(("mixed", prompt, other))
        return "turned"

    def _failed(self, begun, status, told):
        error = json.loads(told)["error"]["message"]
        with_a_kill = any(begun - 3 < at for at in self._killed)
        if status != 503 or "the instance ended" not in error or not with_a_kill:
            self.wrong.append(("failed", status, error))
        return "failed"

    def _goes(self, dice, begun):
        """A client that leaves, before or while its answer comes."""
        stream = dice.random() < 0.7
        _, body = self._body(dice, stream=stream, max_tokens=400)
        with closing(http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)) as connection:
            connection.request("POST", PATH, json.dumps(body))
            time.sleep(dice.random() / 4)
            if stream and dice.random() < 0.7:
                connection.getresponse().read(dice.randrange(1, 2000))
            connection.sock.shutdown(socket.SHUT_RDWR)
        return "gone"

    def _hostile(self, dice, begun):
        """A body that is no request: a refusal with a reason, never a defect."""
        time.sleep(dice.random() / 10)
        body = dice.choice(HOSTILE)
        path = dice.choice((PATH, "/v1/chat/completions"))
        status, _, told = ask(self._port, path, body)
        if not (400 <= status < 500 and json.loads(told)["error"]["message"]):
            self.wrong.append(("hostile", body[:80], status, told[:200]))
        return status

    def _half(self, dice, begun):
        """Bytes that are no HTTP, or a request that is never whole."""
        time.sleep(dice.random() / 10)
        with socket.create_connection(("127.0.0.1", self._port), timeout=10) as line:
            if dice.random() < 0.5:
                line.sendall(HEAD + b"Content-Length: 9\r\n\r\n{")
                time.sleep(dice.random() / 4)
                return "left"
            with suppress(OSError):
                line.sendall(dice.choice(RAW))
            with suppress(OSError):
                said = line.recv(4096)
                if said and not said.startswith(b"HTTP/1.1 4"):
                    self.wrong.append(("raw", said[:200]))
        return "refused"

    def _kill(self):
        """One rank of one instance, when all are there; health and metrics answer meanwhile."""
        dice = random.Random(self._seed)
        while time.monotonic() < self._end - self._every:
            time.sleep(self._every)
            until(lambda: json.loads(ask(self._port, "/health")[2])["status"] == "ok", seconds=90)
            instances = json.loads(ask(self._port, "/health")[2])["instances"]
            self._killed.append(time.monotonic())
            os.kill(dice.choice(dice.choice(instances)["pids"]), signal.SIGKILL)
            self.met["killed"] += 1
        until(lambda: gauge(self._port, "restarts_total") == self.met["killed"], seconds=90)
        until(lambda: json.loads(ask(self._port, "/health")[2])["status"] == "ok", seconds=90)
