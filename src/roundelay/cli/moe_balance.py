"""What `roundelay moe bench` says of the busiest card, without redundant experts and with them."""

from __future__ import annotations

from typing import Any

from ..moe.balance import Balance
from ..units import format_time
from .base import say
from .output import table


def entries(found: list[Balance]) -> list[dict[str, Any]]:
    """As JSON."""
    return [
        {
            "redundant": each.load.redundant,
            "slots": each.slots,
            "tokens_mean": each.mean,
            "tokens_max": each.most,
            "time_us": {f.scheme: sum(f.times) * 1e6 for f in each.figures},
        }
        for each in found
    ]


def told(rows: list[dict[str, Any]]) -> list[str]:
    """For people."""
    schemes = list(rows[0]["time_us"])
    head = [say(h) for h in ("experts", "slots", "tokens", "busiest card", "of the mean")]
    lines = [
        [
            say("each once") if row["redundant"] is None
            else say("{count} more slots, by load", count=row["redundant"]),
            str(row["slots"]), f"{row['tokens_mean']:,.0f}", f"{row['tokens_max']:,.0f}",
            f"{row['tokens_max'] / row['tokens_mean']:.2f}",
            *(format_time(row["time_us"][scheme] * 1e-6) for scheme in schemes),
        ]
        for row in rows
    ]  # fmt: skip
    return [
        say("Tokens of a card's experts, each counted for each of them; and the time there and "
            "back, for the slowest card:"),
        "",
        table([*head, *schemes], lines, right="bcdefgh"),
    ]  # fmt: skip
