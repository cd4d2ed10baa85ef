"""Schedules for MSCCL and MSCCL++ are read back and proved again; unsound files are refused."""

import dataclasses
import itertools
import json
import os
import random
import re
from collections import defaultdict, deque
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import roundelay as rl
from roundelay.diagnose.plans import Plan, plan_findings
from roundelay.executors.algos import from_msccl, prove_msccl
from roundelay.executors.msccl import to_msccl
from roundelay.executors.mscclpp import to_mscclpp
from roundelay.executors.plans import from_mscclpp, prove_mscclpp
from roundelay.formats.msccl_xml import broken_limits, read_msccl, write_msccl
from roundelay.formats.mscclpp_plan import read_mscclpp, write_mscclpp
from roundelay.formats.schedule import read_schedule, write_schedule

REFUSED = {
    "switch": "a switch adds", "leader_switch": "a switch adds", "rails_switch": "a switch adds",
    "dissemination": "it has no barrier", "send_recv": "it has no send_recv",
}  # fmt: skip
EVERY = rl.algorithms()
WRITTEN = [a for a in EVERY if a.name not in REFUSED and a.collective != "send_recv"]
DATA = os.environ.get("ROUNDELAY_DATA")


def named(algorithm):
    return f"{algorithm.collective}/{algorithm.name}"


def msccl(schedule, **options):
    """Written and read back."""
    algo = to_msccl(schedule, **options)
    again = read_msccl(write_msccl(algo))
    bare = [dataclasses.replace(g, blocks=()) for g in again.gpus]
    assert bare == [dataclasses.replace(g, blocks=()) for g in algo.gpus]
    assert again.missing == again.notes == ()
    return again


@pytest.mark.parametrize("algorithm", WRITTEN, ids=named)
@pytest.mark.parametrize("n", [2, 4, 6])
def test_every_algorithm_goes_to_msccl_and_is_proved_in_and_out_of_place(algorithm, n):
    if not algorithm.fits(n):
        pytest.skip("no such n")
    verdicts = prove_msccl(msccl(algorithm(n)))
    assert len(verdicts) == 1 + (algorithm.collective != "all_to_all")
    assert all(verdicts), [v.reason for v in verdicts]


@pytest.mark.parametrize("algorithm", WRITTEN, ids=named)
@pytest.mark.parametrize(("n", "instances"), [(2, 1), (4, 3), (6, 1)])
def test_every_algorithm_goes_to_mscclpp_and_is_proved(algorithm, n, instances):
    if not algorithm.fits(n):
        pytest.skip("no such n")
    made = to_mscclpp(algorithm(n), instances=instances)
    plan = read_mscclpp(write_mscclpp(made))
    assert plan == made
    for in_place in {False, algorithm.collective != "all_to_all"}:
        verdict = prove_mscclpp(plan, in_place=in_place)
        assert verdict, verdict.reason


@pytest.mark.parametrize("write", [to_msccl, to_mscclpp])
@pytest.mark.parametrize("algorithm", [a for a in EVERY if a not in WRITTEN], ids=named)
def test_what_has_no_form_there_is_refused_with_the_reason(write, algorithm):
    n = next(n for n in (4, 8) if algorithm.fits(n))
    with pytest.raises(rl.RoundelayError) as caught:
        write(algorithm(n))
    assert REFUSED.get(algorithm.name, REFUSED["send_recv"]) in str(caught.value)


@given(st.sampled_from(WRITTEN), st.integers(2, 9), st.data())
def test_with_any_parameters(algorithm, n, data):
    if not algorithm.fits(n):
        return
    schedule = algorithm(n, **data.draw(st.sampled_from(list(algorithm.variants(n)))))
    assert all(prove_msccl(msccl(schedule)))
    assert prove_mscclpp(read_mscclpp(write_mscclpp(to_mscclpp(schedule))))


