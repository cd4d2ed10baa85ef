"""Participants that exchange data: the memory of their node, and connections to other nodes."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import msgspec

from .._native import Endpoint, Node, attachable, own_address
from ..errors import RoundelayError
from .environment import switch
from .machine import available_bytes, boot_identity
from .session import Session

ARENA: Final = 4 << 20
"""Bytes that a participant may show to its node at once; ROUNDELAY_ARENA is another number.

2.5 MiB were as good as 0.3 in a trial, and less than two slices of 128 KiB a reader is too few.
"""
CONNECTIONS: Final = 2
"""TCP connections for data with each peer of another node; ROUNDELAY_CONNECTIONS is another."""

LOG: Final = logging.getLogger("roundelay")

Exchange = Callable[[bytes], list[bytes]]
"""What every rank brings, in rank order."""


class _Card(msgspec.Struct, array_like=True):
    """What ranks tell one another about themselves."""

    pid: int
    fd: int
    address: int
    machine: str
    processors: list[int]
    checksum: bool


class Group:
    """The participants of one communicator: its ranks, and helpers that add (switches).

    Attributes:
        endpoints: those of this process, by participant.
        hosts: [participant], the rank whose process it lives in.
        names: of participants.
        crowded: whether more participants share its node's processors than there are of these;
            those of other nodes count where they are containers of the same machine.
        arena: bytes of an arena; less than asked for where memory is short.
        attach: whether all may read the memory of the others of their node.
    """

    EXCHANGES: Final = 4
    """Exchanges that the set-up takes."""

    def __init__(
        self,
        exchange: Exchange,
        session: Session,
        ranks: Sequence[int],
        me: int,
        hosts: Sequence[int],
        tag: str,
        collectives: Sequence[str],
        arena: int | None = None,
        names: Sequence[str] | None = None,
    ) -> None:
        """Set up, together with all other ranks.

        Args:
            exchange: an all-gather of small bytes among the group's ranks.
            session: the job.
            ranks: [rank of the group], its rank in the job.
            me: this process's rank in the group.
            hosts: [participant], the rank whose process it lives in: the rank itself, then
                those of the helpers.
            tag: a name that no other group of the job has.
            collectives: names, for messages.
            arena: bytes that a participant may show at once; without it, as ROUNDELAY_ARENA says.
            names: of the ranks, for messages; without it, by their numbers.
        """
        self._session, self._ranks, self._me = session, ranks, me
        self.hosts, self._tag = list(hosts), tag
        node_of = [session.members[r].node for r in ranks]
        near = [p for p, host in enumerate(hosts) if node_of[host] == node_of[me]]
        self._near = near
        leader = next(r for r in range(len(ranks)) if node_of[r] == node_of[me])
        asked = arena or _number("ROUNDELAY_ARENA", ARENA)
        # One more, for what is said about the exchange.
        self._connections = _number("ROUNDELAY_CONNECTIONS", CONNECTIONS) + 1
        self._checksum = switch("ROUNDELAY_CHECKSUM")
        node = Node.make(len(near), _affordable(asked, len(near))) if leader == me else None
        if node and node.arena < asked:
            LOG.warning(
                "there are %s bytes of shared memory for each rank's messages, not %s; large "
                "exchanges are slower. Give the job more memory",
                f"{node.arena:,}",
                f"{asked:,}",
            )
        mine = _Card(os.getpid(), node.fd if node else -1, own_address(), boot_identity(),
                     sorted(os.sched_getaffinity(0)), self._checksum)  # fmt: skip
        cards = [msgspec.msgpack.decode(c, type=_Card)
                 for c in exchange(msgspec.msgpack.encode(mine))]  # fmt: skip
        _check_checksum(cards)
        node = node or Node.open(cards[leader].pid, cards[leader].fd)
        own = [p for p, host in enumerate(hosts) if host == me]
        for p in own:
            node.claim(near.index(p))
        exchange(b"")
        node.populate()
        self.crowded = _crowded([cards[host] for host in hosts], near)
        home = _home([cards[hosts[p]] for p in near], session.local.index(session.rank),
                     len(session.local))  # fmt: skip
        self.arena = node.arena
        self.names = list(names or ()) or [self._name(p) for p in range(len(hosts))]
        self.endpoints = {
            p: Endpoint(node, near.index(p), p, self.names, list(collectives), self.crowded, home,
                        len(own) == 1)
            for p in own
        }  # fmt: skip
        exchange(b"")
        for endpoint in self.endpoints.values():
            for other in near:
                endpoint.meet(other, near.index(other))
        may = [c == b"y" for c in exchange(b"y" if self._may_attach(cards, near) else b"n")]
        self.attach = all(may)

    def _may_attach(self, cards: Sequence[_Card], near: Sequence[int]) -> bool:
        """Whether this process can read the memory of the others of its node."""
        if os.environ.get("ROUNDELAY_ATTACH", "1") == "0":
            return False
        pids = {cards[self.hosts[p]].pid for p in near} - {os.getpid()}
        return all(attachable(c.pid, c.address) for c in cards if c.pid in pids)

    def _name(self, participant: int) -> str:
        host = self.hosts[participant]
        if participant < len(self._ranks):
            return f"rank {participant}"
        return f"switch {participant - len(self._ranks)} (in rank {host})"

    def connect(self, participant: int, peers: Iterable[int]) -> None:
        """Connections of this process's rank with other ranks, who ask for the same."""
        endpoint = self.endpoints[participant]
        fresh = {self._ranks[p]: p for p in peers if p not in self._near and not endpoint.knows(p)}
        found = self._session.connect(fresh, self._tag, self._connections)
        for rank, sockets in found.items():
            endpoint.link(fresh[rank], [s.detach() for s in sockets], self._checksum)

    def connect_helpers(self, pairs: Iterable[tuple[int, int]]) -> None:
        """Connections of pairs of participants, one of each being a helper."""
        for a, b in sorted(pairs):
            for own, other in ((a, b), (b, a)):
                if own in self.endpoints and other not in self._near:
                    endpoint = self.endpoints[own]
                    if endpoint.knows(other):
                        continue
                    rank = self._ranks[self.hosts[other]]
                    purpose = f"{self._tag}:{a}:{b}"
                    found = self._session.connect([rank], purpose, self._connections)
                    endpoint.link(other, [s.detach() for s in found[rank]], self._checksum)

    def close(self) -> None:
        """Says farewell to the others."""
        for endpoint in self.endpoints.values():
            endpoint.close()


