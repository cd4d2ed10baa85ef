"""The timeline: its columns, totals, texts, and which reception takes which send."""

import numpy as np
import pytest

from roundelay import RoundelayError
from roundelay.timeline import OWN, Act, Load, Timeline, What

NAMES = ["rank 0", "rank 1", "rank 2", "switch 0 (in rank 0)"]
# rank, call, what, peer, peers, stage, slice, bytes, begin, ready, end, act
ROWS = [
    (0, 7, What.CALL, -1, 0, -1, 0, 0, 0, 0, 100, -1),
    (0, 7, What.SEND, 1, 2, 0, 0, 10, 1, 1, 5, 0),
    (1, 7, What.CALL, -1, 0, -1, 0, 0, 2, 2, 90, -1),
    (1, 7, What.COPY, 0, 1, 0, 0, 10, 3, 8, 9, 1),
    (2, 7, What.REDUCE, 0, 2, 0, 0, 10, 4, 44, 60, 2),
]
ACTS = [
    Act(0, (1, 2), ((3, 1),)),
    Act(0, (0,), ((3, 2),)),
    Act(0, (OWN, 0), ((3, 1), (6, 2))),
]


def sample(rows=ROWS, acts=ACTS):
    columns = np.array(rows, np.int64).reshape(-1, 12).T
    calls = {7: "all_reduce of 10 uint8, sum (x)"}
    return Timeline(*columns, calls=calls, names=NAMES, nodes=[0, 0, 1, 0], acts=acts)


def test_length_span_and_parts():
    timeline = sample()
    assert len(timeline) == 5
    assert timeline.span == (0, 100)
    assert timeline.of(1).what.tolist() == [What.CALL, What.COPY]
    assert timeline.shifted(5).span == (5, 105)
    assert repr(timeline) == "<Timeline: 5 events, 4 participants, 1 calls, 0.1 us>"
    assert len(Timeline.empty()) == 0
    assert Timeline.empty().span == (0, 0)


def test_totals():
    timeline = sample()
    assert timeline.waits.tolist() == [0, 5, 40, 0]
    assert timeline.loads() == [
        Load(sent=20, copied=0, reduced=0, busy=4, waiting=0, calls=100),
        Load(sent=0, copied=10, reduced=0, busy=1, waiting=5, calls=88),
        Load(sent=0, copied=0, reduced=10, busy=16, waiting=40, calls=0),
        Load(0, 0, 0, 0, 0, 0),
    ]
    assert timeline.summary().splitlines() == [
        "                      sent, bytes  copied  reduced  in calls, us  busy  waiting",
        "rank 0                         20       0        0           0.1   0.0      0.0",
        "rank 1                          0      10        0           0.1   0.0      0.0",
        "rank 2                          0       0       10           0.0   0.0      0.0",
        "switch 0 (in rank 0)            0       0        0           0.0   0.0      0.0",
    ]


def test_texts():
    timeline = sample()
    assert [timeline.text(i) for i in range(5)] == [
        "all_reduce of 10 uint8, sum (x)",
        "send chunk 3 to 1, 2",
        "all_reduce of 10 uint8, sum (x)",
        "copy chunks 3-4 from 0",
        "reduce 3 chunks from 0",
    ]
    unknown = sample([(0, 9, What.SEND, 3, 2, 0, 0, 10, 1, 1, 5, -1),
                      (0, 9, What.CALL, -1, 0, -1, 0, 0, 1, 1, 5, -1)])  # fmt: skip
    assert [unknown.text(i) for i in range(2)] == ["send to switch 0", "a call"]
    own = sample([(0, 7, What.COPY, -1, 1, 0, 0, 4, 1, 1, 5, 0)], [Act(0, (OWN,), ((0, 1),))])
    assert own.text(0) == "copy chunk 0 from the input"
    assert own.loads()[0].copied == 0


def test_messages_are_matched_by_order_step_and_slice():
    acts = [Act(0, (1,), ((0, 1),)), Act(1, (1,), ((1, 1),)), Act(0, (0,), ((0, 1),)),
            Act(1, (OWN, 0), ((1, 1),))]  # fmt: skip

    def row(rank, what, stage, slice_, begin, act, call=1):
        return (rank, call, what, 1 - rank, 1, stage, slice_, 8, begin, begin, begin + 1, act)

    rows = [
        row(0, What.SEND, 0, 0, 0, 0),
        row(0, What.SEND, 0, 1, 2, 0),
        row(0, What.SEND, 0, 0, 4, 0),  # of the same step and slice as the first
        row(0, What.SEND, 1, 0, 6, 1),
        row(0, What.SEND, 0, 0, 8, 0, call=2),  # nobody takes it
        row(1, What.REDUCE, 1, 0, 10, 3),
        row(1, What.COPY, 0, 1, 12, 2),
        row(1, What.COPY, 0, 0, 14, 2),
        row(1, What.COPY, 0, 0, 16, 2),
        row(1, What.COPY, 0, 0, 18, 2, call=3),  # nobody sent it
    ]
    send, reception = sample(rows, acts).messages()
    assert list(zip(send.tolist(), reception.tolist(), strict=True)) == [
        (0, 7), (1, 6), (2, 8), (3, 5)
    ]  # fmt: skip
    assert len(sample().messages().send) == 2
    assert len(Timeline.empty().messages().send) == 0


def test_joined_goes_by_time_with_calls_first():
    timeline = sample()
    parts = [timeline.of(r) for r in (2, 1, 0)]
    whole = Timeline.joined(parts)
    assert whole.begin.tolist() == timeline.begin.tolist()
    assert [whole.text(i) for i in range(5)] == [timeline.text(i) for i in range(5)]
    assert len(whole.messages().send) == 2
    tied = [(*ROWS[1][:8], 0, 1, 5, 0), ROWS[0]]
    assert Timeline.joined([sample(tied)]).what.tolist() == [What.CALL, What.SEND]
    assert len(Timeline.joined([])) == 0
    with pytest.raises(RoundelayError, match="different participants"):
        Timeline.joined([timeline, Timeline.empty()])


def test_what_does_not_fit_is_refused():
    columns = [np.zeros(3, np.int64)] * 11
    with pytest.raises(RoundelayError, match="one entry an event"):
        Timeline(*columns, np.zeros(2), names=["rank 0"], nodes=[0])
    with pytest.raises(RoundelayError, match="a name and a node for each"):
        Timeline(*columns, np.zeros(3), names=[], nodes=[])
