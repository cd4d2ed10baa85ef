"""What is always counted, and how Prometheus gets it: real jobs, and a real page."""

import socket

import pytest

pytest.importorskip("roundelay._native", reason="the native core is not built")

from ranks import run

from roundelay import RoundelayError, metrics
from roundelay.counting import SIZES, size_class


def watched(name, ranks, *arguments, **options):
    return run(name, ranks, *arguments, module="watch_programs", **options)


def port_range(count):
    """The first of so many ports in a row that are free at the moment."""
    for _ in range(100):
        with socket.create_server(("127.0.0.1", 0)) as first:
            port = first.getsockname()[1]
        try:
            taken = [socket.create_server(("127.0.0.1", port + k)) for k in range(count)]
        except (OSError, OverflowError):
            continue
        for s in taken:
            s.close()
        return port
    raise AssertionError("no ports are free")


@pytest.mark.parametrize("nodes", [None, "aab"], ids=["one_node", "two_nodes"])
def test_calls_count(nodes):
    watched("counted", 3, nodes=nodes)


@pytest.mark.parametrize("nodes", [None, "aab"], ids=["one_node", "two_nodes"])
@pytest.mark.parametrize("late", [0, 2])
def test_waits_count(nodes, late):
    watched("waited", 3, late, nodes=nodes)


def test_counts_outlive_tasks():
    watched("forgotten", 2)


def test_a_job_is_scraped():
    pytest.importorskip("prometheus_client", reason="the extra `metrics` is not installed")
    port = port_range(2)
    watched("scraped", 2, port, environ={"ROUNDELAY_METRICS": str(port)})


def test_a_taken_port_is_told_of():
    pytest.importorskip("prometheus_client", reason="the extra `metrics` is not installed")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = watched("served_without", 1, environ={"ROUNDELAY_METRICS": f"127.0.0.1:{port}"})
    assert f"cannot serve metrics at 127.0.0.1:{port}" in said[0]


@pytest.mark.parametrize("text", ["many", "0", "70000", "1.2.3.4:", "1.2.3.4:x", "-1"])
def test_a_wrong_port_is_refused(monkeypatch, text):
    monkeypatch.setenv("ROUNDELAY_METRICS", text)
    with pytest.raises(RoundelayError, match="expected a port"):
        metrics.asked()


@pytest.mark.parametrize(
    ("text", "found"),
    [("9400", ("127.0.0.1", 9400)), ("0.0.0.0:1", ("0.0.0.0", 1)), ("[::1]:80", ("::1", 80))],
)
def test_where_to_serve(monkeypatch, text, found):
    pytest.importorskip("prometheus_client", reason="the extra `metrics` is not installed")
    monkeypatch.setenv("ROUNDELAY_METRICS", text)
    assert metrics.asked() == found


def test_size_classes():
    assert [size_class(n) for n in (0, 1024, 1025, 1 << 28)] == [
        "<=1KiB", "<=1KiB", "<=8KiB", "<=256MiB",
    ]  # fmt: skip
    assert size_class(SIZES[-1] + 1) == ">256MiB"
