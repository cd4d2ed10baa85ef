"""Logs of one job, of a process or a host each, as one."""

from __future__ import annotations

from collections.abc import Sequence

from .record import NcclLog, Way


def joined(logs: Sequence[NcclLog]) -> NcclLog:
    """All that the logs hold; processes of two files are never taken for the same one."""
    if len(logs) == 1:
        return logs[0]
    whole = NcclLog()
    for number, log in enumerate(logs):
        whole.lines += log.lines
        whole.others += log.others
        whole.threads |= {b"%d/%b" % (number, key): t for key, t in log.threads.items()}
        whole.versions = log.versions | whole.versions
        whole.systems = log.systems | whole.systems
        whole.environment = log.environment | whole.environment
        whole.interfaces = log.interfaces | whole.interfaces
        whole.results = log.results | whole.results
        whole.searches = log.searches | whole.searches
        whole.nets = whole.nets or log.nets
        whole.transports.update(log.transports)
        whole.measured += log.measured
        whole.health += log.health
        whole.paths += log.paths
        whole.notes += log.notes
        _count(whole, log)
        for key, way in log.networks.items():
            _add(whole.networks.setdefault(key, Way(way.host, way.name)), way)
    return whole


def _count(whole: NcclLog, log: NcclLog) -> None:
    """What is counted by its text."""
    for text, (count, choice) in log.chosen.items():
        whole.chosen.setdefault(text, [0, choice])[0] += count
    for mine, theirs in ((whole.warned, log.warned), (whole.noted, log.noted)):
        for said, (count, first) in theirs.items():
            before, kept = mine.get(said, (0, first))
            mine[said] = before + count, kept


def _add(way: Way, more: Way) -> None:
    way.direct += more.direct
    way.staged += more.staged
    way.staged_sends += more.staged_sends
    way.channels |= more.channels
    way.first_direct = way.first_direct or more.first_direct
    way.first_staged = way.first_staged or more.first_staged
