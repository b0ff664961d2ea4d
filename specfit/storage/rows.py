"""A finished run's rows in memory."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pandas as pd
import pyarrow as pa

from specfit.base.types import SpecfitError
from specfit.storage.find import find_twin
from specfit.storage.manifest import MANIFEST, RunInfo, read_manifest
from specfit.storage.pack import packed_run
from specfit.storage.tables import FILES, KEPT_FILES, as_now, read_table, to_frame


@dataclass(frozen=True, eq=False)
class RunRows:
    """Frames have the columns of `tables.py`, in the order of the run's requests.

    A packed run may have `sums` in the place of its cycles.
    """

    info: RunInfo
    cycles: pd.DataFrame
    requests: pd.DataFrame
    timings: pd.DataFrame
    sums: pd.DataFrame | None = None

    @cached_property
    def request_ids(self) -> list[str]:
        return [str(name) for name in self.requests["request_id"].to_numpy(object)]

    @cached_property
    def ok_ids(self) -> list[str]:
        """Requests that did not fail."""
        status = self.requests["status"].to_numpy(object)
        return [n for n, said in zip(self.request_ids, status, strict=True) if said == "ok"]


def load_run(folder: Path | str) -> RunRows:
    """Rows of `results/runs/<run_id>` or of a packed run, by the path of its folder (text works).

    A packed run has no timings. Raises SpecfitError where no run has finished.
    """
    folder = Path(folder)
    manifest = read_manifest(folder)
    if manifest is None or not manifest.finished:
        raise SpecfitError(f"{folder} holds no finished run; run it first")
    cycles, requests, timings = (_frame(folder, name) for name in ("cycles", "requests", "timings"))
    sums = _frame(folder, "sums") if cycles.empty else None
    return RunRows(manifest.info, cycles, requests, timings, sums)


def _frame(folder: Path, name: str) -> pd.DataFrame:
    """As `run_table`; of a packed run cut from the frame of its whole row group."""
    packed = None if (folder / MANIFEST).exists() else packed_run(folder)
    if packed is None:
        return to_frame(run_table(folder, f"{name}.parquet"))
    pack, row = packed
    return pack.frame(row.kind, row.run_id, f"{name}.parquet")


def run_table(folder: Path, name: str) -> pa.Table:
    """One of the run's files, as a table; rows that a pack does not keep are none."""
    packed = None if (folder / MANIFEST).exists() else packed_run(folder)
    if packed is None:
        has = name in FILES or (folder / name).exists()
        return read_table(folder / name) if has else KEPT_FILES[name].schema.empty_table()
    pack, row = packed
    return as_now(pack.rows(row.kind, row.run_id, name), name)


def run_yaml(folder: Path) -> str:
    """The resolved config of a run, as text."""
    packed = None if (folder / MANIFEST).exists() else packed_run(folder)
    if packed is None:
        return (folder / "run.yaml").read_text(encoding="utf-8")
    return packed[1].run_yaml


def baseline_of(run: RunRows, runs: Path) -> RunRows | None:
    """The AR run that a run is divided by; None where none has finished, and for AR itself."""
    twin = None if run.info.selector == "ar" else find_twin(runs, run.info)
    return None if twin is None else load_run(twin)
