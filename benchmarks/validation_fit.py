"""Fit the constants of src/roundelay/simulate/constants.toml on the calibration rows.

Every form is linear in its constants, so each is a least-squares fit of relative errors, repeated
with less weight on rows that stay far off. Constants below 0 are left out.
"""

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from measured import Row

from roundelay import clusters
from roundelay.simulate import nccl
from roundelay.topology import Cluster

GENERATIONS = ("ampere", "hopper", "blackwell")
ROUNDS = {"all_reduce": 2, "all_gather": 1, "reduce_scatter": 1}
LL_BLOCK, PEER_BLOCK = 4096, 65536
ASYMPTOTE = 10
"""How often rows of 1 GiB and more count: there are few, and they alone show the full rate."""
NEAR = 0.03
"""Relative error below which rows weigh the same."""


@cache
def cluster(name: str) -> Cluster:
    """A machine by name."""
    return clusters.cluster(name)


class Fit(NamedTuple):
    """A form fitted on rows.

    Attributes:
        names: of its constants.
        values: us, or us a byte at 1 MB/s.
        rows: that it was fitted on.
        errors: predicted over measured, less 1, of each.
    """

    names: list[str]
    values: np.ndarray
    rows: list[Row]
    errors: np.ndarray

    def __getitem__(self, name: str) -> float:
        return float(self.values[self.names.index(name)]) if name in self.names else 0.0

    def line(self) -> str:
        """Errors in words."""
        low, high = np.percentile(abs(self.errors) * 100, (50, 90))
        return f"{len(self.rows)} rows, median {low:.1f} %, p90 {high:.1f} %"


