"""Names of facts: which words stand for which of them, and labels of series."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import Final

GBPS: Final = MappingProxyType(
    {"GBps": 1.0, "GBs": 1.0, "GB/s": 1.0, "gbytes": 1.0, "Gbps": 0.125, "Gbs": 0.125,
     "Gb/s": 0.125, "gbps": 0.125, "Gbit": 0.125, "TBps": 1e3, "Tbps": 125.0, "MBps": 1e-3,
     "MB/s": 1e-3}
)  # fmt: skip
"""Units in a name, in GB/s."""
COUNTS: Final = MappingProxyType(
    {
        name: field
        for field, names in {
            "ranks": "gpus ranks n gpu_count num_gpus n_gpus total_gpus world_size cards nranks",
            "nodes": "nodes hosts num_nodes node_count n_nodes servers machines num_hosts nnodes",
            "cards": "gpus_per_node cards_per_node gpus_per_host ranks_per_node gpu_per_node ppn "
                     "processes_per_node gpus_per_server nproc_per_node",
            "nics": "nics_per_node nics num_nics nic_count nics_per_host nics_per_server hcas "
                    "hcas_per_node ib_cards rails rails_per_node efa_per_node network_cards",
            "links": "links nvlinks nvlink_links num_links links_per_gpu nvlink_count",
            "max_bytes": "max_bytes", "chunk_bytes": "chunk_bytes",
            "connections": "qps connections", "iterations": "iters iterations n_iters",
            "ports": "ports_in_bond bond_ports bonded_ports",
            "table_ranks": "ranks_printed_per_table ranks_per_table",
            "wrong": "wrong wrong_elements wrong_results out_of_bounds errors_wrong",
        }.items()
        for name in names.split()
    }
)  # fmt: skip
"""Fields of `Facts` that are whole numbers, by the names that give them."""
MEASURES: Final = MappingProxyType(
    {"ms": 1e-3, "us": 1e-6, "seconds": 1.0, "s": 1.0, "sec": 1.0, "bytes": 1.0}
)
"""Last words of names of times and sizes, in seconds and bytes."""
RATES: Final[tuple[tuple[frozenset[str], str], ...]] = tuple(
    (frozenset(words.split()), name)
    for words, name in (
        ("memory hbm dram pcie pci", ""),
        ("conn connection", "per_connection"),
        ("before", "before"),
        ("after", "after"),
        ("compared", ""),
        ("advertised datasheet marketed spec official rated nominal", "advertised"),
        ("expected expects expect expectation theory theoretical should", "expected"),
        ("avg average mean", "average"),
        ("busbw bus", "busbw"),
        ("algbw", "algbw"),
        ("maxbw usable", "usable"),
        ("perftest", "wire_test"),
        ("rdma", "printed_rdma"),
        ("nvl", "printed_nvlink"),
        ("port", "port"),
        ("nic hca", "nic"),
        ("ib roce infiniband ethernet network fabric efa", "network"),
        ("link", "link_usable"),
        ("paper measured reported peak got achieved observed actual result bandwidth bw",
         "measured"),
    )
)  # fmt: skip
"""Fields that are rates, by words of which one is in the name; the first that fits."""
BOTH: Final = frozenset(("bidirectional", "duplex", "bidir", "both"))
"""Words of a rate that adds both directions."""
MACHINES: Final = frozenset(("instance", "vm", "shape", "machine", "sku", "system", "platform",
                              "server", "cloud"))  # fmt: skip
LABEL_RANKS: Final = re.compile(r"(\d{1,9}) ?(?:gpus?|cards?|ranks?)", re.I)
LABEL_NODES: Final = re.compile(r"(\d{1,9}) ?(?:nodes?|hosts?)", re.I)
LABEL_LAYOUT: Final = re.compile(
    r"(\d{1,4}) ?(?:gpus?|cards?|ranks?)(?: (?:per|a|each|/) ?|/| on each )(?:node|host|server)"
    r"(?:,? ?(?:x|on)? ?(\d{1,6}) ?(?:nodes?|hosts?|servers?))?|"
    r"(\d{1,6}) ?(?:nodes?|hosts?|servers?)(?:,| ?x| with)? ?(\d{1,4}) ?(?:gpus?|cards?|ranks?)"
    r"(?: (?:per|a|each)(?: (?:node|host|server))?)?", re.I)  # fmt: skip
LABEL_VERSION: Final = re.compile(r"(?:[nr]ccl[ -]?v?)?(\d+\.\d+[\w.+-]*)", re.I)
LABEL_PAIR: Final = re.compile(r"([^,\s]+)(?:\s*(?:,|<-+>|-+>|/|\bto\b)\s*|\s+-+\s+)([^,\s]+)|"
                                r"([^,\s-]+)-([^,\s-]+)")  # fmt: skip
SETTING: Final = re.compile(
    r"\b((?:NCCL|RCCL|CUDA|HSA|FI|UCX)_[A-Z0-9_]{2,40})\s*=\s*([^\s,;\"']{1,99})"
)
