"""A batch script for sbatch, with a reason for each line, and the host file of its ranks.

What depends on the version, by Slurm's release notes and manual pages: --segment is from 24.05 on;
topology/block refuses --distribution=arbitrary (26.05).
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator
from typing import Final

from ...errors import RoundelayError
from ...units import format_time
from ..site import at_least
from ..submission import Submission

SEGMENT: Final = "24.05"
"""The version from which on sbatch has --segment."""


def files(job: Submission) -> dict[str, str]:
    """Text by name of the file: the script, and the host of each rank.

    Raises:
        RoundelayError: hosts of another scheduler, or no program.
    """
    if job.site.source == "kubernetes":
        raise RoundelayError("a script for Slurm needs Slurm's hosts; expected --topology with the "
                             "output of `scontrol show topology`")  # fmt: skip
    hosts = "".join(f"{host}\n" for host in job.hosts)
    return {f"{job.name}.sbatch": _script(job), f"{job.name}.hosts": hosts}


def _script(job: Submission) -> str:
    lines = ["#!/bin/bash", *_head(job), "", *_asked(job), "", *_start(job), "", *_launch(job)]
    return "\n".join(lines) + "\n"


def _head(job: Submission) -> Iterator[str]:
    found, version = job.placed, job.site.version
    yield (f"# {job.name}: {len(job.hosts)} ranks on {len(job.used)} hosts. "
           f"Its exchange takes {format_time(found.price.seconds)} a step there")  # fmt: skip
    yield f"# ({job.others})."
    for why in job.because:
        yield f"# - {why}"
    yield (
        f"# For Slurm {version}."
        if version
        else "# The version of Slurm isn't known: only what all since 20.11 have is asked for."
    )
    yield f"# Submit it in the folder of {job.name}.hosts: sbatch {job.name}.sbatch"


def _asked(job: Submission) -> Iterator[str]:
    yield f"#SBATCH --job-name={job.name}"
    if job.whole:
        yield "# All cards of its hosts are taken; others there would share its links."
        yield "#SBATCH --exclusive"
    yield "# The hosts on which the exchange is cheapest. Without --nodelist Slurm chooses; then"
    yield '# order ranks anew: roundelay order ... --nodes "$SLURM_JOB_NODELIST" --for slurm.'
    parts = _parts(job)
    if len(parts) > 1:
        yield "# Hosts have different numbers of ranks, and sbatch asks the same of every host: so"
        yield "# this is a heterogeneous job, a part for each number. Slurm's backfill must be on."
    for number, (each, hosts) in enumerate(parts.items()):
        if number:
            yield "#SBATCH hetjob"
        if job.queue:
            yield f"#SBATCH --partition={job.queue}"
        yield f"#SBATCH --nodes={len(hosts)}"
        yield f"#SBATCH --ntasks-per-node={each}"
        if job.cards:
            yield f"#SBATCH --gpus-per-node={each}"
        yield f"#SBATCH --nodelist={','.join(sorted(hosts))}"
    if len(parts) == 1:
        yield from _close(job)


def _parts(job: Submission) -> dict[int, list[str]]:
    """Hosts by how many ranks they have, the most first."""
    parts: dict[int, list[str]] = {}
    for host, count in Counter(job.hosts).most_common():
        parts.setdefault(count, []).append(host)
    return parts


def _close(job: Submission) -> Iterator[str]:
    """What keeps hosts together where Slurm chooses them."""
    leaves = Counter(job.site.paths[host][-1] for host in job.used if job.site.paths[host])
    if not leaves:
        return
    if job.site.source == "tree":
        yield f"# No more leaf switches than these hosts hang on ({len(leaves)}), also where Slurm"
        yield "# chooses. It waits as long as max_switch_wait says (300 s by default), then goes on"
        yield "# without."
        yield f"#SBATCH --switches={len(leaves)}"
        return
    each = set(leaves.values())
    if len(each) > 1:
        yield "# No --segment: it wants as many hosts in every block, and these are "
        yield f"# {', '.join(f'{n} in {block}' for block, n in leaves.items())}."
    elif at_least(job.site.version, SEGMENT):
        yield f"# Every {min(each)} hosts are in one block; Slurm keeps such segments whole."
        yield f"#SBATCH --segment={min(each)}"
    else:
        known = job.site.version or "a version that isn't known"
        yield f"# No --segment={min(each)}: sbatch has it from {SEGMENT} on; this is {known}."


def _start(job: Submission) -> Iterator[str]:
    yield "set -euo pipefail"
    yield f'hosts="${{SLURM_SUBMIT_DIR:-.}}/{job.name}.hosts" # the host of rank r is in line r + 1'
    yield ('[[ -r $hosts ]] || { echo "$hosts: not there; submit from its folder" >&2; '
           "exit 2; }")  # fmt: skip
    yield "# Rank 0's host: it is not always the first of Slurm's list, which is sorted."
    yield 'export MASTER_ADDR=$(head -n 1 "$hosts")'
    yield "# By the job, so that two that share a host don't meet."
    yield "export MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))"
    yield "# Random, so that no other job can join this one."
    yield "export ROUNDELAY_SECRET=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \\n')"


def _launch(job: Submission) -> Iterator[str]:
    words = " ".join(map(shlex.quote, job.words))
    ranks, nodes, parts = len(job.hosts), len(job.used), len(_parts(job))
    if parts > 1:
        yield "# A step of several parts numbers its tasks part by part, so each looks its rank up:"
        yield from _looked_up(words, ranks, f"--het-group=0-{parts - 1}")
        return
    if job.site.source != "tree":
        yield "# topology/block refuses --distribution=arbitrary, so each task looks its rank up:"
        yield from _looked_up(words, ranks, f"--ntasks={ranks}")
        return
    yield "# -K: a task that fails ends the others, which would wait for it."
    yield "run=(srun -K --distribution=arbitrary)"
    yield "case ${LAUNCHER:-srun} in # sbatch --export=ALL,LAUNCHER=torchrun takes another"
    yield "srun) # one task a rank, on the host of its line, with the variables that torch reads"
    yield f'    SLURM_HOSTFILE=$hosts "${{run[@]}}" --ntasks={ranks} bash -c \''
    yield f"        export RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID WORLD_SIZE={ranks}"
    yield f'        exec python "$@"\' python {words} ;;'
    if job.each:
        yield "launch | torchrun) # one task a host, which starts the ranks of that host"
        yield '    nodes=$(mktemp) && trap \'rm "$nodes"\' EXIT && uniq "$hosts" > "$nodes"'
        yield f"    export SLURM_HOSTFILE=$nodes && run+=(--ntasks={nodes})"
        yield "    if [[ $LAUNCHER == launch ]]; then"
        yield f'        "${{run[@]}}" roundelay launch -n {ranks} {words}'
        yield "    else # a static rendezvous: ranks follow --node-rank, as c10d's don't"
        yield (f"        \"${{run[@]}}\" bash -c 'exec torchrun --nnodes={nodes} "
               f"--nproc-per-node={job.each} \\")  # fmt: skip
        yield ('            --node-rank="$SLURM_PROCID" --master-addr="$MASTER_ADDR" \\')
        yield f'            --master-port="$MASTER_PORT" "$@"\' torchrun {words}'
        yield "    fi ;;"
    else:
        yield "# No torchrun, no roundelay launch: they number ranks host by host, as many on each."
    yield '*) echo "LAUNCHER=$LAUNCHER; expected srun, launch or torchrun" >&2; exit 2 ;;'
    yield "esac"


def _looked_up(words: str, ranks: int, step: str) -> Iterator[str]:
    yield "# the line of the host file that is its host's first, second and so on."
    yield f"export hosts ROUNDELAY_RANKS={ranks} WORLD_SIZE={ranks}"
    yield "export ROUNDELAY_ADDRESS=$MASTER_ADDR:$((MASTER_PORT - 10000))"
    yield f"srun -K {step} bash -c '"
    yield "    export LOCAL_RANK=$SLURM_LOCALID"
    yield ('    export RANK=$(awk -v h="$SLURMD_NODENAME" -v k="$SLURM_LOCALID" \\')
    yield ('        "\\$1 == h && k-- == 0 {print NR - 1}" "$hosts")')
    yield "    export ROUNDELAY_RANK=$RANK"
    yield f'    exec python "$@"\' python {words}'
