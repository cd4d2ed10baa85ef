"""How many instances a service needs: the policies, and traffic over instances."""

import json
from math import nan

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roundelay.cli import run
from roundelay.errors import RoundelayError
from roundelay.scaling import (
    POLICIES,
    Fixed,
    Forecast,
    Queue,
    Request,
    Scaler,
    Seen,
    Service,
    Speed,
    Utilisation,
    best_target,
    least_fixed,
    poisson,
    policy,
    read_requests,
    simulate,
)
from roundelay.scaling.traffic import quicker

SPEED = Speed(prefill=0.001, steps=(0.01, 0.012, 0.014, 0.016), start=5.0)
CSV = """TIMESTAMP,ContextTokens,GeneratedTokens
2023-11-16 18:17:04.0319600,3180,8
2023-11-16 18:17:03.9799600,4808,10
2023-11-16 18:17:05,110,0
"""


def alone(count=1):
    return Scaler(Fixed(count), count, count)


def seen(instances=1, running=0, waiting=0, now=0.0, work=0.0, places=4):
    return Seen(now, instances, places, running, waiting, work)


def test_one_request_alone():
    """A prompt of 100 tokens takes 100 ms, and each step 10 ms."""
    found = simulate([Request(0.0, 100, 5)], Service(SPEED, cards=8), alone())
    assert found.first == pytest.approx([0.1 + 0.01])
    assert found.token == pytest.approx([0.01])
    assert (found.tokens, found.refused, found.in_time) == (5, 0, 1.0)
    assert found.ended == pytest.approx(0.15)
    assert found.card_hours == pytest.approx(8 * 0.15 / 3600)


def test_a_second_request_joins_between_two_steps():
    """It comes in the first's second step, that ends at 30 ms; its prompt makes the next longer."""
    asked = [Request(0.0, 10, 3), Request(0.025, 50, 2)]
    found = simulate(asked, Service(SPEED), alone())
    joined = 0.03 + 0.05 + 0.012
    assert found.first == pytest.approx([0.02, joined - 0.025])
    assert found.token == pytest.approx([(joined - 0.02) / 2, 0.01])


def test_full_instances_refuse():
    asked = [Request(0.0, 10, 3)] * 7
    found = simulate(asked, Service(SPEED, queue=1), alone())
    assert found.refused == 2
    assert np.isnan(found.first[-2:]).all()
    assert found.in_time == pytest.approx(5 / 7)
    assert simulate(asked, Service(SPEED, queue=1), alone(2)).refused == 0


def test_the_least_loaded_gets_it():
    """Two instances of a request each are as quick as one with one."""
    both = simulate([Request(0.0, 10, 3)] * 2, Service(SPEED), alone(2))
    one = simulate([Request(0.0, 10, 3)], Service(SPEED), alone())
    assert both.first.tolist() == [one.first[0]] * 2


@pytest.mark.parametrize(
    ("instances", "running", "wanted"),
    [(1, 4, 2), (2, 4, 2), (3, 6, 3), (4, 4, 2), (5, 0, 0), (10, 21, 10), (10, 23, 12)],
)
def test_utilisation_is_the_rule_of_kubernetes(instances, running, wanted):
    """ceil(instances x value / target), and no change within a tenth of it; the target is half."""
    assert Utilisation(0.5).wanted(seen(instances, running)) == wanted


def test_queue_counts_those_that_wait():
    assert Queue(0.5).wanted(seen(3, running=4, waiting=5)) == 5
    assert Queue(0.5).wanted(seen(3)) == 0


def test_a_forecast_is_ahead_of_a_ramp():
    """Work that grows by a tenth of an instance a second, seen every 10 s, 60 s before it comes."""
    forecast = Forecast(ahead=60.0, target=1.0)
    for look in range(60):
        wanted = forecast.wanted(seen(now=10.0 * look, work=10.0 * look))
    assert wanted == pytest.approx(0.1 * (590 + 60), abs=1.5)
    for look in range(60, 200):
        wanted = forecast.wanted(seen(now=10.0 * look, work=50.0))
    assert wanted == pytest.approx(5, abs=1)


