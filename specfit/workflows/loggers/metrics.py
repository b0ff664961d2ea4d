"""What a logger is told: of one finished request, and of a run that has ended."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from specfit.report.metrics import MEASURES, ratio
from specfit.report.run_summary import Line, closing_table
from specfit.storage.manifest import MANIFEST
from specfit.storage.request_files import Part
from specfit.storage.rows import baseline_of, load_run
from specfit.storage.tables import FILES

Number = float | int
DRAWN = ("figures", "tables")  # below results_dir


def request_metrics(part: Part, timed: str) -> dict[str, Number]:
    """Of one request by itself. `timed` (modelled or measured) stands before every time of the
    clock; what has no value is left out. A failed request counts and says nothing else."""
    record, decode = part.request, part.cycles[1:]
    if record.status != "ok":
        return {"failed": 1}
    tokens = sum(cycle.committed_tokens for cycle in decode)
    demand = sum(cycle.demand_experts for cycle in decode)
    assert record.prefill_ns is not None and record.decode_ns is not None
    found: dict[str, Number | None] = {
        "failed": 0,
        f"{timed}/tokens_per_s": ratio(tokens * 1e9, record.decode_ns),
        f"{timed}/prefill_s": record.prefill_ns / 1e9,
        f"{timed}/decode_s": record.decode_ns / 1e9,
        "committed_per_cycle": ratio(tokens, len(decode)),
        "verified_per_cycle": ratio(sum(cycle.verified_nodes for cycle in decode), len(decode)),
        "experts_per_token": ratio(sum(cycle.transferred_experts for cycle in decode), tokens),
        "hit_rate": ratio(sum(cycle.hit_experts for cycle in decode), demand),
        "prompt_tokens": record.prompt_tokens,
        "output_tokens": None if record.output_ids is None else len(record.output_ids),
        "elapsed_s": sum(timing.elapsed_ns for timing in part.timings) / 1e9,
        **{name: getattr(record, name) for name in MEASURES},
    }
    return {name: value for name, value in found.items() if value is not None}


@dataclass(frozen=True)
class Closing:
    """A finished run: its closing table, its files, and what was drawn from it so far."""

    run_id: str
    lines: Sequence[Line]
    rows: Sequence[Path]
    drawn: Sequence[Path]


def closing_of(folder: Path, results: Path) -> Closing:
    run = load_run(folder)
    names = [*FILES, MANIFEST, "run.yaml"]
    return Closing(
        run.info.run_id,
        closing_table(run, baseline_of(run, results / "runs"), results),
        [folder / name for name in names if (folder / name).exists()],
        sorted(drawn_from(run.info.run_id, results)),
    )


def drawn_from(run_id: str, results: Path) -> Iterator[Path]:
    """Every format of each table and figure that is stamped with the run's id in one of them."""
    files = [path for name in DRAWN for path in (results / name).rglob("*") if path.is_file()]
    stamped = {path.with_suffix("") for path in files if run_id.encode() in path.read_bytes()}
    yield from (path for path in files if path.with_suffix("") in stamped)
