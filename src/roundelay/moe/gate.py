"""The gate: which experts a token goes to."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from ..errors import RoundelayError
from ..files import read_file

LARGEST: Final = 2**32
"""Bytes of a file of scores."""
MOST_SKEW: Final = 4.0
"""With it 1 / zeta(4), 92 %, of all weight is the first expert's."""
Ints = npt.NDArray[np.integer[Any]]
Floats = npt.NDArray[np.floating[Any]]


class Choice(NamedTuple):
    """What a gate chose.

    Attributes:
        experts: [token, k], rising in each row.
        weights: [token, k], their scores, which add up to 1 in each row.
    """

    experts: Ints
    weights: Floats


def uniform_scores(tokens: int, experts: int, seed: int = 0) -> Floats:
    """[token, expert] independent scores, uniform between 0 and 1."""
    for name, value, low in (("tokens", tokens, 0), ("experts", experts, 1)):
        _check(name, value, low)
    return np.random.default_rng(seed).random((tokens, experts))


def skewed_scores(tokens: int, experts: int, skew: float, seed: int = 0) -> Floats:
    """[token, expert] scores between 0 and 1 of a gate that likes some experts more than others.

    The k-th most liked expert has the weight k^-skew, as in Zipf's law. With the top scores alone
    a token goes to experts that are drawn without replacement by their weights: the times E/w of
    exponential draws E, of which the shortest count (Efraimidis and Spirakis, Information
    Processing Letters 97, 2006), here as w / (w + E). Which expert is how liked is drawn, too.

    Args:
        tokens: rows.
        experts: columns.
        skew: the exponent, 0 (all alike) to `MOST_SKEW`.
        seed: of all draws.

    Raises:
        RoundelayError: numbers out of range.
    """
    for name, value, low in (("tokens", tokens, 0), ("experts", experts, 1)):
        _check(name, value, low)
    if not 0 <= skew <= MOST_SKEW:
        raise RoundelayError(f"skew = {skew:g}; expected 0 (all experts alike) to {MOST_SKEW:g}")
    dice = np.random.default_rng(seed)
    weights = (1.0 + dice.permutation(experts)) ** -skew
    weights /= weights.mean()
    scores: Floats = weights / (weights - np.log1p(-dice.random((tokens, experts))))
    return scores


def read_scores(path: Path) -> Floats:
    """[token, expert] scores of a file that `numpy.save` wrote.

    Raises:
        RoundelayError: it is no such file, or holds something else.
        OSError: it cannot be read.
    """
    try:
        found = np.load(io.BytesIO(read_file(path, LARGEST)), allow_pickle=False)
    except (RoundelayError, OSError):
        raise
    except Exception:  # its header is Python, so that anything may come of it
        raise RoundelayError(f"{path} is no array as numpy.save writes it; expected floats of "
                             "shape (tokens, experts)") from None  # fmt: skip
    if not isinstance(found, np.ndarray):
        raise RoundelayError(f"{path} holds several arrays; expected one, as numpy.save writes it")
    return _scores(found, str(path))


def choose(
    scores: npt.ArrayLike, top_k: int, groups: int = 1, max_groups: int | None = None
) -> Choice:
    """The `top_k` experts of the highest scores, in the best groups only.

    The score of a group is the sum of its two best experts (DeepSeek-V3, arXiv 2412.19437, which
    has 8 groups of 32 experts, one a node, of which 4 are kept).

    Args:
        scores: [token, expert], finite.
        top_k: experts of a token.
        groups: equal runs of experts.
        max_groups: groups that a token may go to; without it, all.

    Raises:
        RoundelayError: numbers that do not go together.
    """
    scores = _scores(np.asarray(scores), "scores")
    tokens, experts = scores.shape
    _check("groups", groups, 1)
    if experts % groups:
        raise RoundelayError(f"{groups} groups do not divide {experts} experts; expected a divisor")
    kept = groups if max_groups is None else _check("max_groups", max_groups, 1)
    kept = min(kept, groups)
    each = experts // groups
    if not 1 <= _check("top_k", top_k, 1) <= kept * each:
        raise RoundelayError(f"top_k = {top_k}; expected 1 to {kept * each}, the experts of "
                             f"{kept} groups")  # fmt: skip
    masked = scores
    if kept < groups:
        in_groups = np.sort(scores.reshape(tokens, groups, each), axis=2)
        worth = in_groups[:, :, -2:].sum(axis=2)
        best = np.argpartition(-worth, kept - 1, axis=1)[:, :kept]
        open_ = np.zeros((tokens, groups), np.bool_)
        np.put_along_axis(open_, best, True, axis=1)
        masked = np.where(np.repeat(open_, each, axis=1), scores, -np.inf)
    chosen = np.sort(np.argpartition(-masked, top_k - 1, axis=1)[:, :top_k], axis=1)
    weights = np.take_along_axis(scores, chosen, axis=1)
    total = weights.sum(axis=1, keepdims=True)
    weights = np.divide(weights, total, out=np.full_like(weights, 1 / top_k), where=total > 0)
    return Choice(chosen, weights)


def _scores(scores: npt.NDArray[Any], what: str) -> Floats:
    if scores.ndim != 2 or scores.dtype.kind != "f" or not scores.shape[1]:
        raise RoundelayError(f"{what}: {scores.dtype} of shape {scores.shape}; expected floats of "
                             "shape (tokens, experts)")  # fmt: skip
    if not np.isfinite(scores).all():
        raise RoundelayError(f"{what}: a score is not finite; expected numbers")
    most = np.finfo(scores.dtype).max / (2 * scores.shape[1])
    if scores.size and max(scores.max(), -scores.min()) > most:
        raise RoundelayError(f"{what}: a score is too large to be added up; expected at most "
                             f"{most:.3g}")  # fmt: skip
    return scores


def _check(name: str, value: int, low: int) -> int:
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < low:
        raise RoundelayError(f"{name} = {value!r}; expected a whole number from {low} up")
    return int(value)
