"""Configs of many cells: their group choices are composed once.

Composing takes Hydra a tenth of a second, and a suite has hundreds of cells that differ in values
alone. Those are put in by Hydra's own code, so that the result is what `compose` gives.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from specfit.base.paths import CONF
from specfit.workflows.hydra_cli import compose
from specfit.workflows.suites.files import key_of


def composed(line: Sequence[str]) -> Any:
    """The config of `python -m specfit.run <line>`, for the caller to change."""
    from hydra._internal.config_loader_impl import ConfigLoaderImpl
    from hydra.core.override_parser.overrides_parser import OverridesParser

    values = OverridesParser.create().parse_overrides([v for v in line if not is_choice(v)])
    if any(value.is_sweep_override() for value in values):
        return compose(list(line))  # which refuses it
    config = copy.deepcopy(_chosen(tuple(item for item in line if is_choice(item))))
    ConfigLoaderImpl._apply_overrides_to_config(values, config)
    return config


@lru_cache(maxsize=64)
def _chosen(choices: tuple[str, ...]) -> Any:
    return compose(list(choices))


def is_choice(override: str) -> bool:
    """Whether it picks a file of a group: those decide what else is in the config."""
    key = key_of(override)
    return "." not in key and (CONF / key).is_dir()
