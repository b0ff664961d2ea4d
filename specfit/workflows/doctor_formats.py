"""The doctor's table of expert formats: what each asks of the host, and what fits on a card."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import torch

from specfit.base.config import FORMATS
from specfit.base.types import SpecfitError
from specfit.decoding.memory_fit import Sizing
from specfit.experts.expert_format import ExpertFormat, plain_format
from specfit.hardware.memory import GB, with_room
from specfit.hardware.profile import Profile
from specfit.models.target.quantise import PLAIN, kind_of
from specfit.workflows.run_time import SYSTEMS, Experts, Requests, RunTime, run_time

RAM_GB = (16, 24, 32, 64, 96, 128)
"""Host memories that people have."""


def expert_bytes(name: str, hidden: int, intermediate: int) -> int:
    """Raises SpecfitError where no int4 group fits the sizes."""
    if name == PLAIN:
        return plain_format(hidden, intermediate, torch.bfloat16).block_bytes
    layout = kind_of(name, hidden, intermediate).layout
    return ExpertFormat(hidden, intermediate, torch.bfloat16, layout).block_bytes


def format_lines(
    hidden: int,
    intermediate: int,
    sizing: Sizing,
    model: Experts,
    profile: Profile,
    work: Requests,
) -> Iterator[str]:
    """Attention and the rest are widened to model.dtype in every format: only experts differ."""
    yield "this model with its experts in each format (an estimate):"
    yield "  format   host GB   fits in RAM of   slots that fit   device GB   hours, all five"
    for name in FORMATS:
        try:
            own = expert_bytes(name, hidden, intermediate)
        except SpecfitError as error:
            yield f"  {name:6} {error}"
            continue
        sized = replace(sizing, needs=replace(sizing.needs, expert_bytes=own))
        store = sized.needs.store_bytes
        needed = with_room(store)
        ram = next((f"{gb} GB" for gb in RAM_GB if needed < gb * GB), f"over {RAM_GB[-1]} GB")
        slots = None if sized.free is None else sized.largest()
        fit = "unknown" if slots is None else "none" if slots < 0 else str(slots)
        row = f"  {name:6} {store / GB:9.1f}   {ram:>14}   {fit:>14}"
        if slots is None or slots < 0:
            yield f"{row}   {'':>9}   {'unknown' if slots is None else 'none':>15}"
            continue
        hours = _hours(replace(model, expert_bytes=own), profile, slots, work)
        yield f"{row}   {sized.needed(slots) / GB:9.1f}   {hours:>15}"


def _hours(model: Experts, profile: Profile, slots: int, work: Requests) -> str:
    if profile.link_gbps is None or profile.fixed_ms is None:
        return "unknown"
    total = RunTime(0.0, 0.0)
    for system in SYSTEMS:
        total += run_time(system, model, profile, slots, work)
    return f"{total.timed_s / 3600:.2f}"