def test_summing_order_stays():
    """Rank order, so that all ranks get the bits that the schedule would give them."""
    for again in (from_msccl(msccl(rl.build("all_reduce/one_shot", 5)), in_place=True),
                  from_mscclpp(to_mscclpp(rl.build("all_reduce/one_shot", 5)))):  # fmt: skip
        assert rl.verify(again).summation == "rank"


def test_a_rank_that_sends_itself_what_it_adds_is_refused():
    ring = json.loads(write_schedule(rl.build("all_reduce/ring", 4)))
    ring["rounds"][0]["dst"] = [1, 1, 3, 0]
    schedule = read_schedule(json.dumps(ring).encode())
    for write in (to_msccl, to_mscclpp):
        with pytest.raises(rl.RoundelayError, match="rank 1 sends itself what it adds, in step 0"):
            write(schedule)


def test_a_root_and_limits_are_refused():
    with pytest.raises(rl.RoundelayError, match="rank 0 must be it; found root 1"):
        to_msccl(rl.build("broadcast/binomial", 4, root=1))
    with pytest.raises(rl.RoundelayError, match="78 steps; at most 64"):
        write_msccl(to_msccl(rl.build("all_reduce/ring", 40)))
    with pytest.raises(rl.RoundelayError, match="thread blocks; at most 64"):
        write_msccl(to_msccl(rl.build("all_to_all/direct", 40)))
    with pytest.raises(rl.RoundelayError, match="instances = 0; expected 1 to 128"):
        to_mscclpp(rl.build("all_reduce/ring", 4), instances=0)
    with pytest.raises(rl.RoundelayError, match="semaphores; at most 16"):
        write_mscclpp(to_mscclpp(rl.build("all_reduce/ring", 24), instances=16))


def test_many_peers_have_several_channels():
    algo = msccl(rl.build("all_to_all/direct", 24))
    assert algo.channels == 2
    assert not broken_limits(algo)
    assert all(prove_msccl(algo))


# --- run as the executor would -------------------------------------------------------------


def run(algo, chance, in_place):
    """Any order that the executor may take: blocks at random, messages in turn. No proof of ours.

    Returns the output of every rank, where each input chunk is a random number.
    """
    n, chunks = len(algo.gpus), algo.chunks_per_loop
    memory = []
    for rank, gpu in enumerate(algo.gpus):
        values = {"i": chance.integers(1, 2**40, gpu.inputs), "o": np.zeros(gpu.outputs, np.int64),
                  "s": np.zeros(gpu.scratch, np.int64)}  # fmt: skip
        if in_place:
            whole = values["o"] if gpu.outputs >= gpu.inputs else values["i"]
            small = "i" if gpu.outputs >= gpu.inputs else "o"
            own = gpu.inputs if small == "i" else gpu.outputs
            first = rank * own if own < len(whole) else 0
            if small == "i":
                whole[first : first + own] = values["i"]
            values[small] = whole[first : first + own]
        memory.append(values)
    start = [m["i"].copy() for m in memory]
    done = {(r, b): 0 for r, g in enumerate(algo.gpus) for b in range(len(g.blocks))}
    wires = defaultdict(deque)
    while any(at < len(algo.gpus[r].blocks[b].steps) for (r, b), at in done.items()):
        moved = False
        for r, b in chance.permutation(sorted(done)).tolist():
            block = algo.gpus[r].blocks[b]
            if done[r, b] == len(block.steps):
                continue
            step = block.steps[done[r, b]]
            if step.after and done[r, step.after[0]] <= step.after[1]:
                continue
            wire = wires[block.recv, r, block.channel]
            if step.kind in ("r", "rcs", "rrs", "rrc", "rrcs") and not wire:
                continue
            source, target = (memory[r][p[0]][p[1] : p[1] + step.count]
                              for p in (step.source, step.target))  # fmt: skip
            if step.kind in ("s", "cpy", "nop"):
                value = source
            elif step.kind == "re":
                value = target + source
            else:
                value = wire.popleft() + (source if step.kind.startswith("rr") else 0)
            if step.kind not in ("s", "rrs", "nop"):
                target[:] = value
            if step.kind in ("s", "rcs", "rrs", "rrcs"):
                wires[r, block.send, block.channel].append(value.copy())
            done[r, b] += 1
            moved = True
        assert moved, "nothing can go on"
    assert not any(wires.values())
    return start, [m["o"] for m in memory], chunks // n


