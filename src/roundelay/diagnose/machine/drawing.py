"""A machine as an SVG picture: NUMA nodes side by side, cards with their links, network cards."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from types import MappingProxyType
from typing import Final, NamedTuple

from ...formats.machine import PATHS, Card, Machine, Nic
from ...i18n import Translate, message
from ...show.draw import MARGIN, STYLE, label, num, tag, titled

WIDE, HIGH, GAP = 104.0, 40.0, 14.0
"""Of a box, and between two of them."""
SWITCH_Y, CARD_Y, NIC_Y = 24.0, 120.0, 250.0
"""Where the rows begin; direct links bow into the room above the cards."""
MOST: Final = 256
"""Ends that a picture has at most."""
_COLOURS: Final = MappingProxyType(
    {"PIX": "#009E73", "PXB": "#009E73", "C2C": "#009E73", "P2C": "#009E73", "PHB": "#E69F00",
     "NODE": "#E69F00", "SYS": "#D55E00"}
)  # fmt: skip
_LINK: Final = "#0072B2"


class _Place(NamedTuple):
    """Middle and upper edge of a box."""

    x: float
    y: float


def drawing(machine: Machine, translate: Translate, lang: str) -> str:
    """The picture; of larger machines the first `MOST` cards and network cards.

    Args:
        machine: what a file describes.
        translate: for its few words.
        lang: of them.
    """
    places, frames, width = _places(machine, translate)
    height = (NIC_Y if machine.nics else CARD_Y) + HIGH + 2 * MARGIN
    ends: tuple[Card | Nic, ...] = (*machine.cards, *machine.nics)
    parts = [tag("rect", x=0, y=0, width=width, height=num(height), rx=8, class_="rl-card"),
             *frames, *_links(machine, places, width), *_near(machine, places),
             *(_box(end, places[end.name]) for end in ends
               if end.name in places)]  # fmt: skip
    title = message("What is connected how").tell(translate)
    body = f"<title>{escape(title)}</title><style>{STYLE}</style>{''.join(parts)}"
    return tag("svg", body, xmlns="http://www.w3.org/2000/svg", lang=lang, role="img",
               viewBox=f"0 0 {num(width)} {num(height)}", width=num(width),
               height=num(height)) + "\n"  # fmt: skip


def _places(machine: Machine, translate: Translate) -> tuple[dict[str, _Place], list[str], float]:
    """Where each box is; the frames of NUMA nodes; and how wide all is."""
    ends: tuple[Card | Nic, ...] = (*machine.cards, *machine.nics)
    ends = ends[:MOST]
    at = {end.name: _node(machine, end) for end in ends}
    nodes = sorted(set(at.values()), key=lambda n: (n[0], n[1] is None, n[1] or 0))
    places: dict[str, _Place] = {}
    frames, x = [], MARGIN
    for host, numa in nodes:
        own = [end for end in ends if at[end.name] == (host, numa)]
        cards = [end for end in own if isinstance(end, Card)]
        nics = [end for end in own if isinstance(end, Nic)]
        wide = max(len(cards), len(nics), 1) * (WIDE + GAP) + GAP
        rows: tuple[tuple[Sequence[Card | Nic], float], ...] = ((cards, CARD_Y), (nics, NIC_Y))
        for row, y in rows:
            start = x + (wide - len(row) * (WIDE + GAP) + GAP) / 2
            for i, end in enumerate(row):
                places[end.name] = _Place(start + i * (WIDE + GAP) + WIDE / 2, y)
        unknown = message("NUMA node not known").tell(translate)
        text = unknown if numa is None else f"NUMA {numa}"
        if len({h for h, _ in nodes}) > 1:
            text = f"{message('host {number}', number=host).tell(translate)}, {text}"
        bottom = (NIC_Y if machine.nics else CARD_Y) + HIGH + MARGIN
        frames += [tag("rect", x=num(x), y=num(CARD_Y - GAP), width=num(wide),
                       height=num(bottom - CARD_Y + GAP), rx=6, class_="rl-band"),
                   label(x + 8, bottom - 11, text, 12, "start", "rl-soft")]  # fmt: skip
        x += wide + GAP
    return places, frames, x - GAP + MARGIN


def _node(machine: Machine, end: Card | Nic) -> tuple[int, int | None]:
    """Host and NUMA node; of a network card for which it is not told, those of a card near it."""
    if end.numa is not None or isinstance(end, Card):
        return end.host, end.numa
    ways = [(PATHS.index(way), card.host, card.numa) for card in machine.cards
            if (way := machine.way(card, end)) not in (None, "SYS")]  # fmt: skip
    return min(ways, key=lambda found: found[0])[1:] if ways else (end.host, None)


def _box(end: Card | Nic, place: _Place) -> str:
    about = end.model if isinstance(end, Card) else end.device
    rate = f"{end.rate:g} GB/s" if isinstance(end, Nic) and end.rate else ""
    small = " ".join(filter(None, ["" if about == end.name else about, rate])) or end.bus
    shape = tag("rect", x=num(place.x - WIDE / 2), y=num(place.y), width=num(WIDE),
                height=num(HIGH), rx=5, class_="rl-cell")  # fmt: skip
    lines = label(place.x, place.y + (13 if small else 20), end.name, 12, "middle")
    lines += label(place.x, place.y + 29, small[:18], 10, "middle", "rl-soft") if small else ""
    return titled(" ".join(filter(None, [end.name, about, end.bus, rate])), shape + lines)


def _line(path: str, colour: str, wide: float, title: str) -> str:
    shape = tag("path", d=path, fill="none", stroke=colour, stroke_width=num(wide))
    return titled(title, shape)


def _links(machine: Machine, places: Mapping[str, _Place], width: float) -> Iterator[str]:
    """NVLink or xGMI: to the switch above, or in bows from card to card."""
    by_bus = {end: card.name for card in machine.cards for end in (card.name, card.bus) if end}
    drawn = set[frozenset[str]]()
    switch = False
    for card in machine.cards:
        kind = "xGMI" if card.kind == "xgmi" else "NVLink"
        for end, count in card.links.items() if card.name in places else ():
            a = places[card.name]
            pair = frozenset((card.name, by_bus.get(end, "")))
            if end == "switch":
                switch = True
                yield _line(f"M{num(a.x)} {num(a.y)}V{num(SWITCH_Y + 28)}", _LINK, 3,
                            f"{card.name}: {kind} x{count}")  # fmt: skip
                yield label(a.x + 5, (SWITCH_Y + 28 + CARD_Y - GAP) / 2, f"x{count}", 10)
            elif len(pair) == 2 and pair not in drawn and by_bus.get(end) in places:
                drawn.add(pair)
                b = places[by_bus[end]]
                bow = CARD_Y - 24 - min(abs(b.x - a.x) / 5, 110)
                middle = f"{num((a.x + b.x) / 2)} {num(bow)}"
                path = f"M{num(a.x)} {num(a.y)}Q{middle} {num(b.x)} {num(b.y)}"
                yield _line(path, _LINK, 1 + min(count, 18) / 6,
                            f"{card.name} - {by_bus[end]}: {kind} x{count}")  # fmt: skip
    if switch:
        yield tag("rect", x=num(MARGIN), y=num(SWITCH_Y), width=num(width - 2 * MARGIN), height=28,
                  rx=5, class_="rl-cell")  # fmt: skip
        yield label(width / 2, SWITCH_Y + 14, "NVSwitch", 12, "middle")


def _near(machine: Machine, places: Mapping[str, _Place]) -> Iterator[str]:
    """Each card's nearest network cards, with the class of the way."""
    for card in machine.cards:
        near = machine.nearest(card) if card.name in places else None
        if near is None:
            continue
        way, nics = near
        a = places[card.name]
        ends = [nic for nic in nics[:4] if nic.name in places]
        for nic in ends:
            b = places[nic.name]
            path = f"M{num(a.x)} {num(a.y + HIGH)}L{num(b.x)} {num(b.y)}"
            title = f"{card.name} - {nic.name}: {way}"
            yield _line(path, _COLOURS.get(way, _LINK), 2, title)
        if ends:
            right = places[ends[0].name].x > a.x  # the text stands on the other side
            x, anchor = (a.x - 6, "end") if right else (a.x + 6, "start")
            yield label(x, a.y + HIGH + 12, way, 10, anchor)
