"""Set before anything imports torch: no network, and a thread count that fixes the low bits."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest_plugins = ["tests.fakes.tiny_model"]

gc.set_threshold(50_000)  # of 700: a run of seconds need not look for cycles a thousand times
for name in ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE", "TRANSFORMERS_OFFLINE"):
    os.environ[name] = "1"
for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(name, "1")  # there is a worker for every core
os.environ.setdefault("WANDB_MODE", "disabled")
os.environ.setdefault("MPLBACKEND", "Agg")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


@pytest.fixture(scope="session")
def specfit_data() -> Path:
    """The folder of real datasets that SPECFIT_DATA names; the test is skipped without it."""
    named = os.environ.get("SPECFIT_DATA")
    if not named:
        pytest.skip("SPECFIT_DATA is not set: it names the folder of real datasets")
    folder = Path(named)
    if not folder.is_dir():
        pytest.skip(f"SPECFIT_DATA names {folder}, which is no folder")
    return folder


def pytest_collection_finish() -> None:
    """Libraries and test modules stay: no full collection of a test need walk them again."""
    gc.freeze()


@pytest.fixture(autouse=True)
def _absl_closes_no_capture() -> Iterator[None]:
    """absl (rouge-score's) keeps the stderr that it was first imported under, here pytest's capture
    file, and closes it when a launcher sets up logging anew: pytest then ends without a word."""
    yield
    absl = sys.modules.get("absl.logging")
    if absl is not None:
        absl.get_absl_handler().python_handler.stream = sys.__stderr__
