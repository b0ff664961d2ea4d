"""A finished run's folder back to the config that made it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from omegaconf import OmegaConf

from specfit.base.config import RunConfig, from_hydra
from specfit.storage.recording.files import Recording
from specfit.storage.rows import run_yaml


def stored_run(folder: Path) -> RunConfig:
    """As it was asked for, whatever has become of its paths since."""
    stored = OmegaConf.merge(OmegaConf.structured(RunConfig), OmegaConf.create(run_yaml(folder)))
    return from_hydra(stored)


def stored_config(folder: Path, recording: Recording, results: Path) -> RunConfig:
    """For a replay of `recording` that stands for the run of this folder."""
    config = replace(stored_run(folder), results_dir=str(results), force=False, trace=None)
    return replace(config, recording=recording.recording_id)