def _check_checksum(cards: Sequence[_Card]) -> None:
    other = next((r for r, card in enumerate(cards) if card.checksum != cards[0].checksum), None)
    if other is not None:
        ours, theirs = int(cards[0].checksum), int(cards[other].checksum)
        raise RoundelayError(
            f"ROUNDELAY_CHECKSUM is {ours} for rank 0 and {theirs} for rank {other}; expected the "
            "same for all ranks. Set it for all of them, or for none"
        )


def _crowded(cards: Sequence[_Card], near: Sequence[int]) -> bool:
    """See `Group`; `cards` of all participants, `near` being those of the node."""
    processors = {c for p in near for c in cards[p].processors}
    machine = cards[near[0]].machine
    sharing = [c for c in cards if c.machine == machine and not processors.isdisjoint(c.processors)]
    return len(sharing) > len(processors)


def _home(cards: Sequence[_Card], place: int, ranks: int) -> int:
    """The processor for one of a node's ranks, block by block, or -1 where theirs differ."""
    processors = cards[0].processors
    if any(c.processors != processors for c in cards):
        return -1
    return processors[place * len(processors) // ranks]


def _affordable(arena: int, participants: int) -> int:
    """The arena asked for, or what half of the memory left has room for."""
    free = available_bytes()
    return arena if free is None else max(64 << 10, min(arena, free // 2 // participants))


def _number(variable: str, default: int) -> int:
    text = os.environ.get(variable, "")
    if not text:
        return default
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise RoundelayError(f"{variable} is {text!r}; expected a whole number from 1 up")
    return value
