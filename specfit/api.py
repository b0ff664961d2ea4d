"""The names that a notebook or a plug-in may import. What is not here may change or move.

`run("selector=specfit", "cache_slots=12")` runs a config and returns its rows: docs/example.md.
"""

from __future__ import annotations

from specfit.base.config import RunConfig
from specfit.base.interfaces import Drafter, RouteSource, Selector
from specfit.base.types import (
    PROBABILITY_ONE,
    CycleRecord,
    DraftTree,
    Request,
    RequestError,
    Routes,
    Selection,
    SpecfitError,
)
from specfit.decoding.spec import RunSpec, Runtime
from specfit.experts.cache_plan import NONE, Int64Array
from specfit.experts.eviction import ARRIVED
from specfit.selection.cost import CostModel
from specfit.selection.cost_forms import Pricing, Union
from specfit.selection.forced_trees import most_probable
from specfit.selection.registry import SelectorArgs, SelectorSpec
from specfit.storage.rows import RunRows, load_run

__all__ = [
    "ARRIVED",
    "NONE",
    "PROBABILITY_ONE",
    "CostModel",
    "CycleRecord",
    "DraftTree",
    "Drafter",
    "Int64Array",
    "Pricing",
    "Request",
    "RequestError",
    "RouteSource",
    "Routes",
    "RunConfig",
    "RunRows",
    "RunSpec",
    "Runtime",
    "Selection",
    "Selector",
    "SelectorArgs",
    "SelectorSpec",
    "SpecfitError",
    "Union",
    "config",
    "load_run",
    "most_probable",
    "run",
]


def config(*overrides: str) -> RunConfig:
    """The config of `python -m specfit.run <overrides>`. Raises SpecfitError."""
    from specfit.workflows.hydra_cli import config_of

    return config_of(overrides)


def run(*overrides: str) -> RunRows:
    """The rows of `python -m specfit.run <overrides>`, as pandas frames: run now, or found finished
    under results_dir. Raises SpecfitError where that command would end with exit code 2."""
    from specfit.decoding.resolve import resolve
    from specfit.workflows.live_run import perform

    return load_run(perform(resolve(config(*overrides))).folder)
