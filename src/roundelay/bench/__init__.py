"""Measure collectives as nccl-tests does, ours and those of other libraries, in one run.

A controller starts every side once, as a job of processes that connect back to it. For each point
of the grid the sides take turns in blocks of calls, so that a slow moment of the machine meets all
alike. One barrier, which belongs to no library, stands before every call, and the time of a call
goes from the first rank's start to the last rank's end.
"""
