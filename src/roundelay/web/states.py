"""The state of a view, as it stands in the page's address, and the data that it needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final
from urllib.parse import urlencode

from ..collectives import UnknownName
from .clusters import NO_FILES, Clusters
from .data.around import around
from .data.curves import curves
from .jobs import EXAMPLE as EXAMPLE_JOBS
from .walks import EXAMPLE

Asked = tuple[str, dict[str, str]]
"""The name of a view's data, and its parameters as text."""

PLAYED: Final = ("collective", "algorithm", "n", "size", "cluster", "root", "params", "drop")
CURVED: Final = ("collective", "cluster")
TIMED: Final = ("collective", "algorithm", "n", "params", "root", "size", "cluster")


def _player(state: Mapping[str, str], _: Clusters) -> Iterator[Asked]:
    """As `views/player.js` asks: the parameters and what is left out are the first one's."""
    start = {"collective": "all_reduce", "algorithm": "ring", "n": "4", "size": "1M"}
    first = start | {key: value for key, value in state.items() if key in PLAYED and value}
    yield "catalogue", {}
    yield "player", first
    if other := state.get("against"):
        rest = {key: value for key, value in first.items() if key not in ("params", "drop")}
        yield "player", rest | {"algorithm": other}


def _run(state: Mapping[str, str], _: Clusters) -> Iterator[Asked]:
    """As `views/run.js` asks."""
    yield "runs", {}
    for key in ("run", "against"):
        if name := state.get(key) or ("even" if key == "run" else ""):
            yield "run", {"name": name}


def _cluster(state: Mapping[str, str], clusters: Clusters) -> Iterator[Asked]:
    """As `views/cluster.js` asks: what is looked at, and the way to the busiest link."""
    start = {"collective": "all_reduce", "algorithm": "ring", "size": "256M",
             "cluster": "dgx-h100:4"}  # fmt: skip
    given = start | {key: value for key, value in state.items() if key in TIMED and value}
    yield "catalogue", {}
    yield "cluster", given
    looked = {key: state[key] for key in ("first", "last") if state.get(key)}
    chosen = [state["link"]] if state.get("link") else []
    for more in around(given, looked, chosen, clusters):
        yield ("crossing" if "link" in more else "cluster"), given | more


def _curves(state: Mapping[str, str], clusters: Clusters) -> Iterator[Asked]:
    """As `views/curves.js` asks: the algorithms' times on every number of nodes."""
    start = dict(zip(CURVED, ("all_reduce", "dgx-h100"), strict=True))
    given = start | {key: state[key] for key in CURVED if state.get(key)}
    given["cluster"] = given["cluster"].partition(":")[0]
    yield "catalogue", {}
    yield "charts", {}
    for count in curves(**given, nodes=None, clusters=clusters).offered:
        yield "curves", given | {"nodes": str(count)}


def _walk(state: Mapping[str, str], _: Clusters) -> Iterator[Asked]:
    """As `views/walk.js` asks."""
    yield "walks", {}
    yield "walk", {"name": state.get("walk") or EXAMPLE}


def _jobs(state: Mapping[str, str], _: Clusters) -> Iterator[Asked]:
    """As `views/jobs.js` asks."""
    yield "logs", {}
    yield "jobs", {"name": state.get("jobs") or EXAMPLE_JOBS}


def _always(*needs: str) -> Callable[[Mapping[str, str], Clusters], Iterator[Asked]]:
    """Of a view whose data are the same in all its states."""
    return lambda _, __: ((name, {}) for name in needs)


_NEEDS: Final = {
    "player": _player,
    "bucket": _always(),
    "roads": _always("roads"),
    "cluster": _cluster,
    "curves": _curves,
    "run": _run,
    "walk": _walk,
    "jobs": _jobs,
    "stack": _always("stack"),
}
VIEWS: Final = tuple(_NEEDS)
"""The views that can be put into a file."""


def asked(view: str, state: Mapping[str, str], clusters: Clusters = NO_FILES) -> list[Asked]:
    """The data that a view in a state asks for.

    Args:
        view: its name.
        state: its parameters as text.
        clusters: of files, that it may name.

    Raises:
        UnknownName: no such view.
    """
    if view not in _NEEDS:
        raise UnknownName("view", view, VIEWS)
    return list(_NEEDS[view](state, clusters))


def state_text(view: str, state: Mapping[str, str]) -> str:
    """The state as it stands in the address after the ``#``."""
    kept = {key: value for key, value in state.items() if value}
    return f"{view}?{urlencode(kept, safe='/:')}" if kept else view