@pytest.mark.parametrize("name", ["ring", "halving_doubling", "one_shot", "rails3", "bine"])
@pytest.mark.parametrize("in_place", [False, True])
def test_any_order_of_thread_blocks_adds_up(name, in_place):
    algo = msccl(rl.build(f"all_reduce/{name}", 8))
    for seed in range(5):
        start, end, _ = run(algo, np.random.default_rng(seed), in_place)
        assert all((own == sum(start)).all() for own in end)


def test_any_order_of_thread_blocks_gathers_and_exchanges():
    for name, in_place in itertools.product(("ring", "bruck", "swing", "rails"), (False, True)):
        start, end, _ = run(msccl(rl.build(f"all_gather/{name}", 8)), np.random.default_rng(1),
                            in_place)  # fmt: skip
        assert all((own == np.concatenate(start)).all() for own in end)
    for name in ("bruck", "hierarchical"):
        start, end, each = run(msccl(rl.build(f"all_to_all/{name}", 8)), np.random.default_rng(1),
                               False)  # fmt: skip
        for me, own in enumerate(end):
            mine = slice(me * each, (me + 1) * each)
            assert (own == np.concatenate([other[mine] for other in start])).all()


# --- what is not sound is refused ----------------------------------------------------------


def steps_of(algo):
    return [(r, b, s) for r, g in enumerate(algo.gpus) for b, block in enumerate(g.blocks)
            for s in range(len(block.steps))]  # fmt: skip


def changed(algo, at, **fields):
    r, b, s = at
    block = algo.gpus[r].blocks[b]
    steps = list(block.steps)
    steps[s] = dataclasses.replace(steps[s], **fields)
    blocks = list(algo.gpus[r].blocks)
    blocks[b] = dataclasses.replace(block, steps=tuple(steps))
    gpus = list(algo.gpus)
    gpus[r] = dataclasses.replace(gpus[r], blocks=tuple(blocks))
    return dataclasses.replace(algo, gpus=tuple(gpus))


@pytest.mark.parametrize("name", ["all_reduce/halving_doubling", "all_reduce/ring",
                                  "all_gather/bruck", "all_reduce/recursive_doubling"])  # fmt: skip
def test_no_wait_for_a_value_is_superfluous(name):
    """Without any single one, two steps would use a place in no order, or read it empty.

    What overwrites a place that was sent may be ordered by the answer of another rank as well.
    """
    algo = to_msccl(rl.build(name, 4))
    waits = [at for at in steps_of(algo)
             if (step := algo.gpus[at[0]].blocks[at[1]].steps[at[2]]).after
             and step.kind in ("s", "rrc", "re")]  # fmt: skip
    assert waits
    for at in waits:
        with pytest.raises(rl.RoundelayError, match=r"nothing orders them|nothing was written"):
            prove_msccl(changed(algo, at, after=None))


def test_what_computes_something_else_is_not_proved():
    algo = to_msccl(rl.build("reduce/direct", 4))
    at = next(at for at in steps_of(algo)
              if algo.gpus[at[0]].blocks[at[1]].steps[at[2]].kind == "rrc")  # fmt: skip
    verdict = prove_msccl(changed(algo, at, kind="r"))[0]
    assert not verdict
    assert verdict.counterexample


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"waited_for": False}, "whose hasdep is 0"),
        ({"kind": "nop"}, "which receives"),
        ({"count": 2}, "or not as many chunks"),
        ({"source": ("o", 4)}, "chunk 4 of o; it has 4"),
        ({"source": ("s", 9)}, "chunk 9 of s; it has"),
        ({"after": (9, 9)}, "which is not there"),
    ],
)
def test_broken_steps_are_named(fields, says):
    algo = to_msccl(rl.build("all_reduce/halving_doubling", 4))
    places = [at for at in steps_of(algo)
              if algo.gpus[at[0]].blocks[at[1]].steps[at[2]].waited_for
              or algo.gpus[at[0]].blocks[at[1]].steps[at[2]].kind == "s"]  # fmt: skip
    told = set()
    for at in places:
        try:
            prove_msccl(changed(algo, at, **fields))
        except rl.RoundelayError as error:
            told.add(says in str(error))
    assert True in told


