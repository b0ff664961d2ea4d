"""Packs what the finished suites need into results/reference, small enough to commit.

    python scripts/keep_reference.py [--suite table_2 ..] [--results results] [-- overrides]

Full-size suites: no previews. Overrides name the suites of another pair, of which sums are kept:

    python scripts/keep_reference.py --suite table_2 -- model.path=<pair>/target \
        drafter.path=<pair>/drafter

A run keeps its requests, run.yaml, manifest
and the coefficients of its fit. Of a suite that keeps cycles it also has those; of others the sums
of each request stand in their place, and output ids and texts are left out. Paths of the machine
are cut from command lines and run.yaml. Suites that are not named keep the rows they have; what no
suite of the reference names any more is dropped. `--suite` without a name packs what is there anew.
Prints bytes per run.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from specfit.base.entry import needs_extras, script

with needs_extras():
    import pyarrow as pa
    import pyarrow.compute as pc

    from specfit.base.types import SpecfitError
    from specfit.report.degenerate import loops_of
    from specfit.storage.calibration_files import find_fit, states_of
    from specfit.storage.manifest import MANIFEST, read_manifest
    from specfit.storage.pack import (
        PackedRun,
        open_pack,
        packed_run,
        request_sums,
        study_text,
        write_pack,
        write_studies,
    )
    from specfit.storage.rows import load_run, run_table, run_yaml
    from specfit.storage.suite import (
        CYCLES,
        REFERENCE,
        SUMS,
        Cell,
        Suite,
        read_suite,
        variant_of,
    )
    from specfit.workflows.run_time import folder_bytes
    from specfit.workflows.suites.files import suite_names

TABLES = ("cycles.parquet", "requests.parquet")
FOLDERS = {"run": "runs", "replay": "replays"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--suite", nargs="*", help="default: every suite; others are left as is")
    parser.add_argument("--results", type=Path, default=Path("results"))
    parser.add_argument("overrides", nargs="*", help="as of `make reproduce ARGS=..`")
    options = parser.parse_args()
    results, reference = options.results, options.results / REFERENCE
    names = suite_names() if options.suite is None else options.suite
    variant = variant_of(arguments=options.overrides)
    fresh = [finished_suite(name, results, variant) for name in names]
    keep(fresh, results, reference)
    pack = open_pack(reference)
    runs = 0 if pack is None else len(pack.runs)
    total = folder_bytes(reference)
    print(f"{reference}: {runs} runs, {total / max(1, runs) / 1e3:.1f} kB each; {total:,} bytes")
    return 0


def finished_suite(name: str, results: Path, variant: str = "") -> Suite:
    suite = read_suite(results, name, variant)
    if suite is None or suite.missing(results):
        command = suite.command if suite else f"make reproduce SUITE={name}"
        raise SpecfitError(f"suite {name} is not complete; first: {command}")
    return replace(suite, keeps=SUMS) if variant else suite


def keep(fresh: list[Suite], results: Path, reference: Path) -> None:
    """`fresh` from `results`, every other suite of the reference from what is packed already."""
    places: dict[tuple[str, str], tuple[Cell, Path]] = {}
    whole: set[tuple[str, str]] = set()  # runs whose cycles some suite keeps
    suites = {(suite.variant, suite.artifact): (suite, results) for suite in fresh}
    folder = reference / "suites"
    for path in sorted(folder.rglob("*.json")):
        variant = "" if path.parent == folder else path.parent.name
        suite = read_suite(reference, path.stem, variant)
        if suite is not None:
            suites.setdefault((variant, suite.artifact), (suite, reference))
    for suite, place in suites.values():
        for cell in suite.cells:
            if suite.keeps == CYCLES:
                whole.add((cell.kind, cell.id))
            if (cell.kind, cell.id) not in places or place == results:
                places[cell.kind, cell.id] = cell, place
    rows, fits, documents = [], dict[str, dict[str, Any]](), dict[str, str]()
    for cell, place in places.values():
        source = cell.path(place)
        if cell.kind == "bench":
            text = study_text(source)
            assert text is not None, "a complete suite has every document"
            documents[cell.id] = text
            continue
        rows.append(packed(cell, source, (cell.kind, cell.id) in whole))
        fits |= fit_of(source, place)
    write_pack(reference, rows, fits)
    write_studies(reference, documents)
    for suite in fresh:
        suite.write(reference)


def packed(cell: Cell, source: Path, whole: bool) -> tuple[PackedRun, Mapping[str, pa.Table]]:
    """A run as it is, without the paths of the machine that made it; its cycles where `whole`."""
    before = packed_run(source)
    if before is not None:
        row, text = before[1], before[1].manifest
        elapsed_ns, size_bytes = row.elapsed_ns, row.size_bytes
    else:
        text = (source / MANIFEST).read_text(encoding="utf-8")
        waited = run_table(source, "timings.parquet")["elapsed_ns"]
        elapsed_ns, size_bytes = pc.sum(waited).as_py() or 0, folder_bytes(source)
    document = json.loads(text)
    document["provenance"] = [without_paths(entry) for entry in document["provenance"]]
    lines = [without_folder(line, ": ") for line in run_yaml(source).splitlines()]
    row = PackedRun(
        FOLDERS[cell.kind],
        cell.id,
        json.dumps(document, ensure_ascii=False),
        "".join(f"{line}\n" for line in lines),
        elapsed_ns,
        size_bytes,
    )
    return row, {name: run_table(source, name) for name in TABLES} if whole else summed(source)


def summed(source: Path) -> dict[str, pa.Table]:
    """Requests without their outputs, and what the cycles of each add up to."""
    cycles, requests = (run_table(source, name) for name in TABLES)
    sums = run_table(source, "sums.parquet")  # packed so before
    if len(cycles):
        rows = load_run(source)
        sums = request_sums(cycles, {name: name in loops_of(rows) for name in rows.ok_ids})
    for name in ("output_ids", "output_text"):
        field = requests.schema.field(name)
        at = requests.schema.get_field_index(name)
        requests = requests.set_column(at, field, pa.nulls(len(requests), field.type))
    return {"sums.parquet": sums, "requests.parquet": requests}


def fit_of(source: Path, place: Path) -> dict[str, dict[str, Any]]:
    """What a run predicted with, by id; the probes behind it are left out."""
    manifest = read_manifest(source)
    assert manifest is not None, "a complete suite has every run"
    calibration = manifest.identity.get("digests", {}).get("calibration")
    if calibration is None:
        return {}
    fit = find_fit(calibration, place)
    fit |= {"states": states_of(fit)}
    fit.pop("probes", None)
    return {calibration: fit}


def without_paths(entry: dict[str, Any]) -> dict[str, Any]:
    return entry | {"argv": [without_folder(word) for word in entry["argv"]]}


def without_folder(text: str, between: str = "=") -> str:
    """`/a/b/run.py` -> run.py, `key=/a/b/c` -> key=c."""
    key, sign, value = text.rpartition(between)
    return f"{key}{sign}{Path(value).name}" if Path(value).is_absolute() else text


if __name__ == "__main__":
    sys.exit(script(main))