def solve(design: np.ndarray, measured: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Least squares on relative errors, towards least absolute ones."""
    values, free = np.zeros(design.shape[1]), np.flatnonzero(design.any(axis=0))
    weight = 1 / measured
    for _ in range(60):
        wanted = (measured - known) * weight
        found = np.linalg.lstsq(design[:, free] * weight[:, None], wanted, rcond=None)[0]
        if (found < 0).any():
            free = free[found >= 0]
            continue
        values[:] = 0
        values[free] = found
        errors = abs((design @ values + known) / measured - 1)
        weight = 1 / measured / np.sqrt(np.maximum(errors, NEAR))
    return values


def fit(
    rows: Sequence[Row], features: Sequence[dict[str, float]], known: Sequence[float] = ()
) -> Fit:
    """Fit one form: a feature's value times its constant, summed, is the time less what is known.

    Args:
        rows: measured.
        features: of each row, by constant.
        known: us of each row's time that need no fitting; none, if empty.
    """
    names = sorted({name for each in features for name in each})
    design = np.array([[each.get(name, 0.0) for name in names] for each in features])
    measured = np.array([row.time_s * 1e6 for row in rows])
    given = np.array(known) if len(known) else np.zeros(len(rows))
    weights = np.array([ASYMPTOTE if row.size >= 1 << 30 else 1 for row in rows])
    values = solve(*(np.repeat(a, weights, 0) for a in (design, measured, given)))
    return Fit(names, values, list(rows), (design @ values + given) / measured - 1)


def line_us(row: Row, bytes: float) -> float:
    """Microseconds of bytes at a card's line rate."""
    return bytes / cluster(row.machine).inside.rate * 1e6


def ring_features(row: Row, protocol: str) -> dict[str, float]:
    """base + steps * inside + fill, wire and own chunk. LL128 starts as LL does."""
    name = cluster(row.machine).generation
    steps = ROUNDS[row.collective] * (row.cards - 1)
    chunk = row.size / row.cards
    found = {f"{name} inside": steps, "wire": line_us(row, chunk * steps)}
    if protocol != "LL128":
        found[f"{name} base"] = 1.0
    if protocol == "LL" and cluster(row.machine).inside.medium != "pcie":
        found[f"{name} fill"] = min(1.0, chunk / LL_BLOCK)
    if cluster(row.machine).inside.medium != "pcie":
        found["own"] = line_us(row, chunk)
    return found


def nvls_features(row: Row) -> dict[str, float]:
    """A start, wire and filling; on several nodes `nvls_start` gives the start."""
    cards = row.cards // row.nodes
    moved = line_us(row, row.size * (cards + 1) / cards)
    found = {"wire": moved, "fill": float(np.sqrt(moved))}
    return found if row.nodes > 1 else found | {"base": 1.0}


def nvls_start(row: Row) -> float:
    """Microseconds of starting and of hops between nodes."""
    machine = cluster(f"{row.machine}:{row.nodes}")
    made = nccl.predict(machine, row.collective, row.size, row.cards, "nvls_tree")
    return made.latency_s * 1e6


def peer_features(row: Row) -> dict[str, float]:
    """Grouped sends: a start, each peer, filling, wire and own chunk."""
    name = cluster(row.machine).generation
    chunk, peers = row.size / row.cards, row.cards - 1
    found = {
        f"{name} base": 1.0,
        f"{name} peer": peers,
        f"{name} fill": min(1.0, chunk / PEER_BLOCK),
        "wire": line_us(row, chunk * peers),
    }
    if cluster(row.machine).inside.medium != "pcie":
        found[f"{name} own"] = line_us(row, chunk)
    else:
        found.pop(f"{name} peer")
    return found


def grouped(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Rows of one node by what NCCL runs them with, and those of NVLS on several."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        machine = cluster(f"{row.machine}:{row.nodes}")
        made = nccl.predict(machine, row.collective, row.size, row.cards, row.algorithm)
        if row.nodes > 1 and made.algorithm != "nvls_tree":
            continue
        where = "pcie " if cluster(row.machine).inside.medium == "pcie" else ""
        found.setdefault(f"{where}{made.algorithm} {made.protocol}", []).append(row)
    return found


def all_fits(rows: Sequence[Row]) -> dict[str, Fit]:
    """Every form on the rows it is for."""
    found: dict[str, Fit] = {}
    by = grouped(rows)
    for where in ("", "pcie "):
        for protocol in ("LL", "LL128", "Simple"):
            some = by.get(f"{where}ring {protocol}", [])
            if protocol == "LL128":  # the one row of Blackwell is not enough
                some = [r for r in some if cluster(r.machine).generation != "blackwell"]
            if some:
                known = [_known(r, protocol, found) for r in some]
                found[where + protocol] = fit(
                    some, [ring_features(r, protocol) for r in some], known
                )
        some = by.get(f"{where}p2p LL", []) + by.get(f"{where}p2p Simple", [])
        if some:
            found[f"{where}p2p"] = fit(some, [peer_features(r) for r in some])
    if some := by.get("nvls Simple"):
        found["nvls"] = fit(some, [nvls_features(r) for r in some])
    if some := by.get("nvls_tree Simple"):
        starts = [nvls_start(r) for r in some]
        found["nvls_tree"] = fit(some, [nvls_features(r) for r in some], starts)
    return found


def _known(row: Row, protocol: str, found: dict[str, Fit]) -> float:
    return found["LL"][f"{cluster(row.machine).generation} base"] if protocol == "LL128" else 0.0


def left_out(rows: Sequence[Row]) -> np.ndarray:
    """Relative errors of each machine's card count when the fit has not seen it."""
    errors, whole = [], all_fits(rows)
    for site, cards in sorted({(row.site, row.cards) for row in rows}):
        seen = all_fits([row for row in rows if (row.site, row.cards) != (site, cards)])
        for name, fitted in whole.items():
            for row in fitted.rows:
                if (row.site, row.cards) != (site, cards) or name not in seen or row.nodes > 1:
                    continue
                each = {"p2p": peer_features, "nvls": nvls_features}.get(name)
                features = each(row) if each else ring_features(row, name)
                if name.startswith("pcie") or set(features) - set(seen[name].names):
                    continue
                time = sum(seen[name][key] * value for key, value in features.items())
                errors.append((time + _known(row, name, seen)) / (row.time_s * 1e6) - 1)
    return np.array(errors)


def report(rows: Sequence[Row]) -> list[str]:
    """The constants, form by form."""
    lines = []
    for name, found in all_fits(rows).items():
        lines.append(f"## {name}: {found.line()}")
        for key, value in zip(found.names, found.values, strict=True):
            is_wire = key == "wire"
            lines.append(f"{key} = {1 / value if is_wire else value:.4g}"
                         + (" (share of the line rate)" if is_wire else ""))  # fmt: skip
        own = [key for key in found.names if key.endswith("own")]
        lines += [f"{key}, part of a chunk: {found[key] / found['wire']:.3g}" for key in own]
    errors = abs(left_out(rows)) * 100
    low, high = np.percentile(errors, (50, 90))
    lines.append(f"left out, a machine's card count at a time: {len(errors)} rows, "
                 f"median {low:.1f} %, p90 {high:.1f} %")  # fmt: skip
    return lines
