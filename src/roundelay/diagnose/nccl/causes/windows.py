"""Causes in what kernels themselves ask of NCCL: symmetric memory, GIN, and GDRCopy.

Sources of the words: NCCL's dev_runtime.cc, symmetric kernels, gin/*.cc, gdaki and gdrwrap.
"""

from __future__ import annotations

from typing import Final

from .cause import cause

WINDOWS: Final = (
    cause("no_symmetric", r"(?P<what>does not support symmetric memory|no symmetric kernel "
          r"available|Multicast support requested for team|Window address must be)", "machine",
          "The program asks for symmetric memory, or a kernel that works on it, which is not to be "
          "had here ({what}): all cards must reach one another by NVLink or PCIe, cuMem must be "
          "on, buffers must be of ncclMemAlloc and registered on all ranks alike, and multicast "
          "wants an NVSwitch.",
          "See nvidia-smi topo -p2p r, that NCCL_CUMEM_ENABLE and NCCL_WIN_ENABLE are not 0 and "
          "NCCL_SYM_KERNEL is unset; without windows collectives work as before.",
          confidence=0.75),
    cause("no_gdrcopy", r"gdr_open|GDR driver version: \(0|gdrdrv|gdr_(?:pin_buffer|map)\b|"
          r"libgdrapi|GDRCOPY lib", "machine",
          "GDRCopy, by which a processor writes small data straight to a card's memory, is not "
          "to be had: its module gdrdrv is not loaded, the container has no /dev/gdrdrv, or "
          "module and library are of different versions. NCCL goes on without it, unless GIN or "
          "DeepEP asks for it.",
          "modprobe gdrdrv; give the container /dev/gdrdrv; take libgdrapi of the module's "
          "version; run gdrcopy_sanity.", confidence=0.75),
    cause("no_gin", r"GIN(?: is disabled| not supported|-capable| Error)|No GIN|support GDAKI|"
          r"\bdoca[_ ]|\b(?:gpu_)?umem\b|mlx5dv\b|(?:gdaki|gin/)\S* ", "machine",
          "Kernels are to send over the network themselves (GIN, GDAKI), and this network card "
          "or host does not allow it: it wants a ConnectX-6 Dx or later with mlx5 drivers and "
          "firmware that allow queues in a card's memory, nvidia_peermem or DMA-BUF, and the "
          "driver's settings PeerMappingOverride and StreamMemOPs.",
          "See ibv_devinfo (fw_ver) and the driver's options "
          "(NVreg_RegistryDwords=PeerMappingOverride=1); NCCL_GIN_TYPE=2 lets a processor send "
          "instead; NCCL_GIN_ENABLE=0 does without.", confidence=0.7),
)  # fmt: skip
