"""Weights & Biases; offline, everything lies in a folder that `wandb sync` uploads."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from specfit.base.config import LoggerConfig
from specfit.workflows.loggers.metrics import Closing, Number


class WandbSink:
    """One wandb run per run. Made and used in the logger's own thread."""

    def __init__(self, config: LoggerConfig, folder: Path) -> None:
        import wandb

        self._wandb, self._config, self._folder = wandb, config, folder
        self._run: Any = None
        self._mode = config.mode or os.environ.get("WANDB_MODE", "online")

    def begin(self, name: str, config: Mapping[str, Any]) -> None:
        wandb, wanted = self._wandb, self._config
        # Unasked: a question on the terminal would wait for ever.
        if self._mode == "online" and not wandb.login(prompt=False):
            raise RuntimeError("nobody is logged in; `wandb login`, or logger.mode=offline")
        self._folder.mkdir(parents=True, exist_ok=True)
        self._run = wandb.init(
            project=wanted.project,
            entity=wanted.entity,
            mode=self._mode,
            name=name,
            config=dict(config),
            dir=str(self._folder),
            reinit="create_new",  # jobs of one process log beside each other
            settings=wandb.Settings(
                silent=True,
                console="off",  # the screen is the run's
                disable_git=True,  # manifest.json has the commit
                x_disable_stats=True,  # sampling the machine would disturb what is measured
            ),
        )
        self._run.define_metric("*", step_metric="request")

    def request(self, number: int, metrics: Mapping[str, Number]) -> None:
        self._run.log({"request": number, **metrics})

    def end(self, closing: Closing | None) -> str:
        if closing is not None:
            self._close(closing)
        where = self._where()
        self._run.finish(exit_code=0 if closing is not None else 1)
        return where

    def _where(self) -> str:
        if self._mode == "online":
            return str(self._run.url)
        folder = self._run.settings.sync_dir
        return f"wandb sync {folder}" if self._mode == "offline" else self._mode

    def _close(self, closing: Closing) -> None:
        wandb, run = self._wandb, self._run
        run.config.update({"run_id": closing.run_id})
        for line in closing.lines:
            if line.value is not None and line.label != "mark":
                run.summary[line.label] = line.value
        table = [[line.label, line.shown] for line in closing.lines]
        run.log({"closing table": wandb.Table(columns=["what", "value"], data=table)})
        for kind, files in (("rows", closing.rows), ("drawn", closing.drawn)):
            if files:
                artifact = wandb.Artifact(f"{kind}-{closing.run_id}", type=kind)
                for file in files:
                    artifact.add_file(str(file))
                run.log_artifact(artifact)
