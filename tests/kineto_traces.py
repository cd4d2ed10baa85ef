"""Small traces of PyTorch's profiler, made by hand, for the tests of what reads them."""

import json

BASE = 1_700_000_000_000_000_000


def kernel(name, begin, end, stream=7, **args):
    """A kernel; times in us."""
    return {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": stream, "ts": begin,
            "dur": end - begin, "args": {"stream": stream, "device": 0} | args}  # fmt: skip


def gemm(begin, end, **args):
    """Work that communicates nothing."""
    return kernel("void gemm<128>(Params)", begin, end, **args)


def nccl(
    begin, end, seq=1, ranks=(0, 1), name="allreduce", group="0", nelems=1 << 20, stream=20, **more
):
    """A collective's kernel, with the fields of torch 2.13."""
    return kernel(
        "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgs)", begin, end, stream,
        **{"Collective name": name, "In msg nelems": nelems, "Out msg nelems": nelems,
           "Group size": len(ranks), "dtype": "Float", "Process Group Name": group, "Seq": seq,
           "Process Group Ranks": str(list(ranks))} | more,
    )  # fmt: skip


def step(number, begin, end):
    """An iteration."""
    return {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{number}", "pid": 1,
            "tid": 1, "ts": begin, "dur": end - begin}  # fmt: skip


def trace(events, rank=0, world=2, **more):
    """A whole file."""
    head = {"schemaVersion": 1, "baseTimeNanoseconds": BASE,
            "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": world,
                                "pg_config": [{"pg_name": "0", "pg_desc": "default_pg",
                                               "ranks": list(range(world))}]}}  # fmt: skip
    return json.dumps(head | {"traceEvents": events, "traceName": "t.json"} | more).encode()
