"""Where those wait who want to go on with this rank, until it comes to that."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Final

from .door import has_ended
from .members import Arrival, Member, decode_arrival, encode_failure
from .wire import Channel, ClosedError, Hello

REGROUP: Final = "roundelay:regroup"
"""The purpose of connections of ranks that want to go on with those that are left."""
JOINING: Final = "roundelay:joining"
"""The purpose of connections of processes that want to become ranks."""

Identity = tuple[str, int, int]


@dataclass
class Waiting:
    """Somebody who waits for a table, and until when."""

    arrival: Arrival
    channel: Channel
    until: float


class Room:
    """Ranks and newcomers that wait for a table, and connections of who has one already.

    Attributes:
        members: who may ask to go on; others were left out.
        ranks, newcomers: those who wait.
        later: connections of ranks that have been counted anew already.
    """

    def __init__(self, members: tuple[Member, ...]) -> None:
        self.members = members
        self.ranks: dict[Identity, Waiting] = {}
        self.newcomers: dict[Identity, Waiting] = {}
        self.later: list[tuple[Hello, Channel]] = []

    async def admit(self, purpose: str, channel: Channel) -> None:
        """Takes in who comes for one of the two purposes.

        Raises:
            DroppedError: it does not say who it is.
        """
        arrival = decode_arrival(await channel.receive())
        identity = arrival.member.identity
        place = self.newcomers if purpose == JOINING else self.ranks
        if purpose == REGROUP and identity not in {m.identity for m in self.members}:
            refuse(
                channel,
                f"rank {arrival.member.rank} was left out when the others went on, as it had not "
                "come in time; expected it to call shrink when they did. Start it anew, and let "
                "the others call grow",
            )
            return
        if identity in place:
            place[identity].channel.sock.close()
        place[identity] = Waiting(arrival, channel, time.monotonic() + arrival.wait)

    def prune(self) -> None:
        """Forgets who has gone."""
        for place in (self.ranks, self.newcomers):
            for identity, waiting in list(place.items()):
                if has_ended(waiting.channel.sock):
                    place.pop(identity).channel.sock.close()

    def empty(self, why: str | None = None) -> None:
        """Sends the ranks that wait away, with a reason where they need not come again."""
        for waiting in self.ranks.values():
            if why is None:
                waiting.channel.sock.close()
            else:
                refuse(waiting.channel, why)
        self.ranks.clear()

    def close(self) -> None:
        """Sends everybody away."""
        self.empty()
        for waiting in self.newcomers.values():
            refuse(waiting.channel, "the job has ended; expected one that goes on")
        for _, channel in self.later:
            channel.sock.close()


def refuse(channel: Channel, why: str) -> None:
    """Tells why, and closes."""
    try:
        channel.post(encode_failure(why))
    except ClosedError:
        pass
    finally:
        channel.sock.close()