def test_fewer_only_after_a_calm():
    scaler = Scaler(Queue(1.0), 1, 3, calm=20)
    counts = [scaler.count(seen(2, running=r, now=t)) for t, r in ((0, 8), (10, 1), (19, 1))]
    assert counts == [2, 2, 2]
    assert scaler.count(seen(2, running=1, now=31)) == 1
    assert scaler.count(seen(2, running=400, now=32)) == 3


traffic = st.lists(st.tuples(st.floats(0, 60), st.integers(1, 300), st.integers(1, 40)),
                   min_size=1, max_size=60)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(traffic, st.sampled_from(sorted(POLICIES)), st.integers(1, 3), st.integers(0, 4),
       st.floats(0.1, 1), st.floats(0, 30))  # fmt: skip
def test_no_request_is_lost(drawn, name, least, queue, target, calm):
    asked = sorted(Request(*one) for one in drawn)
    service = Service(SPEED, queue, cards=2, look=1.0)
    scaler = Scaler(policy(name, target, 5.0), least, least + 3, calm)
    found = simulate(asked, service, scaler)
    answered = ~np.isnan(found.first)
    assert found.refused == len(asked) - answered.sum()
    assert found.tokens == sum(r.answer for r, done in zip(asked, answered, strict=True) if done)
    quickest = [SPEED.prefill * r.prompt + SPEED.steps[0] for r in asked]
    assert (found.first[answered] >= np.array(quickest)[answered] - 1e-9).all()
    counts = [count for _, count in found.instances]
    assert least <= min(counts) <= max(counts) <= least + 3
    times = [at for at, _ in found.instances]
    assert times == sorted(times)
    assert found.card_hours * 3600 / 2 >= found.ended * least - 1e-6
    again = simulate(asked, service, Scaler(policy(name, target, 5.0), least, least + 3, calm))
    assert again.first.tolist() == pytest.approx(found.first.tolist(), nan_ok=True)
    assert again.card_hours == found.card_hours


def test_more_come_where_more_is_asked():
    """Traffic that one instance cannot serve, and four can."""
    service = Service(Speed(0.0, (0.1,) * 4, 1.0), queue=1000, look=1.0)
    asked = poisson(600, 10.0, 1, 10)
    one = simulate(asked, service, alone())
    grown = simulate(asked, service, Scaler(Queue(0.8), 1, 8, 30.0))
    assert max(count for _, count in grown.instances) >= 3
    assert np.nanquantile(grown.first, 0.9) < np.nanquantile(one.first, 0.9) / 3


def test_the_least_fixed_and_the_best_target():
    service = Service(Speed(0.0, (0.1,) * 4, 1.0), look=1.0, first_token=1.0, token=0.15)
    asked = poisson(600, 10.0, 1, 10)
    count = least_fixed(asked, service, 16)
    assert simulate(asked, service, alone(count)).in_time >= 0.99
    assert simulate(asked, service, alone(count - 1)).in_time < 0.99
    assert least_fixed(asked, service, count - 1) is None
    targets = (0.1, 0.5, 0.9)

    def scaler(target):
        return Scaler(Queue(target), 2, 16, 30.0)

    target, found = best_target(asked, service, scaler, targets)
    others = [simulate(asked, service, scaler(t)) for t in targets]
    enough = [o.card_hours for o in others if o.in_time >= 0.99]
    assert found.card_hours == min(enough)
    assert target in targets


def test_requests_of_a_file():
    assert read_requests(CSV) == [
        Request(0.0, 4808, 10), Request(0.052, 3180, 8),
        Request(1.02004, 110, 1),
    ]  # fmt: skip
    assert quicker(read_requests(CSV), 2)[2].at == pytest.approx(0.51002)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "line 1.*expected the columns"),
        ("a,b,c\n", "line 1.*expected the columns"),
        (CSV.splitlines()[0], "0 requests; expected 1"),
        ("a" * 200_000, "no CSV"),
        (CSV + "yesterday,1,2\n", "line 5.*expected a time"),
        (CSV + "2023-11-16 18:17:05,1\n", "line 5"),
        (CSV + "2023-11-16 18:17:05,-1,2\n", "line 5.*-1 tokens"),
        (CSV + "2023-11-16 18:17:05,1e9,2\n", "line 5"),
        (CSV + "2023-11-16 18:17:05,1,99999999999\n", "line 5"),
    ],
)
def test_bad_files(text, complaint):
    with pytest.raises(RoundelayError, match=complaint):
        read_requests(text)


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: Speed(0.0, (), 1.0), "above 0"),
        (lambda: Speed(nan, (0.0,), 1.0), "above 0"),
        (lambda: Service(SPEED, -1), "queue"),
        (lambda: Service(SPEED, token=0), "above"),
        (lambda: Scaler(Fixed(1), 0, 1), "0 to 1 instances"),
        (lambda: Scaler(Fixed(1), 3, 2), "3 to 2 instances"),
        (lambda: policy("guess"), "unknown policy"),
        (lambda: policy("queue", 1.5), "1.5 of the places"),
        (lambda: poisson(0, 1, 1, 1), "above 0"),
        (lambda: quicker([], 0), "above 0"),
        (lambda: simulate([], Service(SPEED), alone()), "no requests"),
    ],
)
def test_bad_settings(make, complaint):
    with pytest.raises(RoundelayError, match=complaint):
        make()


