"""How processes of a job have ended, by what they, their launchers and the kernel write.

Errors that only follow from another rank's end are left out: aborted communicators, connections
that were closed, and the signals by which launchers and watchdogs end what is left.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator
from types import MappingProxyType
from typing import Final, Literal, NamedTuple

from .bare import bare, headless, plain, rank_of
from .nccl_log import Line

Cause = Literal["memory", "killed", "crashed", "raised", "xid", "sxid", "left"]
KEPT: Final = 10**4
"""Ends that are kept."""
WORDS: Final = (b"Error", b"oom_kill", b"oom-kill", b"Out Of Memory", b"on signal", b"NVRM: Xid",
                b"SXid", b"exitcode", b"Exception", b"Traceback (", b"Killed",
                b"Segmentation fault", b"Bus error", b"exit code", b"Exit code", b"return code",
                b"terminated with", b"EXIT STRING", b"KILLED BY", b"memory limit", b"died with",
                b"exit status", b"Process name: ", b"exitCode", b"Exit Code",
                b"Signal: ",
                b"status code")  # fmt: skip
"""One of which stands in every line that tells an end."""
_NCCL: Final = b"CCL INFO "
"""What lines have, of which a log may hold millions, and which tell no end."""
_RANK: Final = re.compile(
    r"\[rank(?:: )?(\d{1,7})\]|^\s*(\d{1,7}): |\brank (\d{1,7})\b|\btasks? (\d{1,7})[:,-]|"
    r"^Process (\d{1,7}) exit with"
)
_PREFIXED: Final = re.compile(r"\[rank\d{1,7}\]:")
_RAISED: Final = re.compile(
    r"^\s*(?P<name>(?:[A-Za-z_]\w{0,60}\.){0,8}[A-Z]\w{0,60}(?:Error|Exception))"
    r"(?:: ?(?P<said>.*)|$)"
)
_SIGNAL: Final = re.compile(
    r"exitcode *: *-(\d{1,2})\b|exited on signal (\d{1,2})\b|Signal (\d{1,2}) \(SIG|"
    r"return code = -(\d{1,2})\b|terminated with code -(\d{1,2})\b|"
    r"KILLED BY SIGNAL: (\d{1,2})\b|EXIT STRING: [\w ]{1,40}\(signal (\d{1,2})\)|"
    r"terminated with signal (SIG[A-Z]{2,6})|\bSignal: [A-Z][a-z ]{1,30} \((\d{1,2})\)|"
    r"died with <Signals\.(SIG[A-Z]{2,6})"
)
_NAMED: Final = re.compile(
    r"(?:\btasks? [\d,-]+: |\bline \d+: +\d+ |Fatal Python error: )"
    r"(Killed|Segmentation fault|Bus error)"
)
_CODES: Final = MappingProxyType({
    "Killed": 9, "Segmentation fault": 11, "Bus error": 7, "SIGKILL": 9, "SIGSEGV": 11, "SIGBUS": 7,
    "SIGABRT": 6, "SIGFPE": 8, "SIGILL": 4, "SIGTERM": 15, "SIGINT": 2, "SIGHUP": 1,
})  # fmt: skip
_LEFT: Final = re.compile(
    r"exitcode *: *([1-9]\d{0,2})\b|Exited with exit code ([1-9]\d{0,2})\b|"
    r"return code = ([1-9]\d{0,2})\b|terminated with (?:exit )?code ([1-9]\d{0,2})\b|"
    r"returned non-zero exit status ([1-9]\d{0,2})\b|[Ee]xit ?[Cc]ode: +([1-9]\d{0,2})\b|"
    r"\bexit with status code ([1-9]\d{0,2})\b"
)
_LOCAL: Final = re.compile(
    r"\blocal_rank[:=] *(\d{1,7})\b|\bprocess (\d{1,7}) terminated with|"
    r"-- Process (\d{1,7}) terminated with the following"
)
_NAME: Final = re.compile(r"Process name: \[\[\d{1,9},\d{1,9}\],(\d{1,7})\]")
_TASKS: Final = re.compile(r"\btasks ([\d,-]{1,200}): (?:Killed|Exited|Out Of|Segm|Bus)")
_SPAN: Final = re.compile(r"(\d{1,7})(?:-(\d{1,7}))?")
_TASKS_MOST: Final = 1000
"""Ranks of a range that are named."""
_XID: Final = re.compile(r"NVRM: Xid \((?:PCI:)?([\w:.]+)\)?: (\d{1,4})")
_SXID: Final = re.compile(r"(\S*nvswitch\d*): SXid \((?:PCI:)?([\w:.]+)\): (\d{1,6}),? ?(.{0,120})")
_OOM: Final = re.compile(r"oom[-_]kill|Out Of Memory\b|ut of memory: Killed process \d")
_OWN_RANK: Final = re.compile(r"^\s*(?:\[[^\]]*\]:\s*)?rank *: *(\d{1,7})\b")
_FOLLOWS: Final = re.compile(
    r"has inconsistent 0 params|"
    r"DistBackendError|DistNetworkError|DistStoreError|ChildFailedError|SignalException|BrokenPipe|"
    r"ConnectionReset|Connection (?:closed|reset)|closed by peer|NCCL (?:error|communicator)|"
    r"[Cc]ollective op|between collectives|monitoredBarrier|[Tt]imed? ?out|TimeoutError|"
    r"aborted|Process group|gloo|"
    r"HTTPError|Process(?:Raised|Exited)Exception|CalledProcessError|EngineDeadError|"
    r"Engine core init|ActorDiedError|RayActorError|RayTaskError|HorovodInternalError|"
    r"nccl\w{3,30}Error|NCCL_ERROR_|nccl[A-Z]\w{2,40}(?:\(.{0,80}\))? failed|"
    r"NCCL (?:operation|failure)|unhandled (?:cuda|system) error"
)
_NEAR: Final = 300
"""Lines from a traceback's head to its error, at most."""
_ABORT: Final = 6
"""The signal by which a process ends itself: a watchdog's, or an assertion's."""
_CRASHES: Final = (4, 7, 8, 11)
_BY_SIGNAL: Final = 128
"""Exit codes from here on are those of shells and containers: the signal is the rest."""
_BEFORE: Final = 40
"""Lines before a traceback by whose likes it is seen that the program goes on behind it."""
_ON: Final = 3
"""Such lines behind it that show it."""
_DIGITS: Final = re.compile(r"\d+")


