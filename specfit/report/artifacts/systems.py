"""Tables 2, 3 and 4 and figures 2 and 3: systems side by side, and the paper beside ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from specfit.base.types import SpecfitError
from specfit.report import robustness
from specfit.report.artifact import Table
from specfit.report.bounds import (
    BELADY,
    BOUNDED,
    NOTE,
    PLAIN,
    break_even,
    resident,
    resident_label,
    short_of_belady,
)
from specfit.report.figures import LANE, Drawing, bars, mark, paper_handle
from specfit.report.footer import INTERVALS, words_of
from specfit.report.intervals import Interval
from specfit.report.live_check import check_live
from specfit.report.metrics import MEASURES, mean_measures, same_ids, same_scores, shared_requests
from specfit.report.pairs import Pairs, Ratio, pairs_of, pairs_sheet
from specfit.report.paper_values import Claim, claims_of
from specfit.report.quality import quality_of
from specfit.report.quantities import QUANTITIES, score
from specfit.report.reader import ResultsReader
from specfit.report.repeats import spread
from specfit.report.styles import rank, style_of
from specfit.report.suite_runs import SuiteRun, by_system, pick
from specfit.report.table_format import (
    Cell,
    Entry,
    Sheet,
    change,
    exact,
    factor,
    measured,
    plain,
)
from specfit.report.verdict import PAPER_TARGETS, controlled, effect, holds, passes, verdict
from specfit.storage.rows import RunRows

Runs = Mapping[str, RunRows]  # key of styles.SYSTEMS -> its run


def systems_table(reader: ResultsReader, name: str, title: str) -> Table:
    """Systems side by side, SpecFit over each other one, and the paper's values."""
    members, runs = reader.members(name), runs_of(reader, name)
    others = [s for s in runs if not s.startswith("specfit")]
    knowing = knowing_runs(reader, name, runs)
    sheets = {
        "": systems_sheet(runs, "Systems", knowing),
        "ratios": ratios_sheet(runs, "specfit", others, "SpecFit against each other system"),
        "robust": robust_sheet(runs, "specfit", others),
        "paper": paper_sheet(claims_of(name), runs, "The paper beside ours"),
        **over_pairs(pairs_of(reader, name), others, words_of(list(runs.values()))),
    }
    rows = [*(m.rows for m in members), *knowing.values()]
    suites = (name, BELADY) if knowing else (name,)
    stamp = reader.stamp(rows, *suites, extra=[INTERVALS])
    title = f"{title}: {setting_of(members)}"
    live = check_live(members, reader.members(name, kind="run")).sentence
    notes = [equal_scores(runs), *([live] if live else []), *repeated(members)]
    return Table(name, title, sheets, stamp, notes)


def knowing_runs(reader: ResultsReader, suite: str, runs: Runs) -> Runs:
    """Replays of suite `belady` that are these runs under Belady's policy, by system; none where
    it has not run, or its rows lie in another place."""
    try:
        if len({reader.place(suite), reader.place(BELADY), reader.place(suite, BELADY)}) > 1:
            return {}
        found = [m.rows for m in reader.members(BELADY, kind="replay")]
    except SpecfitError:
        return {}
    known = {_setting(rows): rows for rows in found}
    return {s: known[_setting(run)] for s, run in runs.items() if _setting(run) in known}


def _setting(run: RunRows) -> tuple[str, ...]:
    """What a run shares with the same system under another policy."""
    info = run.info
    return info.selector, str(info.cache_slots), info.profile_digest, info.requests_digest


def setting_of(members: Sequence[SuiteRun]) -> str:
    """'synthetic reports (our stand-in for CNN/DailyMail), 25 GB/s link, 70 ms fixed'"""
    first = members[0]
    gpu = first.config.get("gpu", {})
    parts = [first.workload.label]
    if gpu.get("link_gbps") and gpu.get("fixed_ms"):
        parts += [f"{gpu['link_gbps']:g} GB/s link", f"{gpu['fixed_ms']:g} ms fixed"]
    return ", ".join(parts)


def repeated(members: Sequence[SuiteRun]) -> list[str]:
    """Run-to-run spread of decode speed, where a suite repeats its runs."""
    notes = []
    for system in sorted({m.system for m in members}, key=rank):
        rows = [m.rows for m in pick(members, system=system)]
        found = spread(rows, lambda run: QUANTITIES["speed"].of(run).value)
        if found is not None and found.note:
            notes.append(f"{style_of(system).label}: {found.note} tokens/s ({words_of(rows)}).")
    return notes


def runs_of(reader: ResultsReader, suite: str) -> dict[str, RunRows]:
    """One run per system of a suite of one workload, in the registry's order."""
    members = reader.members(suite)
    return by_system(members, sorted({m.system for m in members}, key=rank))


