"""`gpu.profile`: the hardware values that a probe measured, in place of a config group's own."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

from specfit.base.types import SpecfitError

KEPT = ("name", "clock", "billed", "kernel", "link_gbps_cap", "profile")
"""Values of the group that no file gives."""


def apply_profile(gpu: Any) -> None:
    """Sets every hardware value of a GpuConfig from the file it names; none is set beside it."""
    if gpu.profile is None:
        return
    plain = type(gpu)(name="local")
    for item in fields(gpu):
        if item.name not in KEPT and getattr(gpu, item.name) != getattr(plain, item.name):
            raise SpecfitError(
                f"gpu.profile={gpu.profile} gives every hardware value, and gpu.{item.name} is set "
                "as well; use gpu=local with gpu.profile, and edit the file to change a value"
            )
    try:
        values = dict(json.loads(Path(gpu.profile).read_text(encoding="utf-8"))["profile"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SpecfitError(
            f"gpu.profile={gpu.profile} is no file of `python -m specfit.probe` ({error!r})"
        ) from None
    unknown = sorted(set(values) - {item.name for item in fields(gpu)})
    if unknown:
        raise SpecfitError(f"gpu.profile={gpu.profile} has the unknown value {unknown[0]}")
    for key, value in values.items():
        setattr(gpu, key, value)
