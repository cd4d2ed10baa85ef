"""The backend `roundelay` of torch.distributed, for tensors on the CPU.

>>> import torch.distributed as dist
>>> import roundelay.torch  # needed only where the package is not installed
>>> dist.init_process_group("roundelay")  # or "cpu:roundelay,cuda:nccl"

An installed package is found by torch itself, by its entry point.
"""

from __future__ import annotations

from typing import Any, Final

NAME: Final = "roundelay"


def register() -> None:
    """Make the backend known to torch.distributed, which it is after `import roundelay.torch`."""
    # torch loads its backends at the end of its own import, which this import may have begun.
    import torch.distributed as dist

    if dist.is_available() and NAME.upper() not in dist.Backend._plugins:
        dist.Backend.register_backend(NAME, _make, extended_api=True, devices=["cpu"])


def shrink(timeout: float = 30.0) -> Any:
    """The default process group of the ranks that live; see `roundelay.torch.elastic.shrink`."""
    from .elastic import shrink as made

    return made(timeout)


def _make(options: Any, others: Any) -> Any:
    from .group import ProcessGroup  # loaded when it is used: every program with torch comes here

    return ProcessGroup(options, others)


def __getattr__(name: str) -> Any:
    if name == "run_over":
        from .over import run_over

        return run_over
    if name == "dump":
        from .flight import dump

        return dump
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


register()