SHOWN = (
    "speed",
    "speed_with_prefill",
    "committed",
    "verified",
    "cycle",
    "experts",
    "experts_with_prefill",
    "hit_rate",
)


COMPARED = ("speed", "speed_with_prefill", "committed", "cycle", "experts", "transfers")


TIMED = ("speed", "speed_with_prefill", "cycle")


BILLED = "Expert copies are those of the billed model: one own layer stands for several of its."


def headed(name: str, timed: str, ratio: bool = False) -> str:
    """A column's name; a time never stands without the word for its clock, a ratio has no unit."""
    quantity = QUANTITIES[name]
    unit = f", {quantity.unit}" if name in ("cycle", "hit_rate") and not ratio else ""
    return f"{quantity.label}{unit}" + (f" ({timed})" if name in TIMED else "")


def systems_sheet(runs: Runs, title: str, knowing: Runs | None = None) -> Sheet:
    """One row per system, then the bounds: every quantity with its interval, the workload's score.

    `knowing` are the same systems under Belady's policy.
    """
    knowing = knowing or {}
    word = words_of(list(runs.values()))
    scores = score_columns(runs)
    columns = (
        "system",
        "slots",
        *(headed(name, word) for name in SHOWN),
        BELADY_COLUMN,
        BREAK_EVEN_COLUMN,
        *scores,
        "ids as AR",
    )
    rows: list[tuple[Entry, ...]] = [
        (
            style_of(system).label,
            str(run.info.cache_slots),
            *(measured(QUANTITIES[name].of(run)) for name in SHOWN),
            measured(short_of_belady(run, knowing[system])) if system in knowing else None,
            measured(needed(run, runs)),
            *scores_of(run, scores),
            ids_beside(run, runs.get("ar")),
        )
        for system, run in runs.items()
    ]
    for system in (s for s in BOUNDED if s in runs):
        run = resident(runs[system])
        values = [measured(QUANTITIES[name].of(run)) for name in SHOWN]
        rows.append((resident_label(system), "all", *values, *[None] * (2 + len(scores)), "-"))
    notes = [NOTE, *([BILLED] if _are_billed(runs) else [])]
    if not knowing:
        notes.append("No rows under Belady's policy; first: make reproduce SUITE=belady.")
    return Sheet(title, columns, tuple(rows), " ".join(notes))


def score_columns(runs: Runs) -> list[str]:
    """Measures that the runs have, and their control; one column of words where AR's own answers
    are too poor to speak of, none where nothing is scored."""
    names = [name for name in MEASURES if any(name in mean_measures(r) for r in runs.values())]
    own = quality_of(runs.get("ar", next(iter(runs.values()))), None)
    if own is not None and not own.is_meaningful:
        return [POOR]
    controlled_by = own is not None and own.control is not None
    return [*names, *([CONTROL_SCORE] if controlled_by else [])]


def scores_of(run: RunRows, columns: Sequence[str]) -> list[Entry]:
    if columns == [POOR]:
        return ["not meaningful here"]
    return [measured(score(run, name)) for name in columns]


POOR = "quality"
CONTROL_SCORE = "score_control"


BELADY_COLUMN = "hit rate short of Belady, points"
BREAK_EVEN_COLUMN = "break-even committed / cycle"


def needed(run: RunRows, runs: Runs) -> Interval | None:
    """Of a run that verifies drafts: what a cycle must commit to equal AR + cache."""
    plain = runs.get(PLAIN)
    if plain is None or not int(run.cycles["pool_nodes"].sum()):
        return None
    return break_even(run, plain)


def _are_billed(runs: Runs) -> bool:
    return any(run.info.billed not in (None, "self") for run in runs.values())


def ids_beside(run: RunRows, ar: RunRows | None) -> str:
    if ar is None or ar is run:
        return "-"
    check = same_ids(run, ar)
    if check.equal or check.first_difference is None:
        return "yes" if check.equal else str(check)
    outputs = [r.requests.set_index("request_id")["output_ids"] for r in (run, ar)]
    shared, _ = shared_requests(run, ar)
    equal = sum(list(outputs[0][name]) == list(outputs[1][name]) for name in shared)
    where = f"{check.first_difference}, token {check.position}"
    return f"{equal} of {check.compared}; first other {where}"


def ratios_sheet(runs: Runs, of: str, baselines: Sequence[str], title: str) -> Sheet:
    """`of` over each other system, in every compared quantity, paired by request."""
    word = words_of(list(runs.values()))
    columns = ("against", *(headed(name, word, ratio=True) for name in COMPARED))
    rows: list[tuple[Entry, ...]] = [
        (
            style_of(other).label,
            *(measured(QUANTITIES[name].ratio(runs[of], runs[other]), factor) for name in COMPARED),
        )
        for other in baselines
    ]
    return Sheet(title, columns, tuple(rows))


