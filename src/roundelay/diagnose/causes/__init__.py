"""What lines of NCCL's and RCCL's logs stand for, and what to try: by a part of their text."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import Final

from .cards import CARDS
from .cause import Cause
from .layout import LAYOUT
from .libfabric import LIBFABRIC
from .memory import MEMORY
from .plugins import PLUGINS
from .program import PROGRAM
from .rdma import RDMA
from .sockets import SOCKETS
from .spelled import spelled
from .windows import WINDOWS

__all__ = ["CAUSES", "EXPLAINED", "FOLLOWS", "LATER", "Cause", "spelled"]

CAUSES: Final = (
    *PROGRAM, *MEMORY, *SOCKETS, *LIBFABRIC, *PLUGINS, *RDMA, *LAYOUT, *CARDS, *WINDOWS,
)  # fmt: skip
"""What is looked for, the more certain first: the first that fits is told."""
EXPLAINED: Final = MappingProxyType(
    {"buffer_not_registered": ("nvls_failed",), "ras_port": ("no_port",)}
)
"""Kinds that say nothing more beside the one that they follow from."""
FOLLOWS: Final = re.compile(
    r"Call to open failed|Socket recv failed|retcode \d|Failed to execute operation|recv failed|"
    r"Connection closed by|Error encountered progressing|Proxy Call to rank|Proxy thread error|"
    r"encountered a fatal error|ibv_get_async_event failed|Got CQE with error|thread\] Accept "
    r"failed",
    re.I,
)
"""Of lines that come after another error."""
LATER: Final = ("flushed", "peer_lost", "shutting_down", "communicator_unusable", "torn_down",
                "proxy_failed")  # fmt: skip
"""Kinds that say nothing beside another fault."""
