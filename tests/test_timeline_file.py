"""Timelines in small files: what is read is what was written, and nothing else is read."""

import zlib
from dataclasses import replace

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roundelay.errors import RoundelayError
from roundelay.formats import timeline as module
from roundelay.formats.timeline import HEAD, read_timeline, write_timeline
from roundelay.timeline import COLUMNS, Timeline
from roundelay.web.runs import examples


def same(a, b):
    return (
        all(np.array_equal(getattr(a, name), getattr(b, name)) for name in COLUMNS)
        and [*a.names] == [*b.names]
        and [*a.nodes] == [*b.nodes]
        and dict(a.calls) == dict(b.calls)
        and [*a.acts] == [*b.acts]
        and a.lost == b.lost
    )


@pytest.mark.parametrize("name", ["even", "late"])
def test_round_trip(name):
    run = examples()[name]
    data = write_timeline(run)
    assert same(read_timeline(data), run)
    assert len(data) < 15 * len(run)


@pytest.mark.parametrize("count", [0, 1])
def test_few_events(count):
    run = examples()["even"]
    few = run.take(np.arange(count))
    assert same(read_timeline(write_timeline(few)), few)
    assert same(read_timeline(write_timeline(Timeline.empty())), Timeline.empty())


def test_times_far_away():
    run = replace(examples()["even"].shifted(2**61), lost=12)
    assert same(read_timeline(write_timeline(run)), run)


def changed(**fields):
    """The file of a run, with some fields of its map changed."""
    plain = msgspec.msgpack.decode(zlib.decompress(write_timeline(examples()["even"])[len(HEAD) :]))
    for key, change in fields.items():
        plain[key] = change(plain[key])
    return HEAD + zlib.compress(msgspec.msgpack.encode(plain))


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "no timeline file"),
        (b'{"traceEvents":[]}', "no timeline file"),
        (HEAD, "cut off"),
        (HEAD + b"no zlib", "damaged"),
        (write_timeline(examples()["even"])[:-9], "cut off"),
        (HEAD + zlib.compress(b"\xc1"), "damaged"),
        (changed(names=lambda names: names[:-1]), "expected a name and a node for each"),
        (changed(acts=lambda acts: acts[:1]), "act from"),
        (changed(columns=lambda c: {k: v for k, v in c.items() if k != "slice"}), "damaged"),
        (changed(columns=lambda c: c | {"slice": c["slice"] | {"count": 3}}), "expected one entry"),
        (changed(columns=lambda c: c | {"call": c["call"] | {"width": 3}}), "damaged"),
        (changed(columns=lambda c: c | {"what": c["what"] | {"first": 90}}), "what from"),
        (changed(columns=lambda c: c | {"peer": c["peer"] | {"first": -2**40}}), "peer from"),
        (changed(names=lambda names: 7), "damaged"),
    ],
)  # fmt: skip
def test_what_is_no_timeline_is_refused_in_words(data, said):
    with pytest.raises(RoundelayError, match=said):
        read_timeline(data)


def test_a_bomb_is_refused(monkeypatch):
    monkeypatch.setattr(module, "LIMIT", 2**20)
    with pytest.raises(RoundelayError, match="larger than"):
        read_timeline(HEAD + zlib.compress(bytes(2**22)))


@given(st.binary(max_size=300), st.integers(0, 4000))
@settings(max_examples=150, deadline=None)
def test_damage_never_does_anything_but_raise(noise, at):
    data = zlib.decompress(write_timeline(examples()["even"])[len(HEAD) :])
    mixed = data[:at] + noise + data[at + len(noise) :]
    try:
        read = read_timeline(HEAD + zlib.compress(mixed))
    except RoundelayError:
        return
    assert isinstance(read, Timeline)
