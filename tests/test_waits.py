"""Who keeps a job of several process groups waiting, by its ranks' flight recorder dumps."""

import json

import pytest

from roundelay.diagnose.given import Given
from roundelay.diagnose.hang.calls import call_findings
from roundelay.diagnose.together import diagnose
from roundelay.formats.flight import read_flight
from roundelay.formats.flight_write import write_flight

DONE, OPEN = "completed", "started"


def made(groups, programs, keep=1000):
    """Dumps as torch writes them: a rank numbers its own groups, and keeps its last entries.

    Args:
        groups: ranks by name.
        programs: of each rank the calls (group, operation, state).
        keep: entries.
    """
    found = []
    for rank, program in programs.items():
        own = [name for name, ranks in groups.items() if rank in ranks]
        count, entries, status = dict.fromkeys(own, 0), [], {}
        for record, (group, operation, state, *size) in enumerate(program):
            between = operation.startswith(("send", "recv", "coalesced"))
            count[group] += not between
            number = own.index(group)
            entries.append({
                "record_id": record, "pg_id": number, "process_group": [group, f"about {group}"],
                "collective_seq_id": count[group], "p2p_seq_id": size[0] if size else record,
                "profiling_name": f"nccl:{operation}", "input_sizes": [[8]],
                "input_dtypes": ["Float"], "state": state, "retired": state == DONE,
                "is_p2p": between,
            })  # fmt: skip
            at = status.setdefault(str(number), {"last_completed_collective": -1})
            at["last_enqueued_collective"] = count[group]
            if state == DONE:
                at["last_completed_collective"] = count[group]
        value = {
            "version": "2.10", "pg_status": status, "entries": entries[-keep:],
            "pg_config": {name: {"name": name, "ranks": str(groups[name])} for name in own},
        }  # fmt: skip
        found.append((f"rank{rank}", json.dumps(value).encode()))
    return found


def found_in(dumps):
    return call_findings([read_flight(data, name)[0] for name, data in dumps])


def grid(tensor, data):
    """Eight ranks in pairs (t0 to t3) that also belong to two groups of four (d0, d1)."""
    groups = {"0": list(range(8))}
    groups |= {f"t{i}": [2 * i, 2 * i + 1] for i in range(4)}
    groups |= {f"d{i}": [i, i + 2, i + 4, i + 6] for i in range(2)}
    start = [("0", "barrier", DONE)]
    step = {r: [(f"t{r // 2}", "all_reduce", DONE)] * 5 + [(f"d{r % 2}", "all_reduce", DONE)]
            for r in range(8)}  # fmt: skip
    programs = {r: start + step[r] * 3 for r in range(8)}
    for rank in range(8):
        programs[rank] += tensor.get(rank, [(f"t{rank // 2}", "all_reduce", DONE)] * 5)
        programs[rank] += data.get(rank, [(f"d{rank % 2}", "all_reduce", OPEN)])
    return groups, programs


LATE = ({3: [("t1", "all_reduce", DONE)] * 2,
         2: [("t1", "all_reduce", DONE)] * 2 + [("t1", "all_reduce", OPEN)]},
        {3: [], 2: []})  # fmt: skip
"""Rank 3 stops in its pair; so rank 2 waits there, and all others in d0 and d1 for these two."""


@pytest.mark.parametrize("keep", [1000, 8])
def test_the_rank_that_all_wait_for_is_named_and_no_other(keep):
    dumps = made(*grid(*LATE), keep=keep)
    off = [finding for finding in found_in(dumps) if finding.fault]
    assert [finding.kind for finding in off] == ["never_called"]
    assert off[0].figures["late"] == "3"
    assert off[0].figures["waiting"] == "2"
    assert off[0].figures["held"] == "0, 1, 4, 5, 6, 7"
    assert off[0].figures["groups"] == "d0, d1"
    assert off[0].subject.startswith("group t1")


def test_a_rank_without_a_dump_is_told_once():
    dumps = [one for one in made(*grid(*LATE)) if one[0] != "rank3"]
    off = [finding for finding in found_in(dumps) if finding.fault]
    assert [finding.kind for finding in off] == ["missing_dump"]
    assert off[0].figures["missing"] == "3"
    assert "Rank 2 wait for it in sequence 18" in str(off[0].reason)


def test_a_call_that_all_have_come_to_is_the_root_of_what_waits_behind():
    stuck = {r: [("t1", "all_reduce", OPEN)] for r in (2, 3)}
    off = [f for f in found_in(made(*grid(stuck, {2: [], 3: []}))) if f.fault]
    assert [finding.kind for finding in off] == ["stuck_together"]
    assert off[0].subject.startswith("group t1")
    assert off[0].figures["held"] == "0, 1, 4, 5, 6, 7"


