"""Execution traces: Chakra's, as protobuf and as JSON, and those that PyTorch's observer writes.

Fields and their numbers are those of mlcommons/chakra, schema/protobuf/et_def.proto, and of
torch/csrc/profiler/standalone/execution_trace_observer.cpp (schemas 1.0 and 1.1).
"""

from .gathered import gathered_graphs
from .graph import Attribute, Graph, Node, NodeKind
from .reader import read_chakra
from .writer import write_chakra

__all__ = [
    "Attribute",
    "Graph",
    "Node",
    "NodeKind",
    "gathered_graphs",
    "read_chakra",
    "write_chakra",
]
