"""Measured times: the published figures here, and the calibration rows of ROUNDELAY_DATA."""

import csv
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from roundelay.simulate.nccl import bus_factor
from roundelay.units import parse_size

HERE = Path(__file__).parent
GROUPED = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")

MACHINES = {
    "A100 SXM4 80GB node": "dgx-a100",
    "DGX A100 80GB": "dgx-a100",
    "H100 SXM 80GB node": "dgx-h100",
    "8x H100 NVLink4": "dgx-h100",
    "Azure ND H100 v5 (8x H100, single VM)": "azure-nd-h100-v5",
    "GB200 tray": "gb200-nvl72",
    "L40S PCIe node": "l40s-pcie",
    "AWS p4de.24xlarge (8x A100 80GB, EFA v1 4x100 Gbit/s)": "aws-p4de",
    "AWS p5.48xlarge (8x H100, EFA v2 32x100 Gbit/s)": "aws-p5",
}
"""The calibration file's clusters -> machines known by name."""


class Row(NamedTuple):
    """One measured time.

    `site` says who measured where; the same machine at two sites counts twice.
    """

    site: str
    machine: str
    cards: int
    nodes: int
    collective: str
    size: int
    time_s: float
    algorithm: str | None = None


def time_of(collective: str, size: int, cards: int, metric: str, value: float) -> float:
    """Seconds, from a time in us or ms, or from busbw in GB/s."""
    if metric == "busbw":
        return size * bus_factor(collective, cards) / (value * 1e9)
    return value * {"time": 1e-6, "us": 1e-6, "ms": 1e-3}[metric]


def published() -> Iterator[Row]:
    """The figures in this folder."""
    for path in sorted(HERE.glob("*/*.toml")):
        table = tomllib.loads(path.read_text("utf-8"))
        machine, n, collective = table["machine"], table["cards"], table["collective"]
        name, _, nodes = machine.partition(":")
        for size, value in table["rows"]:
            bytes = parse_size(size)
            seconds = time_of(collective, bytes, n, table["metric"], value)
            site = f"{path.parent.name}/{path.stem}"
            yield Row(site, name, n, int(nodes or 1), collective, bytes, seconds,
                      table.get("algorithm"))  # fmt: skip


def calibration(folder: Path) -> Iterator[Row]:
    """Rows to fit and to check on: one figure each, of a machine that is known by name."""
    with (folder / "published" / "calibrate.csv").open(newline="") as file:
        lines = [line for line in csv.DictReader(file) if line["cluster"] in MACHINES]
    aside = {_key(line) for line in lines if line["status"]}
    seen = set()
    for line in lines:
        key = _key(line)
        if line["collective"] not in GROUPED or key in aside or key in seen:
            continue
        seen.add(key)
        yield _row(line)


def _row(line: dict[str, str]) -> Row:
    cards = int(line["nodes"]) * int(line["gpus_per_node"])
    metric = "busbw" if line["metric"].startswith("busbw") else line["unit"]
    large = line["size_bytes"] == "large"  # taken as 8 GiB
    size, collective = 8 << 30 if large else int(line["size_bytes"]), line["collective"]
    seconds = time_of(collective, size, cards, metric, float(line["value"]))
    algorithm = line["algorithm_or_setting"].lower() if large else None
    return Row(line["cluster"], MACHINES[line["cluster"]], cards, int(line["nodes"]), collective,
               size, seconds, algorithm)  # fmt: skip


def _key(line: dict[str, str]) -> tuple[str, ...]:
    fields = ("source", "cluster", "nodes", "gpus_per_node", "collective", "size_bytes",
              "algorithm_or_setting")  # fmt: skip
    return tuple(line[field] for field in fields)