def over_pairs(pairs: Pairs, baselines: Sequence[str], timed: str) -> dict[str, Sheet]:
    """SpecFit's decode speed over each other system's, by pair."""
    lines = [((style_of(other).label,), speed_over(other)) for other in baselines]
    title = f"SpecFit against each other system, by pair: {headed('speed', timed, ratio=True)}"
    return pairs_sheet(pairs, ("against",), lines, factor, title)


def speed_over(baseline: str) -> Ratio:
    """SpecFit's decode speed over `baseline`'s in a suite of one workload and slot count."""

    def ratio(members: Sequence[SuiteRun]) -> Interval | None:
        runs = {m.system: m.rows for m in reversed(members)}
        if not {"specfit", baseline} <= runs.keys():
            return None
        return QUANTITIES["speed"].ratio(runs["specfit"], runs[baseline])

    return ratio


def robust_sheet(runs: Runs, of: str, baselines: Sequence[str]) -> Sheet:
    """What `of` gains over each other system without single requests."""
    rows = (((style_of(other).label,), runs[of], runs[other]) for other in baselines)
    return robustness.sheet(rows, ("against",))


def ours_of(claim: Claim, runs: Runs) -> Interval | None:
    """The claim's quantity in our rows; None where a run of it is not among them."""
    run = runs.get(claim.system)
    if run is None or (claim.against is not None and claim.against not in runs):
        return None
    quantity = QUANTITIES[claim.quantity]
    return quantity.of(run) if claim.against is None else quantity.ratio(run, runs[claim.against])


def paper_sheet(claims: Sequence[Claim], runs: Runs, title: str) -> Sheet:
    """The paper's value beside ours, with the verdict; `runs` of the claims' workload and slots."""
    rows = tuple(paper_row(claim, runs) for claim in claims)
    inferred = any(claim.inferred for claim in claims)
    note = CONTROL_NOTE + (" *: our arithmetic from published values." if inferred else "")
    return Sheet(title, PAPER_COLUMNS, rows, note)


CONTROL_NOTE = (
    "Control: whether AR + cache (AR, for SpecFit without a cache), which never speculates, passes "
    "in SpecFit's place. Effect: our change over the paper's."
)


PAPER_COLUMNS = (
    "quantity",
    "in the paper",
    "paper",
    "ours",
    "effect, ours / paper",
    "interval holds the paper's",
    "control",
    "verdict",
)


def paper_row(claim: Claim, runs: Runs) -> tuple[Entry, ...]:
    """PAPER_COLUMNS of one claim."""
    ours, run = ours_of(claim, runs), runs.get(claim.system)
    control = control_of(claim, runs)
    said = verdict(claim, ours, run, control)
    told = f"{claim.value:.2f}" if claim.against is None else shown(claim, claim.value)
    told += "*" if claim.inferred else ""
    value = measured(ours, lambda x: shown(claim, x))
    is_ratio = claim.against is not None and ours is not None
    holding = ("yes" if holds(ours, claim.value) else "no") if is_ratio and ours else "-"
    passing = "-" if control is None else ("passes" if passes(claim, control) else "fails")
    return (
        describe(claim, run),
        claim.where,
        Cell(told, claim.value),
        value,
        exact(effect(claim, ours)),
        holding,
        passing,
        said,
    )


def control_of(claim: Claim, runs: Runs) -> Interval | None:
    """The claim's ratio with the control in SpecFit's place; None where there is none."""
    swapped = controlled(claim)
    return None if swapped is None else ours_of(swapped, runs)


def describe(claim: Claim, run: RunRows | None) -> str:
    """'SpecFit: cycle (modelled), against EAGLE-3 + cache'."""
    timed = "modelled" if run is None else run.info.timed
    name = headed(claim.quantity, timed, ratio=claim.against is not None)
    text = f"{style_of(claim.system).label}: {name}"
    if claim.accuracy < 1:
        text += f", routes {100 * claim.accuracy:.0f} % right"
    return text if claim.against is None else f"{text}, against {style_of(claim.against).label}"


def shown(claim: Claim, value: float) -> str:
    if claim.against is None:
        return plain(value)
    return change(value) if claim.is_change else factor(value)


def equal_scores(runs: Runs) -> str:
    """The printed check that greedy output is lossless: every selector scores alike.

    Scores part only with the ids, which two experts tied to the last bit can do.
    """
    scored = {system: run for system, run in runs.items() if mean_measures(run)}
    if not scored:
        return "No request has a score."
    first, *others = scored
    parted = [style_of(s).label for s in others if not same_scores(runs[s], runs[first]).equal]
    if not parted:
        return "Every system scores alike on every request, as lossless decoding must."
    return f"Scores part from {style_of(first).label}'s where ids do: {', '.join(parted)}."


