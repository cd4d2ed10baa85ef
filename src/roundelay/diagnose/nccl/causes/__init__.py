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

__all__ = ["ASKED", "CAUSES", "EXPLAINED", "FOLLOWS", "LATER", "Cause", "spelled"]

CAUSES: Final = (
    *PROGRAM, *MEMORY, *SOCKETS, *LIBFABRIC, *PLUGINS, *RDMA, *LAYOUT, *CARDS, *WINDOWS,
)  # fmt: skip
"""What is looked for, the more certain first: the first that fits is told."""
EXPLAINED: Final = MappingProxyType(
    {
        "buffer_not_registered": ("nvls_failed",),
        "ras_port": ("no_port",),
        "proxy_failed": ("peer_lost",),
        "nvls_full": ("nvls_failed", "out_of_memory"),
        "experts_silent": ("program_failed", "call_refused", "helper_without_card", "card_failed"),
        "program_failed": ("call_refused", "helper_without_card", "card_failed", "launch_refused"),
        "card_broken": ("call_refused", "helper_without_card", "card_failed", "program_failed"),
    }
)
"""Kinds that say nothing more beside the one that they follow from."""
FOLLOWS: Final = re.compile(
    r"Call to open failed|Socket recv failed|retcode \d|Failed to execute operation|recv failed|"
    r"Connection closed by|Error encountered progressing|Proxy Call to rank|Proxy thread error|"
    r"encountered a fatal error|ibv_(?:destroy|dereg)|Poll failed|ibv_get_async_event failed|"
    r"Got CQE with error|thread\] Accept "
    r"failed|OFI NCCL failure|sync deviceStream error|failed in destroy/abort",
    re.I,
)
"""Of lines that come after another error."""
ASKED: Final = re.compile(r"Failed to CUDA (?:calloc|malloc|host alloc)")
"""Of lines that tell of memory that was not to be had, behind the error of CUDA's that says why."""
LATER: Final = ("flushed", "peer_lost", "shutting_down", "communicator_unusable", "torn_down",
                "proxy_failed", "peer_silent", "too_early",
                "helper_without_card")  # fmt: skip
"""Kinds that say nothing beside another fault."""
