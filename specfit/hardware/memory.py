"""Bytes: what a setting needs on the device, and what this machine's host memory has left."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from specfit.base.types import SpecfitError

GB = 1e9
MOST_RESERVED = 1 << 30
"""Host memory left beside a large store: Python, torch, one dense tensor on its way."""


@dataclass(frozen=True)
class DeviceNeeds:
    """Device bytes of one model, part by part; expert slots and KV grow with the setting."""

    layers: int
    experts: int  # per layer
    expert_bytes: int  # of one expert of one layer
    dense_bytes: int  # attention, norms, routers, embedding, output head
    drafter_bytes: int
    kv_bytes_per_token: int
    workspace_bytes: int

    def rows(self, slots: int, staging_blocks: int, context: int) -> dict[str, int]:
        """Every part by name; `slots` experts per layer, KV of `context` tokens."""
        return {
            "slots": slots * self.layers * self.expert_bytes,
            "staging": staging_blocks * self.expert_bytes,
            "dense weights": self.dense_bytes,
            "draft head": self.drafter_bytes,
            "KV cache": context * self.kv_bytes_per_token,
            "workspace": self.workspace_bytes,
        }

    def device_bytes(self, slots: int, staging_blocks: int, context: int) -> int:
        return sum(self.rows(slots, staging_blocks, context).values())

    @property
    def store_bytes(self) -> int:
        """Host bytes of every expert."""
        return self.layers * self.experts * self.expert_bytes

    def largest_slots(self, free: int, staging_blocks: int, context: int) -> int:
        """Most slots per layer that fit `free` bytes; -1 where even 0 do not."""
        room = free - self.device_bytes(0, staging_blocks, context)
        if room < 0:
            return -1
        return min(self.experts, room // (self.layers * self.expert_bytes))


@dataclass(frozen=True)
class HostMemory:
    """Bytes this process may still take. None where the system does not say."""

    total: int | None
    available: int | None  # of the machine
    limit_left: int | None  # below the tightest cgroup limit; None = no limit

    @property
    def usable(self) -> int | None:
        known = [size for size in (self.available, self.limit_left) if size is not None]
        return min(known) if known else None


def host_memory(root: Path = Path("/")) -> HostMemory:
    """Reads /proc and /sys below `root`: free memory is read, never assumed."""
    fields: dict[str, int] = {}
    for line in _lines(root / "proc/meminfo"):
        name, _, rest = line.partition(":")
        words = rest.split()
        if words and words[0].isdigit():
            fields[name] = int(words[0]) * 1024
    lefts = list(_cgroup_lefts(root))
    return HostMemory(
        fields.get("MemTotal"), fields.get("MemAvailable"), min(lefts) if lefts else None
    )


def _cgroup_lefts(root: Path) -> Iterator[int]:
    """limit - use of this process's cgroup and of those above it, versions 2 and 1.

    Cached file pages are given back under pressure, so they do not count as use.
    """
    for line in _lines(root / "proc/self/cgroup"):
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            top, names = root / "sys/fs/cgroup", ("memory.max", "memory.current")
        elif "memory" in controllers.split(","):
            top = root / "sys/fs/cgroup/memory"
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes")
        else:
            continue
        # A container sees its own group as the top, whatever path the host names.
        below = Path(path.strip("/"))
        for folder in (top / part for part in (below, *below.parents)):
            limit, used = (_number(folder / name) for name in names)
            if limit is not None and used is not None and limit < 1 << 60:
                yield max(0, limit - used + _file_pages(folder))


def _file_pages(folder: Path) -> int:
    found = 0
    for line in _lines(folder / "memory.stat"):
        name, _, value = line.partition(" ")
        if name in ("inactive_file", "active_file"):
            found += int(value)
    return found


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except OSError:
        return []


def _number(path: Path) -> int | None:
    lines = _lines(path)
    return int(lines[0]) if lines and lines[0].isdigit() else None


def with_room(store_bytes: int) -> int:
    """Bytes of host memory that a store of experts needs, what lies beside it included."""
    return store_bytes + min(MOST_RESERVED, store_bytes // 8)


def refuse_planned(store_bytes: int, planned_gb: float) -> None:
    """Of a machine that is planned with. Raises SpecfitError where the experts have no room."""
    needed = with_room(store_bytes)
    if needed > planned_gb * GB:
        raise SpecfitError(
            f"the experts need {needed / GB:.1f} GB of host memory with room beside them, and "
            f"gpu.host_memory_gb={planned_gb:g}; more memory, or lower model.num_layers"
        )