def test_steps_that_wait_for_one_another_are_named():
    algo = to_msccl(rl.build("all_gather/direct", 2))
    blocks = {block.send >= 0: b for b, block in enumerate(algo.gpus[0].blocks)
              if block.send >= 0 or block.recv >= 0}  # fmt: skip
    algo = changed(algo, (0, blocks[True], 0), after=(blocks[False], 0), waited_for=True)
    algo = changed(algo, (0, blocks[False], 0), waited_for=True)
    algo = changed(algo, (1, blocks[True], 0), after=(blocks[False], 0))
    algo = changed(algo, (1, blocks[False], 0), waited_for=True)
    with pytest.raises(rl.RoundelayError, match=r"6 steps wait for one another"):
        prove_msccl(algo)


FUSED = b"""<algo name="chain" proto="LL" nchannels="1" nchunksperloop="1" ngpus="3"
 coll="allreduce" inplace="1"><!-- up the ranks with rrs, down with rcs -->
<gpu id="0" i_chunks="1" o_chunks="0" s_chunks="0"><tb id="0" send="1" recv="1" chan="0">
 <step s="0" type="s" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" depid="-1" deps="-1"
  hasdep="0"/>
 <step s="1" type="r" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" depid="-1" deps="-1"
  hasdep="0"/></tb></gpu>
<gpu id="1" i_chunks="1" o_chunks="0" s_chunks="0"><tb id="0" send="2" recv="0" chan="0">
 <step s="0" type="rrs" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" depid="-1" deps="-1"
  hasdep="1"/></tb><tb id="1" send="0" recv="2" chan="0">
 <step s="0" type="rcs" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" depid="0" deps="0"
  hasdep="0"/></tb></gpu>
<gpu id="2" i_chunks="1" o_chunks="0" s_chunks="0"><tb id="0" send="1" recv="1" chan="0">
 <step s="0" type="rrcs" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" depid="-1" deps="-1"
  hasdep="0"/></tb></gpu></algo>"""


def test_fused_steps_are_read():
    algo = read_msccl(FUSED)
    assert algo.missing == ("outofplace", "minBytes", "maxBytes")
    assert (algo.in_place, algo.out_of_place) == (True, False)
    schedule = from_msccl(algo, in_place=True)
    assert (schedule.helpers, schedule.steps) == (0, 4)
    assert all(prove_msccl(algo))
    assert read_msccl(write_msccl(dataclasses.replace(algo, missing=()))).missing == ()
    with pytest.raises(rl.RoundelayError, match="attribute minBytes is missing"):
        write_msccl(algo)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (b'type="rrs"', b'type="rrx"', "type 'rrx'; expected one of s, r"),
        (b'srcbuf="i"', b'srcbuf="x"', "srcbuf = 'x'; expected i, o or s"),
        (b'send="2" recv="0"', b'send="2" recv="-1"', "recv = -1; expected a peer"),
        (b'<gpu id="2"', b'<gpu id="4"', "gpu ids [0, 1, 4]"),
        (b'tb id="1"', b'tb id="2"', "tb ids [0, 2]"),
        (b' coll="allreduce"', b"", "no coll"),
        (b'cnt="1"', b'cnt="9999999"', "cnt = '9999999'"),
        (b"</algo>", b"", "cut off inside <algo>"),
        (b"<algo", b"<system", "<system> in XML; expected <algo>"),
    ],
)
def test_bad_xml_says_where(old, new, says):
    with pytest.raises(rl.RoundelayError, match=re.escape(says)):
        read_msccl(FUSED.replace(old, new).replace(b"</algo>", b"</system>")
                   if new == b"<system" else FUSED.replace(old, new))  # fmt: skip


