"""The tuner plugin's table."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundelay import RoundelayError
from roundelay.formats.tuner import (
    COLLECTIVES,
    LEGAL,
    LONGEST,
    MOST,
    PROTOCOLS,
    Row,
    read_tuner,
    write_tuner,
)  # fmt: skip


@st.composite
def rows(draw):
    collective = draw(st.sampled_from(list(LEGAL)))
    algorithm = draw(st.sampled_from(LEGAL[collective]))
    protocol = draw(st.sampled_from(PROTOCOLS)) if algorithm in ("ring", "tree") else "Simple"
    low, high = sorted(draw(st.tuples(*[st.integers(0, MOST)] * 2)))
    number = st.just(-1) | st.integers(1, 10**5)
    return Row(collective, low, high, algorithm, protocol, draw(st.integers(1, 64)), draw(number),
               draw(number), draw(number), draw(st.sampled_from((-1, 0, 1))))  # fmt: skip


@given(st.lists(rows(), max_size=8), st.integers(1, 64))
def test_what_is_written_is_read_again_and_closed(some, channels):
    data = write_tuner(some, channels)
    found, notes = read_tuner(data)
    assert not notes
    assert list(found[: len(some)]) == some
    assert all(len(line) <= LONGEST for line in data.decode().splitlines())
    for name in COLLECTIVES:  # a call that no row fits would run on one channel
        assert any(row.fits_all and row.channels >= 1 for row in found if row.collective == name)


def test_a_file():
    data = write_tuner([Row("all_reduce", 0, 65536, "tree", "LL", 8, nodes=2)], 16)
    lines = data.decode().splitlines()
    assert lines[1] == "allreduce,0,65536,tree,ll,8,2,-1,-1,-1"
    assert lines[2] == f"allreduce,0,{MOST},ring,simple,16,-1,-1,-1,-1"
    assert len(lines) == 2 + len(COLLECTIVES)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (Row("all_to_all", 0, 1, "ring", "LL", 1), "collective 'all_to_all'"),
        (Row("broadcast", 0, 1, "tree", "LL", 1), "broadcast by 'tree'"),
        (Row("all_reduce", 0, 1, "nvls", "LL", 1), "nvls with 'LL'; expected Simple"),
        (Row("all_reduce", 0, 1, "ring", "LL", -1), "-1 channels; expected 1 to 64"),
        (Row("all_reduce", 2, 1, "ring", "LL", 1), "bytes 2 to 1"),
        (Row("all_reduce", 0, 1, "ring", "LL", 1, nodes=0), "nodes = 0"),
        (Row("all_reduce", 0, 1, "ring", "LL", 1, registered=2), "registered = 2"),
    ],
)
def test_rows_that_would_be_misread_are_refused(row, words):
    with pytest.raises(RoundelayError, match=words):
        write_tuner([row], 4)


def test_odd_files():
    found, notes = read_tuner(b"# x\nallreduce, 0, 10, tree, ll, 8, -1, -1\nsum,0,1,ring,ll,1,1,1\n"
                              b"allreduce,0,10,tree\n")  # fmt: skip
    assert [row.algorithm for row in found] == ["tree"]
    assert [note.line for note in notes] == [3, 4, 0, 0, 0, 0, 0]
    assert "all_reduce has no last row" in str(notes[2].what)
    with pytest.raises(RoundelayError, match="no row of a tuner's table"):
        read_tuner(b"hello\n")
