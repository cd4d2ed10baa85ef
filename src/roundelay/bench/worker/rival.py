"""A worker of a rival: `python .../worker/rival.py gloo|mpi ADDRESS [RANK RANKS STORE]`.

Run by its path, in an environment that has torch, or NumPy and mpi4py, but maybe not Roundelay.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING or __package__:
    from .calls import Calls, Cell, Library, shared_gate
    from .link import Link
    from .pattern import Array
else:
    sys.path[0] = str(Path(__file__).resolve().parents[1])
    from worker.calls import Calls, Cell, Library, shared_gate
    from worker.link import Link
    from worker.pattern import Array

    del sys.path[0]  # so that no module of ours is taken for one of theirs

import numpy as np

Call = Callable[[], Any]


class Mpi:
    """Any MPI, through mpi4py's calls on buffers."""

    _OPS: Final = MappingProxyType(
        {"sum": "SUM", "product": "PROD", "min": "MIN", "max": "MAX", "band": "BAND", "bor": "BOR",
         "bxor": "BXOR"}
    )  # fmt: skip

    def __init__(self) -> None:
        self._mpi = import_module("mpi4py.MPI")
        self._comm = self._mpi.COMM_WORLD
        self.rank, self.ranks = self._comm.rank, self._comm.size
        version = self._mpi.Get_library_version()
        self.version = " ".join(version.replace("\0", "").split("\n")[0].split(",")[0].split())

    def call(self, cell: Cell, x: Array, out: Array) -> Call | None:
        """The call; None for what MPI does not have, such as types of 16 bits or averages."""
        kind = np.dtype(x.dtype)
        if kind.name != cell.dtype or kind.name == "float16":
            return None
        method = getattr(self, f"_{cell.collective}", None)
        sums = cell.collective in ("all_reduce", "reduce", "reduce_scatter")
        if method is None or (sums and cell.op not in self._OPS):
            return None
        op = getattr(self._mpi, self._OPS[cell.op]) if sums else None
        unit = self._mpi.Datatype.fromcode(kind.char)
        made: Call | None = method(cell, [x, unit], [out, unit], op)
        return made

    def _all_reduce(self, cell: Cell, x: Any, out: Any, op: Any) -> Call:
        return partial(self._comm.Allreduce, self._mpi.IN_PLACE if cell.in_place else x, out, op)

    def _reduce(self, cell: Cell, x: Any, out: Any, op: Any) -> Call:
        at_root = self.rank == cell.root
        source = self._mpi.IN_PLACE if cell.in_place and at_root else x
        return partial(self._comm.Reduce, source, out if at_root else None, op, cell.root)

    def _broadcast(self, cell: Cell, x: Any, out: Any, op: Any) -> Call | None:
        return partial(self._comm.Bcast, x, cell.root) if cell.in_place else None

    def _all_gather(self, cell: Cell, x: Any, out: Any, op: Any) -> Call:
        return partial(self._comm.Allgather, self._mpi.IN_PLACE if cell.in_place else x, out)

    def _reduce_scatter(self, cell: Cell, x: Any, out: Any, op: Any) -> Call | None:
        return None if cell.in_place else partial(self._comm.Reduce_scatter_block, x, out, op)

    def _all_to_all(self, cell: Cell, x: Any, out: Any, op: Any) -> Call | None:
        return None if cell.in_place else partial(self._comm.Alltoall, x, out)

    def _gather(self, cell: Cell, x: Any, out: Any, op: Any) -> Call | None:
        target = out if self.rank == cell.root else None
        return None if cell.in_place else partial(self._comm.Gather, x, target, cell.root)

    def _scatter(self, cell: Cell, x: Any, out: Any, op: Any) -> Call | None:
        source = x if self.rank == cell.root else None
        return None if cell.in_place else partial(self._comm.Scatter, source, out, cell.root)

    def empty(self, nbytes: int) -> Array:
        """Ordinary memory."""
        return np.empty(nbytes, np.uint8)

    def close(self) -> None:
        """Leave the job; mpi4py would do so at exit, but then the controller may be gone."""
        self._mpi.Finalize()


class Gloo:
    """torch.distributed over gloo, as torch's users call it."""

    def __init__(self, rank: int, ranks: int, store: str) -> None:
        warnings.simplefilter("ignore")
        self._torch = torch = import_module("torch")
        self._dist = dist = import_module("torch.distributed")
        torch.set_num_threads(1)
        dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=ranks)
        self.rank, self.ranks = rank, ranks
        self.version = f"gloo of torch {torch.__version__}"
        names = ("sum", "product", "min", "max", "band", "bor", "bxor")
        self._ops = {name: getattr(dist.ReduceOp, name.upper()) for name in names}

    def call(self, cell: Cell, x: Array, out: Array) -> Call | None:
        """The call; None for what torch does not have in this form."""
        dist, root = self._dist, cell.root
        a, b = self._tensor(x, cell.dtype), self._tensor(out, cell.dtype)
        op = self._ops.get(cell.op)
        name = cell.collective
        if name in ("all_reduce", "reduce", "reduce_scatter") and op is None:
            return None
        if cell.in_place:
            calls = {
                "all_reduce": partial(dist.all_reduce, a, op),
                "reduce": partial(dist.reduce, a, root, op),
                "broadcast": partial(dist.broadcast, a, root),
            }
            return calls.get(name)
        at_root = self.rank == root
        apart = {
            "all_gather": partial(
                self._either("all_gather_single", "all_gather_into_tensor"), b, a
            ),
            "reduce_scatter": partial(
                self._either("reduce_scatter_single", "reduce_scatter_tensor"), b, a, op
            ),
            "all_to_all": partial(dist.all_to_all_single, b, a),
            "gather": partial(dist.gather, a, self._parts(b) if at_root else None, root),
            "scatter": partial(dist.scatter, b, self._parts(a) if at_root else None, root),
        }
        return apart.get(name)

    def _tensor(self, array: Array, dtype: str) -> Any:
        return self._torch.from_numpy(array).view(getattr(self._torch, dtype))

    def _either(self, *names: str) -> Any:
        return next(getattr(self._dist, n) for n in names if hasattr(self._dist, n))

    def _parts(self, tensor: Any) -> list[Any]:
        return list(tensor.chunk(self.ranks))

    def empty(self, nbytes: int) -> Array:
        """Ordinary memory."""
        return np.empty(nbytes, np.uint8)

    def close(self) -> None:
        """Leave the job."""
        self._dist.destroy_process_group()


def main(kind: str, address: str, *rest: str) -> None:
    """Connect, start the library, obey."""
    link = Link(address)
    library: Library = Mpi() if kind == "mpi" else Gloo(int(rest[0]), int(rest[1]), rest[2])
    link.ready(library.rank, library.version)
    link.serve(Calls(library, shared_gate(link, library)).handlers)
    library.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
