"""What a host-to-device link reached, what its slot promises, and the usual reasons between.

A link shows itself under load only: idle cards drop to PCIe 1.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

LANE_GBPS = {1: 0.25, 2: 0.5, 3: 0.985, 4: 1.969, 5: 3.938, 6: 7.563}
"""1e9 bytes per second and lane, one direction, before packet overhead."""

REACHED = 0.80
"""Share of that rate which large pinned copies reach on a healthy link (26 of 31.5 GB/s)."""

PINNED_GAIN = 1.15
"""Page-locked copies are at least this much faster than pageable ones where locking works."""

COPY_BYTES = 64 << 20
REPEATS = 40


@dataclass(frozen=True)
class LinkState:
    """PCIe as the driver says, read while bytes move. None where unknown."""

    generation: int | None = None
    width: int | None = None
    max_generation: int | None = None  # what card and board can both do
    max_width: int | None = None

    @property
    def expected_gbps(self) -> float | None:
        if self.generation not in LANE_GBPS or not self.width:
            return None
        return REACHED * LANE_GBPS[self.generation] * self.width

    def __str__(self) -> str:
        if self.generation is None or self.width is None:
            return "PCIe generation and width unknown (pip install nvidia-ml-py)"
        return f"PCIe {self.generation} x{self.width}"


@dataclass(frozen=True)
class LinkReading:
    """Host-to-device GB/s of large copies from page-locked and from ordinary memory."""

    pinned_gbps: float
    pageable_gbps: float
    state: LinkState

    def findings(self, is_wsl: bool = False, on_wrong_node: bool | None = None) -> list[str]:
        """What slows this link, by name; empty where nothing does."""
        found = self._slot()
        if self.pinned_gbps < PINNED_GAIN * self.pageable_gbps:
            why = "as under WSL2" if is_wsl else "a hypervisor or an IOMMU copies in between"
            found.append(f"page-locked copies are no faster than pageable ones: {why}")
        expected = self.state.expected_gbps
        if expected is None and self.pinned_gbps < 16:
            found.append(
                f"{self.pinned_gbps:.0f} GB/s is what PCIe 3 x16 or PCIe 4 x8 gives, 24 belong to "
                "PCIe 4 x16: look for an x8 slot, a riser, or Gen3 in the BIOS"
            )
        elif expected is not None and self.pinned_gbps < 0.85 * expected and not found:
            node = {
                True: "this process runs on another NUMA node than the GPU: numactl --cpunodebind",
                False: "the NUMA node is the right one: other traffic shares the link",
                None: "perhaps another NUMA node than the GPU's, or other traffic on the link",
            }[on_wrong_node]
            found.append(
                f"{self.pinned_gbps:.0f} GB/s where {expected:.0f} belong on this link: {node}"
            )
        return found

    def _slot(self) -> list[str]:
        """Lanes and generation below what card and board can do."""
        state, found = self.state, []
        if state.width and state.max_width and state.width < state.max_width:
            found.append(
                f"the link has {state.width} of {state.max_width} lanes: a slot wired "
                f"x{state.width}, a riser, or lanes shared with an M.2 drive"
            )
        if state.generation and state.max_generation and state.generation < state.max_generation:
            found.append(
                f"the link runs at PCIe {state.generation} under load where "
                f"{state.max_generation} is possible: the BIOS setting, a riser or a chipset slot"
            )
        return found


def read_link(device: torch.device) -> LinkReading:
    """A second or two of copies on a CUDA device; the state is read while they run."""
    import torch

    from specfit.hardware.bandwidth import measure_link
    from specfit.hardware.nvml import Watch

    uuid = f"GPU-{torch.cuda.get_device_properties(device).uuid}"
    watch = Watch(uuid)
    watch.start()
    rows = {row.memory: row.gbps for row in measure_link(device, (COPY_BYTES,), REPEATS)}
    seen = watch.stop()
    state = LinkState(seen.pcie_generation, seen.pcie_width, *_most(uuid))
    return LinkReading(rows["pinned"], rows["pageable"], state)


def _most(uuid: str) -> tuple[int | None, int | None]:
    """Generation and lanes that card and board can both do."""
    found: list[Any] = [None, None]
    with suppress(Exception):  # no package, no driver, or a card that does not say
        import pynvml

        pynvml.nvmlInit()
        card = pynvml.nvmlDeviceGetHandleByUUID(uuid)
        found[0] = pynvml.nvmlDeviceGetMaxPcieLinkGeneration(card)
        found[1] = pynvml.nvmlDeviceGetMaxPcieLinkWidth(card)
    return found[0], found[1]
