"""Runs of a suite as the jobs of a Hydra launcher: several at once, here or on other machines.

A suite splits over jobs by run: a cached run's requests depend on those before. Repeats are then
not interleaved. Replays and benches stay in this process, after them.
"""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from specfit.base.entry import print_error
from specfit.base.paths import CONF
from specfit.base.types import SpecfitError
from specfit.workflows import hydra_workers
from specfit.workflows.hydra_cli import as_text, explain, store_schema, task_of
from specfit.workflows.suites.planning import Planned


def launch(cells: Sequence[Planned], results: Path, launcher: str, values: Sequence[str]) -> None:
    """`launcher` is a file of conf/hydra/launcher, `values` its overrides, as in
    hydra.launcher.n_jobs=2. What has not finished afterwards has failed, and has said why.

    Raises SpecfitError where there is no such launcher.
    """
    from hydra import initialize_config_dir

    from specfit.workflows.live_run import run

    hydra_workers.refuse_absent([f"hydra/launcher={launcher}"])
    store_schema()
    lines = [[*one.overrides, as_text("results_dir", results)] for one in cells]
    with initialize_config_dir(str(CONF), version_base="1.3"):
        chosen = [f"hydra/launcher={launcher}", *values, as_text("results_dir", results)]
        made = _launcher(chosen, task_of(run, []))
        try:
            ended = made.launch(lines, initial_job_idx=0)
        except Exception as error:
            lost = hydra_workers.lost_worker(error)
            if lost is None:
                raise
            print_error(SpecfitError(lost))
            return
    for job in ended:
        try:
            _ = job.return_value
        except Exception:  # a defect of one job is shown and stops no other
            traceback.print_exc()


class NoCallbacks:
    """What Hydra tells a person's callbacks of a job; our configs name none."""

    def on_job_start(self, **_: Any) -> None: ...

    def on_job_end(self, **_: Any) -> None: ...


def _launcher(chosen: Sequence[str], task: Any) -> Any:
    """Hydra's own way from a config to a launcher, without its sweeper: lines are no product."""
    from hydra.core.global_hydra import GlobalHydra
    from hydra.core.plugins import Plugins
    from hydra.errors import HydraException
    from hydra.types import HydraContext, RunMode

    loader = GlobalHydra.instance().config_loader()
    try:
        config = loader.load_configuration("config", list(chosen), run_mode=RunMode.MULTIRUN)
        nothing: Any = NoCallbacks()
        return Plugins.instance().instantiate_launcher(
            hydra_context=HydraContext(loader, nothing),
            task_function=task,
            config=config,
        )
    except HydraException as error:
        raise SpecfitError(explain(error)) from None
