"""Running a function of `rank_programs` in real processes, one a rank."""

import os
import secrets
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def environment(rank, ranks, address, secret, node=None):
    """What a rank is told about its job."""
    told = {
        **os.environ,
        "ROUNDELAY_RANK": str(rank),
        "ROUNDELAY_RANKS": str(ranks),
        "ROUNDELAY_ADDRESS": address,
        "ROUNDELAY_SECRET": secret,
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")]),
    }
    if node is not None:
        told["ROUNDELAY_NODE"] = node
    return told


def free_address():
    """An address of this machine on which nothing listens."""
    import socket

    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{s.getsockname()[1]}"


def start(name, ranks, *arguments, nodes=None, environ=None, module="rank_programs", proxy=None):
    """Processes that call `MODULE.NAME(comm, *arguments)`; `nodes` names each rank's node.

    `environ` is for all ranks, or a list with that of each. With a `proxy` all connections lead
    through it.
    """
    given = environ if isinstance(environ, list) else [environ or {}] * ranks
    first = proxy.rank_0 if proxy else free_address()
    address, secret = [first] + [proxy.address if proxy else first] * ranks, secrets.token_hex(8)
    code = f"import {module}; {module}.main({name!r}, {arguments!r})"
    return [
        subprocess.Popen(
            [sys.executable, "-W", "error", "-c", code],
            env={**environment(r, ranks, address[r], secret, nodes[r] if nodes else None),
                 **given[r]},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for r in range(ranks)
    ]  # fmt: skip


def finish(processes, timeout=90):
    """Their exit codes and what they printed; none is left behind."""
    try:
        said = [p.communicate(timeout=timeout)[0] for p in processes]
    finally:
        for p in processes:
            p.kill()
            p.wait()
            p.stdout.close()
    return [p.returncode for p in processes], said


def run(name, ranks, *arguments, timeout=90, **options):
    """Run to the end; every rank must end well."""
    codes, said = finish(start(name, ranks, *arguments, **options), timeout)
    assert codes == [0] * ranks, "\n".join(said)
    return said