BARS = ("speed", "committed", "cycle", "verified", "experts")


GAINS = ("speed", "speed_with_prefill", "committed", "cycle", "experts")


def systems_figure(reader: ResultsReader, name: str, table: str, title: str) -> Drawing:
    """Bars of each quantity, and SpecFit over EAGLE-3 + cache beside the paper's ratios."""
    members, runs = reader.members(table), runs_of(reader, table)
    word = words_of(list(runs.values()))
    values = {q: {s: QUANTITIES[q].of(run) for s, run in runs.items()} for q in BARS}
    ratios = {q: QUANTITIES[q].ratio(runs["specfit"], runs["eagle3_cache"]) for q in GAINS}
    claims = claims_of(table)
    published = {
        q: {c.system: c.value for c in claims if c.quantity == q and c.against is None}
        for q in BARS
    }
    told = {c.quantity: c.value for c in claims if c.against == "eagle3_cache"}
    same = all(run.info.model in PAPER_TARGETS for run in runs.values())
    whose = "the paper's" + ("" if same else " (another model and machine)")
    fastest = max(values["speed"], key=lambda s: values["speed"][s].value or 0.0)
    alt = (
        f"Bars for {len(runs)} systems: speed, committed tokens, cycle time, verified nodes, "
        f"experts per token. Fastest here: {style_of(fastest).label}. SpecFit against EAGLE-3 + "
        f"cache: {change(ratios['speed'].value or 1.0)} decode speed."
    )

    def paint(figure: Any) -> None:
        axes: Any = figure.subplots(2, 3).ravel()
        for panel, quantity in zip(axes, BARS, strict=False):
            heading = headed(quantity, word)
            bars(panel, values[quantity], heading, QUANTITIES[quantity].unit, published[quantity])
        for panel in (axes[1], axes[2], axes[4]):
            panel.set_yticklabels([])
        _gains(axes[5], ratios, told)
        figure.legend(
            handles=[paper_handle(whose)],
            loc="outside lower center",
        )

    stamp = reader.stamp(list(runs.values()), table, extra=[INTERVALS.replace("Brackets", "Bars")])
    return Drawing(name, f"{title}: {setting_of(members)}", 5.2, stamp, alt, paint)


def _gains(axes: Any, ratios: dict, told: dict[str, float]) -> None:
    """SpecFit over EAGLE-3 + cache, in percent."""
    names = list(ratios)
    style = style_of("specfit")
    for row, name in enumerate(names):
        ours = ratios[name]
        low, high = (100 * ((x or ours.value) - 1) for x in (ours.low, ours.high))
        axes.plot([low, high], [row, row], color=style.colour, lw=2.2)
        axes.plot(100 * (ours.value - 1), row, style.marker, color=style.colour, mec="#222222")
        if name in told:
            mark(axes, 100 * (told[name] - 1), row + LANE)
        axes.text(
            0.02,
            row - 0.36,
            QUANTITIES[name].label,
            va="center",
            fontsize=7.5,
            transform=axes.get_yaxis_transform(),
        )
    axes.axvline(0, color="0.3", lw=0.8)
    axes.set_yticks([])
    axes.set_ylim(len(names) - 0.45, -0.65)
    axes.set_title("SpecFit against EAGLE-3 + cache")
    axes.set_xlabel("change, %")
    axes.margins(x=0.1)


def table_2(reader: ResultsReader) -> Table:
    """Table 2 (sec. 4.2): the systems on CNN/DailyMail or its stand-in, at the primary cache."""
    return systems_table(reader, "table_2", "Table 2")


def table_3(reader: ResultsReader) -> Table:
    """Table 3 (sec. 4.3): the systems on GSM8K or its stand-in, at the primary cache."""
    return systems_table(reader, "table_3", "Table 3")


def table_4(reader: ResultsReader) -> Table:
    """Table 4 (sec. 4.5): the systems on the RTX 4090 profile, and SpecFit without a cache."""
    return systems_table(reader, "table_4", "Table 4, the RTX 4090's profile")


def figure_2(reader: ResultsReader) -> Drawing:
    """Figure 2 (sec. 4.2): the systems on CNN/DailyMail or its stand-in, the rows of table 2."""
    return systems_figure(reader, "figure_2", "table_2", "Figure 2")


def figure_3(reader: ResultsReader) -> Drawing:
    """Figure 3 (sec. 4.3): the systems on GSM8K or its stand-in, the rows of table 3."""
    return systems_figure(reader, "figure_3", "table_3", "Figure 3")
