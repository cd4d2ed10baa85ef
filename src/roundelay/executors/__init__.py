"""Schedules for MSCCL and MSCCL++, and back, so that what is written is proved again.

>>> from roundelay import build
>>> from roundelay.executors.algos import prove_msccl
>>> from roundelay.executors.msccl import to_msccl
>>> all(prove_msccl(to_msccl(build("all_reduce/ring", 4))))
True
"""
