"""Where a call over the network waits, from the steps that NCCL's proxy tells its profiler."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ..finding import Figures

_STEPS: Final = ("RecvWait", "SendPeerWait", "SendGpuWait", "SendWait")
"""Steps of the proxy that are told (NCCL, ext-profiler/README.md)."""
_CALLS: Final = ("COLL", "P2P")
_SENT: Final = "SendWait"
MUCH: Final = 10.0
"""Times that other waits last longer, from which what is sent counts for little."""


def _at(pieces: Sequence[Mapping[str, Any]], kinds: Sequence[str], phase: str) -> list[float]:
    return [p["ts"] for p in pieces if p.get("cat") in kinds and p.get("ph") == phase
            and isinstance(p.get("ts"), int | float)]  # fmt: skip


def waited(pieces: Sequence[Mapping[str, Any]], figures: Figures) -> list[str]:
    """The longest step of each kind; that sending is little where the others last far longer."""
    open_: dict[tuple[object, ...], float] = {}
    longest: dict[str, float] = {}
    for piece in pieces:
        name, at = str(piece.get("name", "")), piece.get("ts")
        if piece.get("cat") != "NET" or not isinstance(at, int | float) or at <= 0:
            continue
        key = (name, str(piece.get("pid")), str(piece.get("tid")), str(piece.get("id")))
        if piece.get("ph") == "b":
            open_[key] = at
        elif key in open_:
            longest[name] = max(longest.get(name, 0.0), at - open_.pop(key))
    told = [f"{name} {longest[name]:.4g} us" for name in _STEPS if name in longest]
    if not told:
        return []
    figures["waits"] = ", ".join(told)
    reason = list[str]()
    if len(calls := _at(pieces, _CALLS, "b")) == 1:
        ended, proxies = _at(pieces, _CALLS, "e"), _at(pieces, ("PROXY",), "b")
        if len(ended) == 1 and ended[0] > calls[0] > 0:
            figures["took_us"] = ended[0] - calls[0]
            reason.append("From its begin to its end it takes {took_us} us.")
        if proxies and min(proxies) > calls[0] > 0:
            figures["before_us"] = min(proxies) - calls[0]
            reason.append("The proxy begins {before_us} us after the call.")
    reason += ["The longest single steps of the proxy: {waits}. RecvWait waits for data of the "
               "peer, SendPeerWait for room there, SendGpuWait for the card to fill what is sent, "
               "SendWait for what is sent to be through."]  # fmt: skip
    others = max(longest.get(name, 0.0) for name in _STEPS if name != _SENT)
    if 0 < MUCH * longest.get(_SENT, 0.0) < others:
        reason.append("So this rank waits for its peers or its card; what it sends itself is "
                      "through quickly, so the way out is not what takes the time.")  # fmt: skip
    return reason
