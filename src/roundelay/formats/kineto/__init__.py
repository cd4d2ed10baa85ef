"""Traces of PyTorch's profiler (Kineto), of any size.

The fields are those that torch 2.13 writes, and older versions as far as they have them:
torch/csrc/profiler/kineto_shim.cpp, libkineto/src/output_json.cpp.
"""

from ..note import Note
from .reader import read_kineto
from .trace import Call, Kind, Step, Trace

__all__ = ["Call", "Kind", "Note", "Step", "Trace", "read_kineto"]
