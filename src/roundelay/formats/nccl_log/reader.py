"""Lines of a log, one by one: a file of any length is read without holding it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import BinaryIO, Final

from ..plain import RAW_ESCAPES
from .grammar import KEPT, SAYS, At, call, choice, edge, paths, search, text_of, variable
from .record import Failed, Line, NcclLog, Thread, Warned

LONGEST: Final = 2**16
"""Bytes of a line; what is longer is read as several."""
THREADS: Final = 2**17
"""Threads that are told apart."""
HEADS: Final = 2**16
_HEAD: Final = re.compile(rb"([\w.\-]*):(\d{1,15}):(\d{1,15})(?: \[(-?\d{1,15})\])?\s*$")
_SOURCE: Final = re.compile(
    rb"(?:^|\s)([\w/.\-]+\.(?:cc|h|cpp|cu|hpp)(?::\d+)?)(?: \(\w+\))?:?\s*$"
)
_VERSION: Final = re.compile(rb"([NR]CCL) version:? *(\d\S*)")
_ROW: Final = re.compile(
    rb"^(?:\[\d+\])?\s+(\d{1,15}(?:\.\d{1,15})?)\s+(\d{1,15}\.\d{1,15})\s+(\d{1,15}\.\d{1,15})\s+(?:\d+|N/A)\b"
)
_VARYING: Final = re.compile(r"0x[0-9a-f]+|\d+")
_OLD: Final = re.compile(
    rb"^(.*?:\d{1,15}:\d{1,15} \[-?\d{1,15}\] (?:\S{1,200}:\d{1,9} )?|"
    rb".{0,200}?\[-?\d{1,15}\] [\w/.-]{1,200}\.(?:cc|cu|h):\d{1,9} )((?:INFO|WARN) .*)",
    re.S,
)
"""A line of versions before 2.4, which do not say NCCL."""
_LAST: Final = re.compile(rb"Last error:\s*$")
"""Before the text of a warning where torch has written it without the rest of the log."""
_LAST_HERE: Final = re.compile(rb"Last error: *([^\s\\].{8,600})")
"""The same where the text stands behind it in the line."""
_RANKED: Final = re.compile(rb"^\d{1,7}: ")
_MARK: Final = re.compile(rb"^[^\w\n]*(?:\[\w+\]:)?\s*")
_NOTED: Final = (
    b"P2P is disabled", b"NVLS multicast", b"ncclMaxSharedMem", b"Topology detection",
    b"[Service thread] Connection closed", b"Call to connect returned", b"socketPollConnect",
    b"Could not enable P2P", b"Failed to open libibverbs", b"NET/Plugin: Failed to find",
    b"NET/Plugin : No plugin", b"NET/Plugin: No plugin", b"NET/Plugin: Could not find",
    b"Unable to load libnccl-net", b"NET/Plugin : Plugin load", b"GPU Direct RDMA Disabled",
    b"CollNet currently", b"CollNet is not", b"Communicator has ", b"Could not open XML topology",
    b"RAS failed to establish", b"Failed to bind NVLink SHARP", b"TUNER/Plugin: Could not",
    b"DMA_BUF_SUPPORT", b"CONFIG_DMABUF_MOVE_NOTIFY and", b"Current version of ROCm", b"Dmabuf",
    b"TUNER/Plugin: Failed",
)  # fmt: skip
"""Beginnings of information that weighs as much as a warning."""
_NO_DEVICE: Final = (b"NET/IB : No device", b"NET/IB : No module",
                     b"NET/IB : GPU Direct RDMA Disabled")  # fmt: skip
_BACK: Final = re.compile(rb"(\S{1,300}\.(?:cc|h|cpp|cu):\d{1,9})(?: \(\w+\))? -> (\d{1,3})\b")
"""A line of the way back from a failure, the innermost first."""
_RESULT: Final = re.compile(
    rb"\bnccl(UnhandledCuda|System|Internal|InvalidArgument|InvalidUsage|Remote)Error\b|"
    rb"(?:NCCL|RCCL|Nccl|nccl)[^\n]{0,300}?(unhandled cuda error|unhandled system error|"
    rb"remote process exited)|"
    rb"(?:NCCL|RCCL|Nccl|nccl)[^\n]{0,150}?(?:[Ee]rror|ERROR|fail|:)[^\n]{0,99}?(internal error|"
    rb"invalid argument|invalid usage)"
)
_FAILURE: Final = re.compile(
    rb"(?:Cuda|CUDA|HIP) failure:? [^'\n]{0,120}'[^'\n]{1,200}'|libibverbs: Warning: .{1,200}|"
    rb"(?:CUDA|Cuda|HIP)(?: driver| runtime)? error\b:? ?.{1,200}|"
    rb"\b(?:(?:cuda|hip)Error(?:Illegal|Launch|Invalid|Memory|No[DKB]|Init|System|Insufficient|Peer|"
    rb"Device|Unknown|Not|E[Cc][Cc]|Nvlink|Hardware|Misaligned|Assert|Mps|Out|Stream|Shared|Operating|"
    rb"Context|Cudart|TooMany|Compat)|CUDA_ERROR_[A-Z])\w{1,40}\b.{0,100}|"
    rb"\bError 80[234]: .{1,100}|"
    rb"Transport retry count exceeded.{0,80}|no usable transports/devices.{0,80}|"
    rb"(?:Unresponsive re|Unreachable re|UNDELIVERABLE).{1,160}|GDR driver version.{1,80}|"
    rb"(?:Memory access fault|HW Exception) by GPU.{1,200}|"
    rb"Cannot re-initialize CUDA in forked.{0,60}|"
    rb"peer access is not supported between.{0,40}|CUBLAS_STATUS_\w{1,40}|"
    rb"(?:CUDA|HIP) failure \d{1,4}: .{1,200}|Expected \d+ threads to join the rendezvous.{1,80}|"
    rb"submitted to be reduced, gathered or broadcasted by subset|"
    rb"CUDA unknown error.{0,80}|Please set max locked memory.{0,80}|"
    rb"gdr_open failed|undefined symbol: p?nccl\w+|"
    rb"HSA_STATUS_ERROR\w{0,60}|"
    rb"(?<=may be unrelated\) ').{1,400}(?=')|NET/(?:IB|OFI|Socket)\w* ?: ?(?!Using|\d)\w.{1,300}|"
    rb"Function: \w{1,60} Line: \d{1,9}: (NET/OFI (?!Running|Setting|Using|Selected)\w.{1,300})|"
    rb"Duplicate GPU detected.{1,200}|NET/OFI Unexpected number of .{1,120}|"
    rb"Failed to bind NVLink SHARP.{1,160}|all the NVSwitch multicast .{1,80}|"
    rb"NCCL EP timeout for .{1,120}|UCX +ERROR +failed to (?:insert region|reg).{0,160}|"
    rb"Call to ibv_\w{1,40} failed.{0,200}"
)
"""What NCCL or a library below it says, in a line of another program."""
_SAYING: Final = re.compile(
    rb"failure|may be unrelated|Duplicate GPU|NET/|ibv|nccl|Nccl|CCL|UDA|uda [eE]|HIP |cudaE|hipE|"
    rb"Error 80|etry count|no usable t|Unre|UNDEL|gdr|GDR|HSA_S|access fault|n by GPU|peer acc|"
    rb"CUBLAS|rendezvous|by subset|locked mem|UCX|NVLink SHARP|multicast"
)
"""What a line has that may say either: one quick look, for most lines say neither."""
LONG_BAR: Final = 400
_UNMOVED: Final = re.compile(rb"\b0%\|[^|]{0,300}\| 0/[1-9]\d{0,14} \[")
"""A progress bar of which nothing is done."""
_TREE: Final = b"=== System"


def lines_of(file: BinaryIO) -> Iterator[bytes]:
    """The lines of a file; a longer one than `LONGEST` comes in parts."""
    return iter(lambda: file.readline(LONGEST), b"")


class Reader:
    """Takes lines one by one, of the file that they are of."""

    def __init__(self, file: str = "") -> None:
        self.log, self._file = NcclLog(), file
        self._heads: dict[bytes, Thread] = {}
        self._trees: dict[str, Thread | None] = {}
        self._told = False

    def read(self, lines: Iterable[bytes]) -> NcclLog:
        """Take all lines."""
        take, number, end_of = self._take, 0, b""
        for number, raw in enumerate(lines, 1):
            end_of = raw if len(raw) > 2 else end_of
            at = raw.find(b"NCCL ")
            if at < 0:
                self._other(number, raw)
                continue
            if raw.find(b"\x1b") >= 0:
                raw = RAW_ESCAPES.sub(b"", raw)
                at = raw.find(b"NCCL ")
            while at >= 0:
                behind = raw.find(b"NCCL INFO ", at + 5)
                if behind < 0:
                    take(number, raw, at, len(raw))
                    break
                end = self._start(raw, at, behind)
                take(number, raw, at, end)
                raw, at = raw[end:], behind - end
        if _UNMOVED.search(end_of[-LONG_BAR:].rsplit(b"\r", 1)[-1].rstrip()):
            self.log.standing = Line(number, text_of(end_of[-LONG_BAR:]).strip(), self._file)
        self.log.lines = number
        return self.log

    def _start(self, raw: bytes, at: int, behind: int) -> int:
        """Where the second of two lines that run into one another begins."""
        head = _HEAD.search(raw, at, behind)
        if head is None:
            return behind
        host, known = head[1], {thread.host.encode() for thread in self.log.threads.values()}
        if host in known:
            return head.start()
        tail = max((name for name in known if name and host.endswith(name)), key=len, default=host)
        return head.start() + len(host) - len(tail)  # what ran into it is not of the name

    def _other(self, number: int, raw: bytes) -> None:
        """A line of somebody else, or of an old version; a bare row of nccl-tests is kept."""
        if self._told and raw.strip():
            self._told = False
            self._heard(number, _MARK.sub(b"", raw).strip(), raw)
            return
        self._told = self._told or _LAST.search(raw) is not None
        if b"] " in raw and (old := _OLD.match(raw)) is not None:
            self._take(number, old[1] + b"NCCL " + old[2], len(old[1]), len(old[0]) + 5)
            return
        self._ended(number, raw)
        self.log.others += 1
        if len(self.log.measured) < KEPT and (row := _ROW.match(raw)):
            line = Line(number, text_of(raw), self._file)
            self.log.measured.append((float(row[1]), float(row[2]), line))

    def _take(self, number: int, raw: bytes, at: int, end: int) -> None:
        level = raw[at + 5 : at + 10]
        if level == b"versi":
            self._version(number, raw, at)
            return
        if level not in (b"INFO ", b"WARN ", b"TRACE"):
            self.log.others += 1
            self._ended(number, raw)
            return
        thread = self._heads.get(raw[:at])
        if thread is None:
            thread = self._thread(raw[:at])
        body = raw[at + 10 : end]
        if level == b"WARN ":
            self._warned(number, raw[:at], body.strip(), thread)
        elif level == b"INFO ":
            self._says(number, raw, body.rstrip(), thread)

    def _says(self, number: int, raw: bytes, body: bytes, thread: Thread) -> None:
        space = body.find(b" ")
        word = body[:space] if space > 0 else body
        say = SAYS.get(word)
        if word == b"NET/IB" and body.startswith(_NO_DEVICE):
            self._note(number, raw, body, thread)
        elif say is not None:
            say(self.log, thread, body, At(number, raw, self._file))
        elif word[-1:] == b":" and b" -> Algo " in body:
            choice(self.log, thread, body, At(number, raw, self._file))
        elif word[-1:] == b":" and b" opCount " in body:
            call(self.log, thread, body, At(number, raw, self._file))
        elif space == 0 and body.startswith(b" Pattern "):
            search(self.log, thread, body.lstrip(), At(number, raw, self._file))
        elif space == 0 and body.find(b" : NET/", 0, 12) > 0:
            self.log.nets = True
        elif space == 0 or body.startswith((_TREE, b"CPU/", b"GPU/")):
            self._tree(number, raw, body, thread)
        elif b"Bytes -> " in body:
            choice(self.log, thread, body, At(number, raw, self._file))
        elif b"set by environment" in body:
            variable(self.log, thread, body, At(number, raw, self._file))
        elif b"CCL version" in body:
            self._version(number, raw, 0)
        elif body.startswith(_NOTED):
            self._note(number, raw, body, thread)
        elif thread.failed is None and b" -> " in body and (back := _BACK.match(body)):
            line = Line(number, text_of(raw), self._file)
            thread.failed = Failed(text_of(back[1]), int(back[2]), line)

    def _ended(self, number: int, raw: bytes) -> None:
        """What NCCL or a library below it has said, and what its call ended with, by others."""
        if _SAYING.search(raw) is None:
            return
        if b"Last error: " in raw and (here := _LAST_HERE.search(raw)) is not None:
            self._heard(number, _RANKED.sub(b"", here[1]).strip(), raw)
        elif (failure := _FAILURE.search(raw)) is not None:
            self._heard(number, (failure[1] or failure[0]).strip(), raw)
        if b"nccl" in raw or b"CCL" in raw or b"Nccl" in raw:
            for found in _RESULT.findall(raw[:LONGEST]):
                name = text_of(next(filter(None, found)))
                self.log.results.setdefault(name, Line(number, text_of(raw), self._file))

    def _note(self, number: int, raw: bytes, body: bytes, thread: Thread) -> None:
        line = Line(number, text_of(raw), self._file)
        _keep(self.log.noted, Warned("", text_of(body), thread.host, line, warns=False))

    def _tree(self, number: int, raw: bytes, body: bytes, thread: Thread) -> None:
        """The tree of the system, of the first thread of a host that prints it; paths."""
        at = At(number, raw, self._file)
        if body.startswith(_TREE):
            owner = self._trees.setdefault(thread.host, thread)
            if owner is thread and self.log.systems.get(thread.host):
                self._trees[thread.host] = None  # its second communicator
            self.log.systems.setdefault(thread.host, [])
        elif body.startswith(b"GPU/"):
            paths(self.log, thread, body, at)
        elif self._trees.get(thread.host) is thread:
            edge(self.log, thread, body, at)

    def _version(self, number: int, raw: bytes, at: int) -> None:
        found = _VERSION.search(raw, max(at - 1, 0))
        if found and len(self.log.versions) < KEPT:
            name = f"{found[1].decode()} {text_of(found[2])}"
            self.log.versions.setdefault(name, Line(number, text_of(raw), self._file))

    def _thread(self, head: bytes) -> Thread:
        """The thread that a line's head names; a head with a time differs in every line."""
        plain = head.rstrip()
        found = _HEAD.search(plain) or _HEAD.search(_SOURCE.sub(b"", plain))
        key = found[0].strip() if found else b""
        thread = self.log.threads.get(key)
        if thread is None:
            host, pid, device = (found[1], found[2], found[4]) if found else (b"", b"", None)
            thread = Thread(text_of(host), text_of(pid), int(device) if device else None)
            if len(self.log.threads) < THREADS:
                self.log.threads[key] = thread
        if len(self._heads) < HEADS:
            self._heads[head] = thread
        return thread

    def _warned(self, number: int, head: bytes, body: bytes, thread: Thread) -> None:
        source = _SOURCE.search(head)
        place, text = text_of(source[1]) if source else "", text_of(body)
        line = Line(number, text_of(head + b"NCCL WARN " + body), self._file)
        _keep(self.log.warned, Warned(place, text, thread.host, line))

    def _heard(self, number: int, body: bytes, raw: bytes) -> None:
        """What another program repeats of NCCL, or a library below it says."""
        line = Line(number, text_of(raw), self._file)
        _keep(self.log.warned, Warned("", text_of(body), "", line))


def _keep(kept: dict[tuple[str, str], tuple[int, Warned]], said: Warned) -> None:
    """Count what is said again but for its numbers."""
    key = (said.place, _VARYING.sub("#", said.text))
    count, first = kept.get(key, (0, said))
    if count or len(kept) < KEPT:
        kept[key] = count + 1, first
