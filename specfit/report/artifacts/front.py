"""The README's picture and its table: decode speed of the systems on both workloads."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from specfit.base.types import SpecfitError
from specfit.report.artifacts.measured import CACHED, FIRST, Block, blocks_of
from specfit.report.artifacts.measured import SUITE as MEASURED
from specfit.report.artifacts.systems import Runs, ours_of, runs_of, shown, speed_over
from specfit.report.figures import Drawing, bars, paper_handle
from specfit.report.footer import INTERVALS, words_of
from specfit.report.metrics import shared_requests
from specfit.report.pairs import pairs_of
from specfit.report.paper_values import Claim, claims_of
from specfit.report.quantities import QUANTITIES
from specfit.report.reader import ResultsReader
from specfit.report.robustness import Robustness, robustness
from specfit.report.styles import PAPER_WORKLOADS, Workload, style_of, workload_of
from specfit.report.table_format import change, factor, measured

SUITES = ("table_2", "table_3")
"""Of one workload each, at the primary cache."""

LINES: tuple[tuple[str, str, str | None], ...] = (
    ("ar", "speed", None),
    ("ar_cache", "speed", None),
    ("eagle3_cache", "speed", None),
    ("specfit", "speed", None),
    ("specfit", "speed", "eagle3_cache"),
    ("specfit", "speed", "ar_cache"),
    ("specfit", "speed", "ar"),
    ("eagle3", "speed", "ar"),
    ("specfit", "experts", "eagle3_cache"),
)
"""System, quantity, and the system it is divided by."""

HEADLINE = ("specfit", "speed", "eagle3_cache")
"""The line beside which it stands how far it rests on single requests."""

NAMES = {"speed": "tokens/s", "experts": "experts per token"}


def figure_front(reader: ResultsReader) -> Drawing:
    """Decode speed of five systems on both workloads, the paper's values beside them."""
    runs = {suite: runs_of(reader, suite) for suite in SUITES}
    every = [run for one in runs.values() for run in one.values()]
    speeds = {
        suite: {system: QUANTITIES["speed"].of(run) for system, run in one.items()}
        for suite, one in runs.items()
    }
    published = {
        suite: {
            c.system: c.value
            for c in claims_of(suite)
            if c.quantity == "speed" and c.against is None
        }
        for suite in SUITES
    }
    titles = {suite: "\n".join(workload_in(one).lines) for suite, one in runs.items()}
    told = [
        f"{workload_in(runs[suite]).short}: "
        + ", ".join(f"{style_of(s).label} {speeds[suite][s].value:.1f}" for s in speeds[suite])
        for suite in SUITES
    ]
    alt = f"Decode speed in tokens/s ({words_of(every)}), by system. {'; '.join(told)}."

    def paint(figure: Any) -> None:
        axes = figure.subplots(1, 2)
        unit = f"tokens/s ({words_of(every)})"
        for panel, suite in zip(axes, SUITES, strict=True):
            bars(panel, speeds[suite], titles[suite], unit, published[suite])
        axes[1].set_yticklabels([])
        figure.legend(
            handles=[paper_handle("the paper's (another model, real hardware)")],
            loc="outside lower center",
        )

    stamp = reader.stamp(every, *SUITES, extra=[INTERVALS.replace("Brackets", "Bars")])
    return Drawing("figure_front", "Decode speed by system", 2.6, stamp, alt, paint)


def workload_in(runs: Runs) -> Workload:
    """The one workload of a suite's runs."""
    return workload_of(next(iter(runs.values())).info)


def readme_table(reader: ResultsReader) -> str:
    """Markdown: each quantity, the paper's value and ours for both workloads, and the clock."""
    runs = {suite: runs_of(reader, suite) for suite in SUITES}
    every = [run for one in runs.values() for run in one.values()]
    heads = [head for one in runs.values() for head in _heads(workload_in(one))]
    rows = [["", *heads, "clock of ours"], ["---", *["---:"] * 4, "---"]]
    rows += _measured(reader, [workload_in(one) for one in runs.values()])
    for system, quantity, against in LINES:
        over = "" if against is None else f" over {style_of(against).label}"
        cells = [f"{style_of(system).label}{over}, {NAMES[quantity]}"]
        for suite in SUITES:
            claim = _claim(suite, system, quantity, against)
            ours = ours_of(claim, runs[suite])
            assert ours is not None, "both suites run every system"
            published = "-" if claim.value != claim.value else shown(claim, claim.value)
            bold = against is not None and ours.high is not None and _is_loss(quantity, ours.value)
            value = measured(ours, partial(shown, claim)).text
            cells += [published + "*" * (claim.inferred and published != "-"), _bold(value, bold)]
        rows.append([*cells, words_of(every)])
        if (system, quantity, against) == HEADLINE:
            rows += _robust(runs, words_of(every))
            rows += _over_pairs(reader, words_of(every))
    rows.append(["SpecFit: requests with the ids of AR", *_ids(runs), "-"])
    return "\n".join("| " + " | ".join(cells) + " |" for cells in rows)