def test_the_command(tmp_path, capsys):
    file = tmp_path / "asked.csv"
    file.write_text(CSV)
    words = ["inference-sim", str(file), "--cluster", "dgx-h100", "--first-token", "5s",
             "--token", "1s"]  # fmt: skip
    assert run([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["policy"] for row in found["policies"]] == ["fixed", *POLICIES]
    assert found["policies"][0]["in_time"] == 1.0
    assert found["policies"][0]["instances_most"] == 1
    assert run([*words, "--lang", "zh"]) == 0
    assert "个请求" in capsys.readouterr().out


def test_no_policy_has_fewer_than_the_least(capsys):
    assert run(["inference-sim", "--cluster", "dgx-h100", "--least", "6", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["policies"]
    assert all(row["instances_mean"] >= 6 for row in rows)


def test_a_model_that_does_not_fit_is_said(capsys):
    """405 billion numbers of two bytes are 101 GB a card, of 80 GB, or of 141."""
    big = ["inference-sim", "--layers", "126", "--hidden", "16384", "--inner", "53248",
           "--policy", "fixed", "--cluster"]  # fmt: skip
    assert run([*big, "dgx-h100"]) == 0
    assert "A card would hold 101 GB of weights, and has 80 GB" in capsys.readouterr().err
    assert run([*big, "hgx-h200"]) == 0
    assert not capsys.readouterr().err
    assert run(["inference-sim", "--policy", "fixed", "--cluster", "dgx-h100"]) == 0
    assert not capsys.readouterr().err


def test_years_of_requests_are_refused():
    asked = [Request(0.0, 1, 1), Request(3e8, 1, 1)]
    with pytest.raises(RoundelayError, match="over 3,472 days; expected 87 at most"):
        simulate(asked, Service(Speed(0.001, (0.01,), 1.0)), Scaler(Fixed(1), 1, 1))


MEASURED = ["inference-sim", "--prefill", "1ms"]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["inference-sim"], "how quick is an instance"),
        (["inference-sim", "--cluster", "dgx-h100", "--step", "1ms"], "leave out"),
        (["inference-sim", "--cluster", "dgx-h100", "--least", "3", "--most", "2"], "no more"),
        (["inference-sim", "--cluster", "dgx-h100", "--target", "2"], "2 of the places"),
        (["inference-sim", "--cluster", "dgx-h100", "--tp", "7"], "64 heads; expected a divisor"),
        (
            [*MEASURED, "--step", "9ms", "--full-step", "8ms"],
            "--full-step 8 ms with 32; expected no less",
        ),
        (
            [*MEASURED, "--step", "8ms", "--full-step", "9ms", "--batch", "1"],
            "--full-step 9 ms with 1; expected no less",
        ),
        (
            [*MEASURED, "--step", "1ms", "--full-step", "1ms", "--layers", "2"],
            "--layers changes nothing without --cluster",
        ),
        (
            ["inference-sim", "--cluster", "dgx-h100", "--policy", "fixed", "--calm", "2h"],
            "--calm changes nothing with --policy fixed",
        ),
        (
            ["inference-sim", "--cluster", "dgx-h100", "--name", "a"],
            "--name changes nothing without --write; add --write DIR, or leave it out",
        ),
        (["inference-sim", "none.csv", "--cluster", "dgx-h100"], "none.csv"),
    ],
)
def test_the_command_refuses(words, complaint, capsys):
    assert run(words) == 2
    assert complaint in capsys.readouterr().err
