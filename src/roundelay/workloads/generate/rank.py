"""A rank of an instance: ``python -m roundelay.workloads.generate.rank SOCKET OPTIONS``."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from time import perf_counter

import msgspec
import numpy as np
import torch

from ...errors import RoundelayError
from .batch import Batch
from .engine import Runner, follow, lead
from .exchange import Exchange, meet
from .gguf_file import GgufFile
from .line import Line
from .messages import Fault, Options, Ready
from .model import Model
from .tokenizer import Tokenizer


def main(name: str, options: Options) -> int:
    """Load this rank's part, and take part until the end.

    Args:
        name: of the front's socket.
        options: the instance's.

    Returns:
        the exit status.
    """
    torch.set_num_threads(options.threads)
    line = Line(name) if os.environ.get("ROUNDELAY_RANK", "0") == "0" else None
    try:
        exchange = meet(options.backend)
        if line:
            tokenizer = Tokenizer(GgufFile(Path(options.model)))
        runner, ready = _load(exchange, options)
        if line:
            line.send([ready])
            lead(runner, Batch(options.batch, options.room, tokenizer), line)
        else:
            follow(runner)
    except RoundelayError as error:
        print(f"roundelay: {error}", file=sys.stderr)
        if line:
            line.send([Fault(str(error))])
        return 1
    exchange.close()
    if line:
        line.close()
    return 0


def _load(exchange: Exchange, options: Options) -> tuple[Runner, Ready]:
    begun = perf_counter()
    model = Model(GgufFile(Path(options.model)), exchange, options.context)
    taken = int((perf_counter() - begun) * 1e6)
    every = exchange.every(np.array([os.getpid(), model.bytes, taken], np.int64))
    pids, sizes, times = every.T.tolist()
    return Runner(model, exchange), Ready(pids, sizes, [us / 1e6 for us in times])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], msgspec.json.decode(sys.argv[2], type=Options)))