def _measured(reader: ResultsReader, workloads: Sequence[Workload]) -> list[list[str]]:
    """SpecFit with experts on this machine's disk, by slots; nothing where that was not run."""
    try:
        blocks = blocks_of(reader.suites(MEASURED)[0])
    except SpecfitError:
        return []
    place = {(block.workload, block.slots): block for block in blocks if block.link == "disk"}
    rows = []
    for over in (FIRST, CACHED):
        for slots in sorted({slots for _, slots in place}, reverse=True):
            what = f"SpecFit over {style_of(over).label}, experts on disk, {slots} slots"
            texts = [_gain(place.get((workload, slots)), over) for workload in workloads]
            rows.append([what, *(cell for text in texts for cell in ("-", text)), "measured"])
    return rows


def _gain(block: Block | None, over: str) -> str:
    if block is None:
        return "-"
    gain = block.gain("specfit", over)
    loss = gain is not None and gain.value is not None and gain.value < 1
    text = _bold(measured(gain, factor).text, loss)
    return text if block.is_settled else f"{text}, unsettled"


def _heads(workload: Workload) -> tuple[str, str]:
    """Above the paper's values and above ours, each with the texts they are of."""
    paper = PAPER_WORKLOADS.get(workload.stands_for or "", workload.short)
    return f"paper: {paper}", f"ours: {workload.short}"


def _robust(runs: dict[str, Any], timed: str) -> list[list[str]]:
    """The headline without degenerate outputs, where there are any, and without any one request."""
    found = [robustness(one["specfit"], one["eagle3_cache"]) for one in runs.values()]
    without = [f"{measured(one.without, change).text}, n = {one.without.n}" for one in found]
    said = {"the same, any one request left out": [_span(one) for one in found]}
    if any(one.degenerate for one in found):
        said = {"the same, degenerate outputs left out": without} | said
    return [
        [what, *(cell for text in texts for cell in ("-", text)), timed]
        for what, texts in said.items()
    ]


def _over_pairs(reader: ResultsReader, timed: str) -> list[list[str]]:
    """The headline of every pair that the rows hold; nothing where they hold one."""
    found = [pairs_of(reader, suite) for suite in SUITES]
    if not all(one.others for one in found):
        return []
    ranges = [one.range(speed_over("eagle3_cache"), change).text for one in found]
    cells = (cell for text in ranges for cell in ("-", text))
    return [[f"the same, {found[0].heading} (training seeds)", *cells, timed]]


def _span(one: Robustness) -> str:
    if one.lowest is None or one.highest is None:
        return "-"
    return f"{change(one.lowest).removesuffix(' %')} to {change(one.highest)}"


def _claim(suite: str, system: str, quantity: str, against: str | None) -> Claim:
    """The paper's, or one without a value where it publishes none."""
    for claim in claims_of(suite):
        if (claim.system, claim.quantity, claim.against) == (system, quantity, against):
            return claim
    return Claim(suite, "", "", 48, system, quantity, float("nan"), against)


def _is_loss(quantity: str, value: float | None) -> bool:
    worse = QUANTITIES[quantity].better * ((value or 1.0) - 1.0)
    return worse < 0


def _bold(text: str, bold: bool) -> str:
    return f"**{text}**" if bold else text


def _ids(runs: dict[str, Any]) -> list[str]:
    cells = []
    for one in runs.values():
        shared, _ = shared_requests(one["specfit"], one["ar"])
        left, right = (
            one[name].requests.set_index("request_id")["output_ids"] for name in ("specfit", "ar")
        )
        same = sum(list(left[name]) == list(right[name]) for name in shared)
        cells += ["-", _bold(f"{same} of {len(shared)}", same < len(shared))]
    return cells