class End(NamedTuple):
    """A process that has ended.

    Attributes:
        rank: None if it is not told.
        cause: "memory" of a card, "killed" (signal 9, or by the kernel for want of memory),
            "crashed" (a signal such as 11), "raised" (an exception), "xid" (a card's error), "sxid"
            (an NVSwitch's) or "left" (an exit code, which its launcher tells and nothing else).
        code: of the signal or the Xid; 0 for others.
        said: the error in its own words.
        line: which tells it.
        local: its number on its host; None if it is not told.
        first: whether the launcher names it as the first to end.
        went_on: whether the text goes on behind an exception as it did before.
        alone: whether it is only an exception's name and words, without a traceback before it.
    """

    rank: int | None
    cause: Cause
    code: int
    said: str
    line: Line
    local: int | None = None
    first: bool = False
    went_on: bool = False
    alone: bool = False


def read_ended_lines(lines: Iterable[bytes], file: str = "") -> list[End]:
    """The ends that lines of a file tell, which are not held."""
    found: list[End] = []
    reported: int | None = None
    local: int | None = None
    head, first = -_NEAR, False
    before: deque[bytes] = deque(maxlen=_BEFORE)
    unsaid = -1
    going = _Going()
    for number, raw in enumerate(lines, 1):
        if _NCCL in raw:
            continue
        if b"rank " in raw and (own := _OWN_RANK.match(raw[:200].decode("utf-8", "replace"))):
            reported = int(own[1])  # of torchrun's report, whose lines are of one rank
        first = first or b"Root Cause (first" in raw
        if unsaid >= 0 and raw.strip():  # what is wrong stands in the next line
            said = f"{found[unsaid].said} {bare(raw).strip()}"
            found[unsaid], unsaid = found[unsaid]._replace(said=said[:300]), -1
        if len(found) < KEPT and any(map(raw.__contains__, WORDS)):
            whole = plain(raw)
            text = headless(whole)
            if named := _NAME.search(text):
                reported = int(named[1])  # of mpirun's, whose code stands in the next line
            if here := _LOCAL.search(text):
                local = int(next(filter(None, here.groups())))
            if "Traceback (" in text:
                head = number
                going.start(before)
            near = number - head < _NEAR
            rank = _rank(whole, raw, raised=bool(_RAISED.match(text)))
            for end in _ends(text, Line(number, text.strip()[:400], file), near, whole):
                who = reported if rank is None and _of_report(text) else rank
                found.append(end._replace(rank=who, local=local, first=first))
                found += [found[-1]._replace(rank=other) for other in _others(text, who)]
                local = None
                unsaid = len(found) - 1 if end.said.endswith(":") else -1
                if end.alone:
                    going.start(before)
                if end.cause == "raised" and not _PREFIXED.search(whole):
                    going.raised(len(found) - 1)
        elif going.sees(raw):
            found[going.at] = found[going.at]._replace(went_on=True)
        before.append(raw)
    return found


