"""Configs of many cells: their group choices are composed once.

Composing takes Hydra a tenth of a second, and a suite has hundreds of cells that differ in values
alone. Those are put in here; what is not a plain value is left to `compose`.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from specfit.base.paths import CONF
from specfit.workflows.hydra_cli import compose
from specfit.workflows.suites.files import key_of


def composed(line: Sequence[str]) -> Any:
    """The config of `python -m specfit.run <line>`, for the caller to change."""
    from hydra.core.override_parser.overrides_parser import OverridesParser

    values = OverridesParser.create().parse_overrides([v for v in line if not is_choice(v)])
    config = copy.deepcopy(_chosen(tuple(item for item in line if is_choice(item))))
    try:
        for value in values:
            if value.is_sweep_override() or value.is_delete() or value.package is not None:
                return compose(list(line))
            adds = value.is_add() or value.is_force_add()
            OmegaConf.update(config, value.key_or_group, value.value(), force_add=adds)
    except OmegaConfBaseException:
        return compose(list(line))  # which says what is wrong
    return config


@lru_cache(maxsize=64)
def _chosen(choices: tuple[str, ...]) -> Any:
    return compose(list(choices))


def is_choice(override: str) -> bool:
    """Whether it picks a file of a group: those decide what else is in the config."""
    key = key_of(override)
    return "." not in key and (CONF / key).is_dir()
