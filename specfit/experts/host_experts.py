"""`miss`: run a missed expert on the host instead of moving it (pure).

    transfer   every miss is moved
    cpu        a miss is moved while its layer has a free slot; afterwards it runs on the host
    auto       of M misses h run on the host while the link moves the others: the h that ends first,
               ties to the fewer, and a layer that still has free slots fills them

A host-run expert never enters the cache: what it saves now it does not bring for later. The two
lanes work side by side; the host's takes its experts one after the other.
"""

from __future__ import annotations

from dataclasses import dataclass

MISSES = ("transfer", "cpu", "auto")


@dataclass(frozen=True)
class HostLane:
    mode: str  # cpu, auto
    expert_ns: int  # of one expert on the host, whatever its rows
    copy_ns: int

    def __post_init__(self) -> None:
        assert self.mode in MISSES[1:]

    def share(self, misses: int, free: int) -> int:
        """How many of a layer's misses run on the host; the last ones in load order."""
        left = max(misses - free, 0)
        if self.mode == "cpu":
            return left
        return min(range(left + 1), key=lambda h: (self.ends_ns(h, misses - h), h))

    def ends_ns(self, on_host: int, moved: int) -> int:
        return max(on_host * self.expert_ns, moved * self.copy_ns)
