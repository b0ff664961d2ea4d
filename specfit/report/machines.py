"""Whether two measured runs had the same machine: asked before their times are divided.

A throttled, narrower or slower machine makes the other run look fast. Modelled runs are on the
profile's machine, whatever ran them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from specfit.storage.rows import RunRows

STEADY = {
    "pcie_generation": "PCIe generation",
    "pcie_width": "PCIe lanes",
    "power_limit_w": "power limit, W",
    "locked_share": "page-locked share",
    "link_gbps_cap": "cap on the link, GB/s",
}
"""Columns of requests.parquet that have one value on one machine."""

LINK = "achieved_h2d_gbps"
NEAR = {
    "sm_clock_mhz": ("SM clock, MHz", 0.05),
    "cpu_clock_mhz": ("CPU clock, MHz", 0.05),
    LINK: ("link, GB/s", 0.15),
}
"""Columns whose medians differ a little from run to run on one machine, and by how much at most."""


SHOWN = 6
"""Differences that a footer lists."""


def unequal(run: RunRows, base: RunRows) -> tuple[str, ...]:
    """What the machines of two runs do not share, each `name: value in <run>, value in <run>`;
    empty for modelled runs and on one machine. A state that one run knows and the other does not is
    among it."""
    if "modelled" in (run.info.clock, base.info.clock):
        return ()
    pairs = [
        ("device", run.info.device, base.info.device),
        ("threads", run.info.threads, base.info.threads),
        ("throttle reasons", *(_throttled(one) for one in (run, base))),
        ("CPU throttled", *(_cpu_throttled(one) for one in (run, base))),
    ]
    pairs += [(text, *(_values(one, name) for one in (run, base))) for name, text in STEADY.items()]
    different = [pair for pair in pairs if pair[1] != pair[2]]
    for name, (text, share) in NEAR.items():
        if name == LINK and _reads_disk(run) and _reads_disk(base):
            continue  # a disk's speed goes by how many reads a system has in flight
        ours, theirs = (_median(one, name) for one in (run, base))
        if (ours is None) != (theirs is None) or _are_apart(ours, theirs, share):
            different.append((text, _shown(ours), _shown(theirs)))
    ids = run.info.run_id, base.info.run_id
    return tuple(f"{name}: {a} in {ids[0]}, {b} in {ids[1]}" for name, a, b in different)


def unequal_among(runs: Sequence[RunRows]) -> tuple[str, ...]:
    """Of all measured runs of one table: those that were not on the machine of the first with their
    link. Links are settings: they are compared on purpose, and divided by `unequal` alone."""
    first: dict[tuple[str, bool], RunRows] = {}
    found: list[str] = []
    for run in (run for run in runs if run.info.clock == "wall"):
        link = _values(run, "link_gbps_cap"), _reads_disk(run)
        found += unequal(first.setdefault(link, run), run)
    every = tuple(dict.fromkeys(found))
    more = f"and {len(every) - SHOWN} more"
    return every if len(every) <= SHOWN else (*every[:SHOWN], more)


def _values(run: RunRows, name: str) -> str:
    values = sorted(set(run.requests[name].dropna()))
    return " and ".join(f"{float(value):g}" for value in values) or "unknown"


def _throttled(run: RunRows) -> str:
    """Every reason that any request saw, as the driver's bits; 0 is none."""
    reasons = [int(value) for value in run.requests["throttle_reasons"].dropna()]
    every = 0
    for bits in reasons:
        every |= bits
    return str(every) if reasons else "unknown"


def _cpu_throttled(run: RunRows) -> str:
    counts = run.requests["cpu_throttles"].dropna()
    return ("yes" if bool((counts > 0).any()) else "no") if len(counts) else "unknown"


def _reads_disk(run: RunRows) -> bool:
    return bool(run.requests["disk_reads"].notna().any())


def _median(run: RunRows, name: str) -> float | None:
    values = run.requests[name].dropna()
    return float(values.median()) if len(values) else None


def _are_apart(ours: float | None, theirs: float | None, share: float) -> bool:
    if ours is None or theirs is None:
        return False
    return abs(ours - theirs) > share * max(ours, theirs)


def _shown(value: Any) -> str:
    return "unknown" if value is None else f"{value:.4g}"
