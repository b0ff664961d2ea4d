"""What kind of machine this is, as far as it matters for host memory and the link."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Surroundings:
    """`gpu_node` and `nodes` are NUMA node ids; None and () where the system has none."""

    is_wsl: bool
    in_container: bool
    nodes: tuple[int, ...]  # that this process may run on
    gpu_node: int | None

    @property
    def on_wrong_node(self) -> bool | None:
        """Whether no core of this process is on the GPU's node; None where unknown."""
        if self.gpu_node is None or not self.nodes:
            return None
        return self.gpu_node not in self.nodes

    def notes(self) -> list[str]:
        """Sentences for a person; none where nothing is special."""
        found = []
        if self.is_wsl:
            found.append(
                "WSL2: about half of the memory can be page-locked and copies pass the hypervisor; "
                "raise memory= in .wslconfig"
            )
        if self.in_container:
            found.append(
                "container: the memory limit is the cgroup's; page-locking may need "
                "--ulimit memlock=-1"
            )
        if self.on_wrong_node:
            found.append(
                f"the GPU is on NUMA node {self.gpu_node}, this process on "
                f"{', '.join(map(str, self.nodes))}: run it under numactl --cpunodebind="
                f"{self.gpu_node} --membind={self.gpu_node}"
            )
        elif len(self.nodes) > 1:
            found.append(
                f"{len(self.nodes)} NUMA nodes: memory far from the GPU is slower; "
                "numactl binds both"
            )
        return found


def bus_id(device: Any) -> str | None:
    """PCI address of a CUDA device; None where an older torch does not say."""
    import torch

    card: Any = torch.cuda.get_device_properties(device)
    if not hasattr(card, "pci_bus_id"):
        return None
    domain = getattr(card, "pci_domain_id", 0)
    return f"{domain:04x}:{card.pci_bus_id:02x}:{card.pci_device_id:02x}.0"


def surroundings(gpu_bus_id: str | None = None, root: Path = Path("/")) -> Surroundings:
    """Reads /proc and /sys below `root`. `gpu_bus_id` is PCI's, like 0000:01:00.0."""
    release = text_of(root / "proc/sys/kernel/osrelease").lower()
    marks = ("docker", "containerd", "kubepods", "libpod", "lxc")
    groups = text_of(root / "proc/self/cgroup") + text_of(root / "proc/1/cgroup")
    in_container = any((root / name).exists() for name in (".dockerenv", "run/.containerenv"))
    return Surroundings(
        is_wsl="microsoft" in release or "wsl" in release,
        in_container=in_container or any(mark in groups for mark in marks),
        nodes=_nodes_of(_affinity(), root),
        gpu_node=_gpu_node(gpu_bus_id, root),
    )


def _affinity() -> set[int]:
    return set(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else set()


def _nodes_of(cores: set[int], root: Path) -> tuple[int, ...]:
    found = []
    for folder in (root / "sys/devices/system/node").glob("node[0-9]*"):
        if cores & _cores(text_of(folder / "cpulist")):
            found.append(int(folder.name.removeprefix("node")))
    return tuple(sorted(found))


def _cores(text: str) -> set[int]:
    """`0-3,8` -> {0, 1, 2, 3, 8}"""
    cores: set[int] = set()
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        if first.isdigit():
            cores.update(range(int(first), int(last or first) + 1))
    return cores


def _gpu_node(bus_id: str | None, root: Path) -> int | None:
    if bus_id is None:
        return None
    text = text_of(root / "sys/bus/pci/devices" / bus_id.lower() / "numa_node").strip()
    return int(text) if text.isdigit() else None  # -1: the board does not say


def text_of(path: Path) -> str:
    """Empty where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