# --- plans of others -----------------------------------------------------------------------


def plan_of(gpus, **more):
    import msgspec

    base = {"name": "by_hand", "collective": "allreduce", "protocol": "Simple", "inplace": True}
    return read_mscclpp(msgspec.json.encode({**base, **more, "gpus": gpus}))


def packets(rank):
    """An all-reduce of two ranks by packets: each puts its chunk, and adds what came."""
    here = {"type": "i", "index": 0, "size": 1}
    there = {"buffer_id": 0, "index": rank, "size": 1}
    came = {"type": "s", "index": 1 - rank, "size": 1}
    return {
        "id": rank, "input_chunks": 1, "output_chunks": 1, "scratch_chunks": 2,
        "threadblocks": [{
            "id": 0,
            "ops": [
                {"name": "ppkt", "src_buff": [here], "dst_buff": [there], "channel_type": "memory"},
                {"name": "nop"},
                {"name": "repkt", "src_buff": [here, came], "dst_buff": [here]},
            ],
            "channels": [{"channel_type": "memory", "channel_ids": [0]}],
            "remote_buffer_refs": [{"access_channel_type": "memory", "remote_buffer_ids": [0]}],
        }],
        "channels": [{"channel_type": "memory", "connected_to": [1 - rank]}],
        "remote_buffers": [{"rank": 1 - rank, "type": "s", "access_channel_types": ["memory"]}],
        "semaphores": [],
    }  # fmt: skip


def put_with_signal(rank):
    """The same over port channels, with a barrier of two thread blocks between."""
    here = {"type": "i", "index": 0, "size": 1}
    came = {"type": "s", "index": 0, "size": 1}
    barrier = {"name": "barrier", "barrier_id": 0, "num_threadblocks": 2}
    made = packets(rank)
    made["threadblocks"] = [
        {"id": 0, "ops": [
            {"name": "pws", "channel_ids": [0], "channel_type": "port", "src_buff": [here],
             "dst_buff": [{"buffer_id": 0, "index": 0, "size": 1}]},
            {"name": "flush", "channel_ids": [0], "channel_type": "port"},
            {"name": "wait", "channel_ids": [0], "channel_type": "port"}, barrier],
         "channels": [{"channel_type": "port", "channel_ids": [0]}],
         "remote_buffer_refs": [{"access_channel_type": "port", "remote_buffer_ids": [0]}]},
        {"id": 1, "ops": [barrier, {"name": "re", "src_buff": [here, came], "dst_buff": [here],
                                    "reduce_op": "sum"}]},
    ]  # fmt: skip
    made["channels"][0]["channel_type"] = "port"
    return made


def through_switch(rank):
    """Each rank has the switch add its share, in a pipeline with semaphores."""
    share = {"switch_channel_id": 0, "index": rank, "size": 1}
    return {
        "id": rank, "input_chunks": 2, "output_chunks": 0, "scratch_chunks": 0,
        "threadblocks": [{
            "id": 0,
            "ops": [
                {"name": "rlxsignal", "channel_ids": [0], "channel_type": "memory"},
                {"name": "rlxwait", "channel_ids": [0], "channel_type": "memory"},
                {"name": "pipeline", "iter_context": {"unit_size": 65536, "num_chunks": 1}, "ops": [
                    {"name": "sem_acquire", "semaphore_ids": [0]},
                    {"name": "glres", "channel_ids": [0], "channel_type": "switch",
                     "src_buff": [share], "dst_buff": [share]},
                    {"name": "sem_release", "semaphore_ids": [0]}]},
            ],
            "channels": [{"channel_type": "memory", "channel_ids": [0]},
                         {"channel_type": "switch", "channel_ids": [0]}],
        }],
        "channels": [{"channel_type": "memory", "connected_to": [1 - rank]},
                     {"channel_type": "switch", "buffer_type": "i",
                      "rank_groups": [{"size": 2, "ranks": [0, 1]}]}],
        "semaphores": [{"init_value": 1}],
    }  # fmt: skip


