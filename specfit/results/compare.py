"""Several runs side by side, as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from specfit.results.bootstrap import Interval, speedup
from specfit.results.metrics import same_ids, summarise
from specfit.results.rows import RunRows
from specfit.results.table import number

HEADER = (
    "selector",
    "slots",
    "dataset",
    "tokens/s",
    "ratio [95 %]",
    "committed/cycle",
    "verified/cycle",
    "experts/token",
    "with prefill",
    "hit rate",
    "ids as baseline",
)


def compare_table(runs: Sequence[RunRows], baseline: RunRows | None = None) -> str:
    """One row per run, in the order given; the ratio is to `baseline`, a dash where the run answers
    other requests or ran on the other clock. n, clock and device are in the caption."""
    body = [_row(run, baseline) for run in runs]
    rule = ["---"] * 3 + ["---:"] * (len(HEADER) - 3)
    lines = ["| " + " | ".join(cells) + " |" for cells in [list(HEADER), rule, *body]]
    return "\n".join([*lines, "", _caption(runs, baseline)])


def _row(run: RunRows, baseline: RunRows | None) -> list[str]:
    s, info = summarise(run), run.info
    comparable = (
        baseline is not None
        and baseline.request_ids == run.request_ids
        and baseline.info.requests_digest == info.requests_digest
        and baseline.info.clock == info.clock
    )
    gain = speedup(run, baseline) if comparable and baseline is not None else None
    equal = same_ids(run, baseline).equal if comparable and baseline is not None else None
    return [
        info.selector,
        str(info.cache_slots),
        info.dataset,
        number(s.tokens_per_second),
        _shown(gain),
        number(s.committed_per_cycle),
        number(s.verified_per_cycle),
        number(s.experts_per_token),
        number(s.experts_per_token_with_prefill),
        "-" if s.hit_rate is None else f"{100 * s.hit_rate:.1f} %",
        "-" if equal is None else ("yes" if equal else "no"),
    ]


def _shown(gain: Interval | None) -> str:
    if gain is None or gain.value is None:
        return "-"
    if gain.low is None or gain.high is None:
        return f"{gain.value:.2f}"
    return f"{gain.value:.2f} [{gain.low:.2f}, {gain.high:.2f}]"


def _caption(runs: Sequence[RunRows], baseline: RunRows | None) -> str:
    def each(values: Sequence[str]) -> str:
        return " / ".join(dict.fromkeys(values)) or "-"

    counts = each([str(len(run.ok_ids)) for run in runs])
    failed = sum(len(run.request_ids) - len(run.ok_ids) for run in runs)
    parts = [
        f"n = {counts} requests" + (f" ({failed} failed, in no ratio)" if failed else ""),
        f"clock: {each([run.info.clock for run in runs])}"
        f" (times are {each([run.info.timed for run in runs])})",
        f"profile: {each([run.info.profile for run in runs])}",
        f"device: {each([run.info.device for run in runs])}",
        f"model: {each([run.info.model for run in runs])}",
    ]
    if baseline is not None:
        base = f"{baseline.info.selector} at {baseline.info.cache_slots} slots"
        parts.append(f"ratio to {base}, paired bootstrap over requests")
    return "; ".join(parts) + "."
