"""Cost formulas: text one reads in a table, and the exact value of that text.

Names in a formula: n ranks, S bytes (in nccl-tests' sense), the algorithm's parameters, and
those below. Values are exact fractions, so that a card can be compared with what is counted.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from types import CodeType, MappingProxyType
from typing import Any, Final

from ..errors import RoundelayError


def ceil_log(x: int, base: int = 2) -> int:
    """The least k with base**k >= x."""
    k = 0
    while base**k < x:
        k += 1
    return k


def floor_log(x: int, base: int = 2) -> int:
    """The largest k with base**k <= x, for x >= 1."""
    return ceil_log(x + 1, base) - 1


def pow2_below(n: int) -> int:
    """The largest power of two not above n."""
    return int(2 ** floor_log(n))


def pow2_above(n: int) -> int:
    """The smallest power of two not below n."""
    return int(2 ** ceil_log(n))


def nonzero_digits(n: int, base: int) -> int:
    """Nonzero base-`base` digits in the numbers 0 .. n - 1 together."""
    total, place = 0, 1
    while place < n:
        whole, rest = divmod(n, place * base)
        total += whole * place * (base - 1) + max(0, min(rest, place * base) - place)
        place *= base
    return total


FUNCTIONS: Final[Mapping[str, Any]] = MappingProxyType(
    {
        "ceil": math.ceil,
        "min": min,
        "max": max,
        "sum": sum,
        "range": range,
        "ceil_log": ceil_log,
        "floor_log": floor_log,
        "pow2_below": pow2_below,
        "pow2_above": pow2_above,
        "nonzero_digits": nonzero_digits,
    }
)


def evaluate(formula: str, names: Mapping[str, Any]) -> Fraction:
    """The value of a formula, as an exact fraction.

    Raises:
        RoundelayError: the formula is no arithmetic expression, or uses an unknown name.
    """
    scope = {"__builtins__": {}, "Fraction": Fraction, **FUNCTIONS, **names}
    try:
        return Fraction(eval(_compiled(formula), scope))
    except Exception as error:
        raise RoundelayError(f"cost formula {formula!r}: {error}") from None


@cache
def _compiled(formula: str) -> CodeType:
    tree = ast.parse(formula, mode="eval")
    return compile(ast.fix_missing_locations(_Exact().visit(tree)), formula, "eval")


class _Exact(ast.NodeTransformer):
    """Make ``a / b`` exact by making a a fraction."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.op, ast.Div):
            call = ast.Call(ast.Name("Fraction", ast.Load()), [node.left], [])
            return ast.BinOp(call, ast.Div(), node.right)
        return node