def test_groups_in_which_all_is_well_are_told_together():
    groups, programs = grid({}, {r: [(f"d{r % 2}", "all_reduce", DONE)] for r in range(8)})
    assert [f.kind for f in found_in(made(groups, programs))] == ["matched"]
    told = str(found_in(made(groups, programs, keep=12))[0].reason)
    assert "In each of 6 groups" in told
    assert "0," not in told.partition("(")[2].partition(")")[0].split("t")[0]


def test_a_group_that_a_full_buffer_has_forgotten_is_not_taken_for_late():
    groups, programs = grid({}, {r: [(f"d{r % 2}", "all_reduce", DONE)] for r in range(8)})
    programs[0] += [("t0", "all_reduce", DONE)] * 9
    programs[1] += [("t0", "all_reduce", DONE)] * 9
    programs[2] += [("d0", "all_reduce", OPEN)]
    dumps = made(groups, programs, keep=8)
    data = json.loads(dumps[0][1])
    del data["pg_status"]  # older versions do not tell
    dumps[0] = (dumps[0][0], json.dumps(data).encode())
    late = next(finding for finding in found_in(dumps) if finding.fault)
    assert late.figures["late"] == "4, 6"


def test_pipelines_wait_in_messages():
    groups = {"0": [0, 1, 2], "p": [0, 1, 2]}
    programs = {
        0: [("p", "send 0->1", DONE), ("p", "send 0->1", OPEN)],
        1: [("p", "recv 1<-0", DONE)],
        2: [("p", "recv 2<-1", OPEN)],
    }
    found = found_in(made(groups, programs))
    assert found[0].kind == "never_called"
    assert found[0].figures["late"] == "1"
    assert not [finding for finding in found if finding.kind == "matched"]
    programs[1] += [("p", "send 1->2", OPEN)]
    found = found_in(made(groups, programs))
    assert found[0].kind == "stuck_together"
    assert found[0].figures["operation"] in {"recv 2<-1", "send 1->2"}
    assert found[0].figures["held"] == "0"


def test_messages_begun_together_end_with_the_whole():
    groups = {"p": [4, 6]}
    both = [("p", "send 0->1", "scheduled", 7), ("p", "recv 0<-1", "scheduled", 7)]
    there = [("p", "recv 1<-0", "scheduled", 7), ("p", "send 1->0", "scheduled", 7)]
    whole = ("p", "coalesced", DONE, 7)
    assert not [
        f for f in found_in(made(groups, {4: [*both, whole], 6: [*there, whole]})) if f.fault
    ]
    late = found_in(made(groups, {4: [*both, ("p", "coalesced", OPEN, 7)], 6: []}))[0]
    assert late.figures["late"] == "6"


def test_ranks_that_wait_for_one_another_in_two_groups():
    groups = {"a": [0, 1], "b": [0, 1]}
    programs = {0: [("a", "all_reduce", OPEN)], 1: [("b", "all_gather", OPEN)]}
    dumps = [Given(name, data=data) for name, data in made(groups, programs)]
    off = [f for f in diagnose(dumps, None, None, None).findings if f.fault]
    assert [finding.kind for finding in off] == ["deadlock"]
    assert "rank 0 in group a, all_reduce, sequence 1, for rank 1" in str(off[0].reason)
    programs[0].append(("b", "all_gather", OPEN))
    programs[1].append(("a", "all_reduce", OPEN))
    dumps = [Given(name, data=data) for name, data in made(groups, programs)]
    off = [f for f in diagnose(dumps, None, None, None).findings if f.fault]
    assert off[0].kind == "may_deadlock"


def test_dumps_of_different_moments_are_no_hang():
    groups = {"0": [0, 1]}
    call = ("0", "all_reduce", DONE)
    found = found_in(made(groups, {0: [call] * 5, 1: [call] * 7}))
    assert [(f.kind, f.fault) for f in found] == [("counts_differ", False)]


def test_one_dump_of_many_is_not_taken_for_deaths():
    found = found_in(made({"0": list(range(8))}, {2: [("0", "all_reduce", DONE)]}))
    missing = next(f for f in found if f.kind == "missing_dump")
    assert not missing.fault
    assert "1 of 8 are" in str(missing.reason)


def test_one_dump_that_waits_does_not_say_who_is_dead():
    found = found_in(made({"0": list(range(8))}, {2: [("0", "all_reduce", OPEN)]}))
    assert [f.kind for f in found] == ["missing_dump"]
    assert "cannot be told" in str(found[0].reason)
    assert "died" not in str(found[0].reason)


def test_numbers_of_groups_are_those_of_the_rank():
    groups, programs = grid(*LATE)
    name, data = made(groups, programs)[7]
    dump = read_flight(data, name)[0]
    assert dump.enqueued == {"0": 1, "t3": 20, "d1": 4}
    again = read_flight(write_flight(dump), name)[0]
    assert (again.enqueued, again.completed) == (dump.enqueued, dump.completed)
