"""What a suite works out of a finished replay, or measures: a document, written by its caller.

A study of a replay takes the replay's folder. `probe`, `selection_time` and
`validation` read no run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from specfit.base.types import SpecfitError
from specfit.storage.atomic import write_json, write_text

OF_A_REPLAY = (
    "advice",
    "anatomy",
    "drafter",
    "formats",
    "paying",
    "real_geometry",
    "routes",
    "rules",
    "selection_cycles",
    "sweeps",
)
MEASURED = ("probe", "selection_time", "validation")
LONG = ("formats", "paying", "real_geometry")  # documents that are written without indentation


def study_named(name: str) -> Callable[..., Mapping[str, Any]]:
    """Its `study` function; the modules load numba and scipy, so only this one is imported."""
    if name not in (*OF_A_REPLAY, *MEASURED):
        known = ", ".join((*OF_A_REPLAY, *MEASURED))
        raise SpecfitError(f"there is no study {name!r}; use one of {known}")
    study: Callable[..., Mapping[str, Any]] = import_module(f"{__name__}.{name}").study
    return study


def write_study(name: str, document: Mapping[str, Any], out: Path) -> None:
    out.parent.mkdir(parents=True, exist_ok=True)
    if name in LONG:
        write_text(out, json.dumps(document) + "\n")
    else:
        write_json(out, document)
