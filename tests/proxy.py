"""A proxy between the ranks of a job: it flips, holds back, slows, cuts or records what passes.

Ranks other than 0 are told its address as that of rank 0. In what they say of themselves it puts
ports of its own, so that all connections between ranks lead through it.
"""

import json
import random
import socket
import struct
import threading
import time
from contextlib import suppress
from dataclasses import dataclass

LENGTH = struct.Struct(">I")
HELLO = struct.Struct(">8sH32sIIII")
DATA_HEADER = 56
"""Bytes of the header of a message between ranks; its bytes follow."""


class CutError(Exception):
    """The connection is to be closed."""


@dataclass(frozen=True)
class Flow:
    """One direction of a connection: `index` 0 carries words, others data; -1: of start-up."""

    source: int
    target: int
    index: int
    back: bool  # from the target to the source


class Proxy:
    """Passes on what comes; `meddle(flow, offset, data)` gives what is passed on instead.

    Offsets count from the end of the handshake. Without `rewrite` only start-up leads through it,
    and what ranks say of themselves is left as it is.
    """

    def __init__(self, meddle=None, rewrite=True):
        self._meddle = meddle or (lambda flow, offset, data: data)
        self._rewrite = rewrite
        self._open = []
        self._relayed = []
        self._lock = threading.Lock()
        self._target = None
        self.recorded = bytearray()
        """What passed in start-up and over its connections later, and all handshakes."""
        self.address, self.rank_0 = self._two_ports()

    def _two_ports(self):
        """Its own address, and one for rank 0, which is not found by looking further from it."""
        door = self._listen(self._greet)
        own = door.getsockname()[1]
        while True:
            port = random.randrange(20_000, 30_000)  # not one that a call from here may be given
            with socket.socket() as free, suppress(OSError):
                free.bind(("127.0.0.1", port))
                self._target = ("127.0.0.1", port)
                return f"127.0.0.1:{own}", f"127.0.0.1:{port}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with self._lock:
            for sock in self._open:
                with suppress(OSError):
                    sock.shutdown(socket.SHUT_RDWR)
                sock.close()
            self._open.clear()

    def cut(self, index):
        """Closes all connections of this index."""
        for flow, *ends in list(self._relayed):
            for sock in ends if flow.index == index else []:
                sock.shutdown(socket.SHUT_RDWR)

    def _keep(self, sock):
        with self._lock:
            self._open.append(sock)
        return sock

    def _listen(self, serve):
        door = self._keep(socket.create_server(("127.0.0.1", 0), backlog=64))

        def accept():
            with suppress(OSError):
                while True:
                    near = self._keep(door.accept()[0])
                    threading.Thread(target=guarded, args=(near,), daemon=True).start()

        def guarded(near):
            with suppress(OSError, EOFError):
                serve(near)

        threading.Thread(target=accept, daemon=True).start()
        return door

    def _reach(self, near, target):
        try:
            far = self._keep(socket.create_connection(target))
        except OSError:
            near.close()
            raise
        for sock in (near, far):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return far

    def _greet(self, near):
        """A rank that joins: its arrival says where it listens."""
        far = self._reach(near, self._target)
        hello = self._handshake(near, far)
        if self._rewrite:
            said = json.loads(frame(near))
            member = said["member"]
            host, port = member["host"], member["port"]
            door = self._listen(lambda data: self._connect(data, (host, port)))
            member["port"] = door.getsockname()[1]
            self._pass_frame(far, json.dumps(said).encode())
        self._relay(near, far, Flow(hello[0], 0, -1, False))

    def _connect(self, near, target):
        """A connection for data."""
        far = self._reach(near, target)
        source, aim, index = self._handshake(near, far)
        self._relay(near, far, Flow(source, aim, index, False))

    def _handshake(self, near, far):
        """Passes it on; source, target and index of the hello."""
        try:
            self._pass_frame(near, frame(far))
            said = frame(near)
            self._pass_frame(far, said)
            self._pass_frame(near, frame(far))
        except (OSError, EOFError):  # nobody there, or not of this job
            near.close()
            far.close()
            raise
        _, _, _, source, target, index, _ = HELLO.unpack_from(said)
        return source, target, index

    def _pass_frame(self, to, data):
        self.recorded += data
        to.sendall(LENGTH.pack(len(data)) + data)

    def _relay(self, near, far, flow):
        self._relayed.append((flow, near, far))
        there = (near, far, flow)
        back = (far, near, Flow(flow.source, flow.target, flow.index, True))
        for work in (there, back):
            threading.Thread(target=self._pump, args=work, daemon=True).start()

    def _pump(self, source, target, flow):
        offset = 0
        try:
            while data := source.recv(1 << 16):
                if flow.index < 0:
                    self.recorded += data
                target.sendall(self._meddle(flow, offset, data))
                offset += len(data)
            target.shutdown(socket.SHUT_WR)
        except (CutError, OSError):
            for sock in (source, target):
                with suppress(OSError):
                    sock.shutdown(socket.SHUT_RDWR)


def exactly(sock, size):
    """So many bytes."""
    data = b""
    while len(data) < size:
        part = sock.recv(size - len(data))
        if not part:
            raise EOFError
        data += part
    return data


def frame(sock):
    """The next frame of a handshake, or of start-up."""
    return exactly(sock, *LENGTH.unpack(exactly(sock, LENGTH.size)))


class Fault:
    """Something done once to a connection, at an offset; `when` it was, or None."""

    def __init__(self, source, target, index, back, at, act):
        self._flow = Flow(source, target, index, back)
        self._at, self._act = at, act
        self.when = None

    def __call__(self, flow, offset, data):
        if flow != self._flow or self.when or not offset <= self._at < offset + len(data):
            return data
        self.when = time.time()
        return self._act(data, self._at - offset)


def flip(data, place):
    """The same with one bit changed."""
    changed = bytearray(data)
    changed[place] ^= 0x10
    return bytes(changed)


def cut(_data, _place):
    """Closes the connection."""
    raise CutError


def hold(seconds):
    """Passes on what comes later."""

    def act(data, _):
        time.sleep(seconds)
        return data

    return act
