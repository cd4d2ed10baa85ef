"""Strangers at the doors of a running job: random bytes, true handshakes that were changed, ..."""

import hmac
import random
import socket
import struct
import threading
import time
from collections import Counter, deque
from contextlib import suppress

from roundelay.run.wire import derive

LENGTH = struct.Struct(">I")
GREETING = LENGTH.size + 50
HELLO = struct.Struct(">8sH32sIIII")
MAC = 32
OPEN = 100
"""Connections that are left open at once without a word."""


def framed(data):
    return LENGTH.pack(len(data)) + data


class Siege:
    """Sends frames to doors, from several threads; `met` counts what was sent, and what came.

    Args:
        doors: host and port of each rank.
        secret: of the job, 32 bytes.
        nonce: of its session. With both, handshakes can be true in all but what is changed.
    """

    THREADS = 16

    def __init__(self, doors, secret, nonce, seed=1):
        self._doors = doors
        self._key = derive(secret, b"data:" + nonce)
        self._seed = seed
        self._lock = threading.Lock()
        self._left = 0
        self._idle = deque()
        self._old = {}
        self.met = Counter()

    def run(self, frames, seconds):
        """Sends so many frames, or as many as the time allows."""
        self._left, self._deadline = frames, time.monotonic() + seconds
        threads = [threading.Thread(target=self._work, args=(k,)) for k in range(self.THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for sock in self._idle:
            sock.close()

    def _work(self, number):
        dice = random.Random(self._seed * self.THREADS + number)
        kinds = (self._random, self._changed, self._cut, self._silent, self._replay, self._no_key)
        while self._left > 0 and time.monotonic() < self._deadline:
            kind = dice.choice(kinds)
            door = dice.randrange(len(self._doors))
            try:
                with socket.create_connection(self._doors[door], 5) as sock:
                    sent, answer = kind(dice, door, sock)
            except OSError as error:
                sent, answer = 0, type(error).__name__
            with self._lock:
                self._left -= sent
                self.met[kind.__name__[1:]] += sent
                self.met["connections"] += 1
                self.met[answer] += 1

    def _random(self, dice, door, sock):
        """Frames of random bytes, some with a length that is a lie."""
        count = dice.randint(1, 60)
        parts = []
        for _ in range(count):
            data = dice.randbytes(dice.randint(0, 120))
            lie = dice.random() < 0.2
            parts.append((dice.randbytes(4) if lie else LENGTH.pack(len(data))) + data)
        return count, self._say(sock, b"".join(parts))

    def _changed(self, dice, door, sock):
        """A true hello with one bit changed, and frames behind it."""
        hello = bytearray(framed(self._hello(dice, door, self._greeting(sock))))
        hello[dice.randrange(len(hello))] ^= 1 << dice.randrange(8)
        return 10, self._say(sock, bytes(hello) + framed(b"x" * 40) * 9, True)

    def _cut(self, dice, door, sock):
        """A true hello that ends too early."""
        hello = framed(self._hello(dice, door, self._greeting(sock)))
        return 1, self._say(sock, hello[: dice.randrange(len(hello))], True)

    def _silent(self, dice, door, sock):
        """Nothing, for as long as there is room."""
        self._idle.append(sock.dup())
        with suppress(IndexError):
            if len(self._idle) > OPEN:
                self._idle.popleft().close()
        return 1, "left open"

    def _replay(self, dice, door, sock):
        """A hello that is true for another greeting."""
        greeting = self._greeting(sock)
        old = self._old.setdefault(door, greeting)
        if old == greeting:  # never sent here
            return 0, "recorded"
        frames = framed(self._hello(dice, door, old)) * 20
        return 20, self._say(sock, frames, True)

    def _no_key(self, dice, door, sock):
        """A hello of the right form, by someone who does not know the key."""
        hello = self._hello(dice, door, self._greeting(sock), dice.randbytes(32))
        return 30, self._say(sock, framed(hello) * 30, True)

    def _hello(self, dice, door, greeting, key=None):

        source = dice.randrange(max(1, door))
        said = HELLO.pack(b"rounde\r\n", 1, dice.randbytes(32), source, door, 0, 3) + b"w.1"
        return said + hmac.digest(key or self._key, b"connector:" + greeting + said, "sha256")

    def _greeting(self, sock):
        data = b""
        while len(data) < GREETING:
            part = sock.recv(GREETING - len(data))
            if not part:
                raise ConnectionAbortedError
            data += part
        return data[LENGTH.size :]

    def _say(self, sock, data, greeted=False):
        """Says it, and what came of it: anything behind the greeting would mean to be let in."""
        came = GREETING if greeted else 0
        with suppress(ConnectionResetError, BrokenPipeError):
            sock.sendall(data)
            sock.shutdown(socket.SHUT_WR)
            while part := sock.recv(4096):
                came += len(part)
        return "dropped" if came <= GREETING else "ADMITTED"