@pytest.mark.parametrize("rank", [packets, put_with_signal, through_switch])
def test_plans_of_others_are_proved(rank):
    plan = plan_of([rank(0), rank(1)])
    verdict = prove_mscclpp(plan)
    assert verdict, verdict.reason
    assert read_mscclpp(write_mscclpp(plan)) == plan


def test_plans_through_the_switch_say_what_they_need():
    told = plan_findings("f", Plan(plan_of([through_switch(0), through_switch(1)]), []))[0]
    assert "NVLink switch (glres: multicast)" in str(told.reason)
    assert "NVLS" not in str(plan_findings("f", Plan(plan_of([packets(0), packets(1)]), []))[0])


def without(gpu, name):
    for block in gpu["threadblocks"]:
        block["ops"] = [op for op in block["ops"] if op["name"] != name]
    return gpu


@pytest.mark.parametrize(
    ("gpus", "says"),
    [
        ([without(put_with_signal(0), "wait"), put_with_signal(1)], "nothing orders them"),
        ([without(put_with_signal(0), "pws"), put_with_signal(1)], "waits for ever: there are 0"),
        ([without(put_with_signal(0), "barrier"), put_with_signal(1)], "nothing"),
        ([without(packets(0), "ppkt"), packets(1)], "where nothing was written"),
        ([packets(0)], "rank 1; there are 1"),
        ([{**packets(0), "scratch_chunks": 1}, packets(1)], "chunk 1 of s on rank 0; it has 1"),
        ([{**packets(0), "remote_buffers": []}, packets(1)], "remote buffer 0; there are 0"),
    ],
)
def test_unsound_plans_are_refused(gpus, says):
    with pytest.raises(rl.RoundelayError, match=says):
        prove_mscclpp(plan_of(gpus))


def test_groups_of_thread_blocks_and_strange_operations_are_named():
    gpu = packets(0)
    gpu["threadblocks"][0]["ops"][0]["tbg_info"] = {"tb_id": 0, "tbg_size": 2}
    with pytest.raises(rl.RoundelayError, match="read, but not proved"):
        prove_mscclpp(plan_of([gpu, packets(1)]))
    gpu = packets(0)
    gpu["threadblocks"][0]["ops"][0]["name"] = "teleport"
    with pytest.raises(rl.RoundelayError, match=r"\(teleport\) is not known"):
        prove_mscclpp(plan_of([gpu, packets(1)]))
    with pytest.raises(rl.RoundelayError, match="no execution plan"):
        read_mscclpp(b'{"name": 3}')


@pytest.mark.skipif(not DATA, reason="ROUNDELAY_DATA names no folder")
def test_given_plans_are_proved():
    for path in sorted(Path(DATA or ".", "cases/plan").iterdir()):
        data = path.read_bytes()
        proved = (prove_msccl(read_msccl(data)) if path.suffix == ".xml"
                  else [prove_mscclpp(read_mscclpp(data))])  # fmt: skip
        assert proved
        assert all(proved), path.name


def test_many_random_orders_of_waits():
    """A file whose thread blocks stand in another order is the same algorithm."""
    algo = to_msccl(rl.build("all_gather/ring", 5))
    chance = random.Random(3)
    for _ in range(5):
        gpus = []
        for gpu in algo.gpus:
            turn = list(range(len(gpu.blocks)))
            chance.shuffle(turn)
            where = {old: new for new, old in enumerate(turn)}
            blocks = tuple(
                dataclasses.replace(gpu.blocks[old], steps=tuple(
                    dataclasses.replace(s, after=s.after and (where[s.after[0]], s.after[1]))
                    for s in gpu.blocks[old].steps))
                for old in turn
            )  # fmt: skip
            gpus.append(dataclasses.replace(gpu, blocks=blocks))
        assert all(prove_msccl(dataclasses.replace(algo, gpus=tuple(gpus))))
