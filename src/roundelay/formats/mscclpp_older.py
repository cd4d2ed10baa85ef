"""Plans of earlier versions of MSCCL++: what they are, without what their operations mean.

Until 2025 keys were `inputChunks`, `connectedTo`, `srcbuff` and the like, and the names of
operations short (python/mscclpp/language/ir.py of MSCCL++ 0.6).
"""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Any, Final

import msgspec

from ..errors import RoundelayError
from .msccl_xml import COLLECTIVES

MARK: Final = b'"inputChunks"'
NAMES: Final = {
    "tpkt": "transform to packet", "ppkt": "put packet", "cpkt": "copy packet",
    "rpkt": "reduce packet", "rspkt": "reduce and send packet", "rppkt": "read and put packet",
    "pws": "put with signal", "pwsf": "put with signal and flush", "rrc": "read, reduce, copy",
    "rrcs": "read, reduce, copy, send", "rs": "reduce, send", "rc": "reduce, copy",
}  # fmt: skip


class _Block(msgspec.Struct):
    ops: list[dict[str, Any]] = []


class _Gpu(msgspec.Struct):
    threadblocks: list[_Block]
    channels: list[dict[str, Any]] = []


class OlderPlan(msgspec.Struct):
    """A whole file."""

    name: str
    collective: str
    protocol: str
    gpus: Annotated[list[_Gpu], msgspec.Meta(min_length=1)]
    inplace: bool = False

    @property
    def ours(self) -> str:
        """Our name of the collective, or the file's where there is none."""
        named = {there: name for name, there in COLLECTIVES.items()}
        return named.get(self.collective, self.collective)

    def operations(self) -> Counter[str]:
        """How many of each kind all ranks have, by longer names where they are known."""
        found = (op.get("name") for gpu in self.gpus for b in gpu.threadblocks for op in b.ops)
        return Counter(NAMES.get(str(name), str(name)[:40]) for name in found)


def read_mscclpp_older(data: bytes) -> OlderPlan:
    """The plan of a file.

    Raises:
        RoundelayError: it is none.
    """
    try:
        return msgspec.json.decode(data, type=OlderPlan)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RoundelayError(f"no execution plan of MSCCL++: {error}") from None
