"""Hydra around an entry point: one sentence and exit code 2 for what is wrong with a run.

Hydra exits 1 on a bad override and `sys.exit` inside a job ends a whole sweep, so jobs raise
SpecfitError, and the sentence is printed and the code chosen out here.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

from specfit.core import SpecfitError

SAMPLING = ("temperature", "top_p", "top_k", "min_p", "do_sample", "num_beams")


def hydra_command(job: Callable[[Any], int]) -> int:
    """Run `job` on the config composed from argv (or on each of a sweep); returns the exit code."""
    os.environ["HYDRA_FULL_ERROR"] = "1"  # else Hydra prints a traceback and exits 1 by itself
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    import hydra
    from hydra.core.config_store import ConfigStore
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    from specfit.config import RunConfig

    ConfigStore.instance().store(name="schema", node=RunConfig)
    codes: list[int] = []

    def task(composed: Any) -> None:
        try:
            codes.append(job(composed))
        except SpecfitError as error:
            complain(error)
            codes.append(2)
        except MemoryError:
            complain(SpecfitError("out of memory; lower cache_slots, limit or model.num_layers"))
            codes.append(2)

    try:
        refuse_sampling(sys.argv[1:])
        hydra.main(version_base="1.3", config_path="conf", config_name="config")(task)()
    except (SpecfitError, HydraException, OmegaConfBaseException) as error:
        complain(error)
        return 2
    return max(codes, default=0)


def refuse_sampling(arguments: list[str]) -> None:
    for argument in arguments:
        key = argument.lstrip("+~").split("=")[0].split(".")[-1]
        if key in SAMPLING and not argument.startswith("drafter.top_k"):
            raise SpecfitError(
                f"{argument} asks for sampling; specfit decodes greedily, as the paper does, since "
                "only greedy output can be compared token by token"
            )


def complain(error: Exception) -> None:
    """The error as one line on stderr."""
    text = " ".join(str(error).split()) or type(error).__name__
    print(f"specfit: {text}", file=sys.stderr)


def compose(overrides: list[str]) -> Any:
    """The config of `python -m specfit.run <overrides>`, for scripts and tests."""
    from hydra import compose as hydra_compose
    from hydra import initialize_config_module
    from hydra.core.config_store import ConfigStore

    from specfit.config import RunConfig

    ConfigStore.instance().store(name="schema", node=RunConfig)
    with initialize_config_module("specfit.conf", version_base="1.3"):
        return hydra_compose("config", overrides)
