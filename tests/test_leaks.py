"""Nothing grows: memory, descriptors, threads and mappings of processes that exchange for long."""

import json

import pytest

pytest.importorskip("roundelay._native", reason="the native core is not built")

from ranks import run

RANKS = 4
SMALL, LARGE = 10**6, 10**4
"""Calls of a soak."""
MOST = {"memory": 3 << 20, "descriptors": 0, "threads": 1, "mappings": 8}
"""By how much the last third of the samples may be above the middle one.

The kernel may still count a thread that has been joined.
"""
MALLOC = {"MALLOC_MMAP_THRESHOLD_": str(256 << 10), "MALLOC_TRIM_THRESHOLD_": str(128 << 10)}
"""The C library gives memory back that is free, so that what is left is in use."""


def start_to_end(folder, small, large, nodes, timeout):
    run("grow", RANKS, small, large, str(folder), nodes=nodes, module="leak_programs",
        environ=MALLOC, timeout=timeout)  # fmt: skip


def largest(samples, what):
    """In each third of the samples."""
    values, third = [s[what] for s in samples], len(samples) // 3
    return max(values[:third]), max(values[third : 2 * third]), max(values[2 * third :])


def check(folder):
    for rank in range(RANKS):
        samples = json.loads((folder / f"{rank}.json").read_text())
        for what, most in MOST.items():
            _, early, late = largest(samples, what)
            assert late - early <= most, f"{what} of rank {rank}: {[s[what] for s in samples]}"


@pytest.mark.timeout(400)
@pytest.mark.parametrize("nodes", [None, "aabb"], ids=["one_node", "two_nodes"])
def test_nothing_grows(tmp_path, nodes):
    start_to_end(tmp_path, 20_000, 50, nodes, 380)
    check(tmp_path)


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("nodes", [None, "aabb"], ids=["one_node", "two_nodes"])
def test_nothing_grows_in_a_million_calls(tmp_path, nodes):
    start_to_end(tmp_path, SMALL, LARGE, nodes, 7000)
    check(tmp_path)