def _full(raised: re.Match[str]) -> bool:
    """Whether it is a card's memory that was full, which needs no traceback to be believed."""
    return "OutOfMemory" in raised["name"] or "out of memory" in (raised["said"] or "").lower()


class _Going:
    """Whether a text goes on behind an exception that somebody may have caught."""

    def __init__(self) -> None:
        self.at, self._likes, self._seen = -1, set[str](), 0

    def start(self, before: Iterable[bytes]) -> None:
        """A traceback begins, behind these lines."""
        self.at, self._likes = -1, {_likeness(raw) for raw in before} - {""}

    def raised(self, at: int) -> None:
        """Its exception, which is the end of that number."""
        self.at, self._seen = at, 0

    def sees(self, raw: bytes) -> bool:
        """Whether this line is the one that shows it."""
        if self.at < 0 or not self._likes or _likeness(raw) not in self._likes:
            return False
        self._seen += 1
        return self._seen == _ON


def _likeness(raw: bytes) -> str:
    """What lines of one kind have in common: their first words, without numbers."""
    words = _DIGITS.sub("#", plain(raw[:200])).split()
    return " ".join(words[:3]) if "#" in "".join(words) else ""


def _rank(whole: str, raw: bytes, raised: bool) -> int | None:
    """As a head says, or a launcher's words; an exception may name any rank in its own."""
    if (head := rank_of(raw)) is not None or raised:
        return head
    told = _RANK.search(whole)
    return int(next(filter(None, told.groups()))) if told else None


def _others(text: str, rank: int | None) -> Iterable[int]:
    """Further ranks that a line of srun names, such as tasks 8-15."""
    tasks = _TASKS.search(text)
    for low, high in _SPAN.findall(tasks[1]) if tasks else ():
        last = min(int(high or low), int(low) + _TASKS_MOST)
        yield from (n for n in range(int(low), last + 1) if n != rank)


def _of_report(text: str) -> bool:
    return "exitcode" in text or "Exit code" in text


def _ends(text: str, line: Line, near: bool, whole: str) -> Iterator[End]:
    """At most one, whose rank is not told yet; `near` is whether a traceback is."""
    raised = _RAISED.match(text)
    if xid := _XID.search(text):
        yield End(None, "xid", int(xid[2]), f"{xid[1]}: Xid {xid[2]}", line)
    elif sxid := _SXID.search(text):
        yield End(None, "sxid", int(sxid[3]), f"{sxid[2]}: SXid {sxid[3]}, {sxid[4]}", line)
    elif (signal := _SIGNAL.search(text)) or (signal := _NAMED.search(text)):
        word = next(filter(None, signal.groups()))
        yield from _signalled(_CODES.get(word) or int(word), line)
    elif raised is not None and _FOLLOWS.search(raised[0]) is None:
        memory = _full(raised)
        said = f"{raised['name']}: {raised['said']}" if raised["said"] else raised["name"]
        alone = not near and not _PREFIXED.search(whole) and not memory
        if raised["said"] or not alone:
            yield End(None, "memory" if memory else "raised", 0, said[:200], line, alone=alone)
    elif left := _LEFT.search(text):
        code = int(next(filter(None, left.groups())))
        if code > _BY_SIGNAL:
            yield from _signalled(code - _BY_SIGNAL, line)
        else:
            yield End(None, "left", code, f"exit code {code}", line)
    elif _OOM.search(text):
        yield End(None, "killed", 9, "out of memory of the host", line)


def _signalled(code: int, line: Line) -> Iterator[End]:
    if code == 9 or code in _CRASHES:
        yield End(None, "killed" if code == 9 else "crashed", code, f"signal {code}", line)
    elif code == _ABORT:
        yield End(None, "left", code, f"signal {code} (SIGABRT)", line)
