"""Copies what the finished suites need into results/reference, small enough to commit.

    python scripts/keep_reference.py [--suite table_2 ..] [--results results]

Full-size suites as shipped, no previews and nobody's overrides. A run keeps its cycles, requests,
timings, run.yaml, manifest and the coefficients of its fit; output text is dropped (ids and scores
stay, and tables need no more), and paths of the machine are cut from command lines and run.yaml.
What no suite of the reference names any more is removed. Prints bytes per run.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa

from specfit.base.types import SpecfitError
from specfit.storage import atomic
from specfit.storage.calibration_files import find_fit, states_of
from specfit.storage.manifest import MANIFEST, read_manifest
from specfit.storage.suite import REFERENCE, Cell, Suite, read_suite
from specfit.storage.tables import FILES, read_table, write_table
from specfit.workflows.hydra_cli import print_error
from specfit.workflows.run_time import folder_bytes
from specfit.workflows.suites.files import suite_names


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--suite", nargs="+", help="default: every suite; others are left as is")
    parser.add_argument("--results", type=Path, default=Path("results"))
    options = parser.parse_args()
    results, reference = options.results, options.results / REFERENCE
    try:
        for name in options.suite or suite_names():
            keep(finished_suite(name, results), results, reference)
        drop_unnamed(reference)
    except SpecfitError as error:
        print_error(error)
        return 2
    runs = [path for kind in ("runs", "replays") for path in (reference / kind).glob("[!.]*")]
    total = folder_bytes(reference)
    per_run = sum(map(folder_bytes, runs)) / max(1, len(runs))
    print(f"{reference}: {len(runs)} runs, {per_run / 1e3:.1f} kB each; {total:,} bytes in all")
    return 0


def finished_suite(name: str, results: Path) -> Suite:
    suite = read_suite(results, name)
    if suite is None or suite.missing(results):
        raise SpecfitError(f"suite {name} is not complete; first: make reproduce SUITE={name}")
    return suite


def keep(suite: Suite, results: Path, reference: Path) -> None:
    for cell in suite.cells:
        copy(cell, results, reference)
    suite.write(reference)


def copy(cell: Cell, results: Path, reference: Path) -> None:
    source, target = cell.path(results), cell.path(reference)
    target.parent.mkdir(parents=True, exist_ok=True)
    if cell.kind == "bench":
        atomic.write_text(target, source.read_text(encoding="utf-8"))
        return
    atomic.remove_folder(target)
    atomic.write_folder(target, lambda folder: fill(source, folder))
    keep_fit(source, results, reference)


def fill(source: Path, folder: Path) -> None:
    for name in FILES:
        table = read_table(source / name)
        if "output_text" in table.column_names:
            at = table.column_names.index("output_text")
            table = table.set_column(at, "output_text", pa.nulls(len(table), pa.string()))
        write_table(table, folder / name)
    lines = (source / "run.yaml").read_text(encoding="utf-8").splitlines()
    told = "".join(f"{without_folder(line, ': ')}\n" for line in lines)
    (folder / "run.yaml").write_text(told, encoding="utf-8")
    document = json.loads((source / MANIFEST).read_text(encoding="utf-8"))
    document["provenance"] = [without_paths(entry) for entry in document["provenance"]]
    atomic.write_json(folder / MANIFEST, document)


def keep_fit(folder: Path, results: Path, reference: Path) -> None:
    """What a run predicted with; the probes behind it are left out."""
    manifest = read_manifest(folder)
    assert manifest is not None, "a complete suite has every run"
    calibration = manifest.identity.get("digests", {}).get("calibration")
    if calibration is None:
        return
    fit = find_fit(calibration, results)
    fit |= {"states": states_of(fit)}
    fit.pop("probes", None)
    path = reference / "calibrations" / f"{calibration}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic.write_json(path, fit)


def without_paths(entry: dict[str, Any]) -> dict[str, Any]:
    return entry | {"argv": [without_folder(word) for word in entry["argv"]]}


def without_folder(text: str, between: str = "=") -> str:
    """`/a/b/run.py` -> run.py, `key=/a/b/c` -> key=c."""
    key, sign, value = text.rpartition(between)
    return f"{key}{sign}{Path(value).name}" if Path(value).is_absolute() else text


def drop_unnamed(reference: Path) -> None:
    """What no suite of the reference names any more."""
    suites = [read_suite(reference, path.stem) for path in (reference / "suites").glob("*.json")]
    named = {cell.path(reference) for suite in suites if suite for cell in suite.cells}
    manifests = [read_manifest(path) for path in named if path.is_dir()]
    digests = [one.identity.get("digests", {}) for one in manifests if one is not None]
    fits = {one.get("calibration") for one in digests}
    named |= {reference / "calibrations" / f"{fit}.json" for fit in fits}
    for kind in ("runs", "replays", "bench", "calibrations"):
        for path in (reference / kind).glob("*"):
            if path not in named:
                shutil.rmtree(path) if path.is_dir() else path.unlink()


if __name__ == "__main__":
    sys.exit(main())
