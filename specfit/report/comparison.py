"""Systems beside each other on the same requests: what a person sees when a run ends.

Copies are counted as the clock bills them, here as in every table and figure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from specfit.report.bounds import BOUNDED, resident, resident_label
from specfit.report.degenerate import degenerate_of
from specfit.report.explain import phase_sums
from specfit.report.explained import aligned
from specfit.report.intervals import Interval
from specfit.report.machines import unequal
from specfit.report.metrics import shared_requests, totals
from specfit.report.quality import quality_of
from specfit.report.quantities import QUANTITIES
from specfit.report.robustness import robustness
from specfit.report.run_summary import failures, number
from specfit.report.styles import label_of, rank, system_of
from specfit.storage.rows import RunRows

FEW = 10
"""Requests below which an interval over them is said to be rough."""

SHOWN = {
    "draft": "draft",
    "route": "predict routes",
    "select": "select",
    "wait": "waiting for copies",
    "compute": "computing",
    "commit": "commit",
}


@dataclass(frozen=True)
class Compared:
    """One system. `ids_are_its_own` is false where the ids were read from the run it stands beside,
    so that finding them equal says nothing."""

    rows: RunRows
    ids_are_its_own: bool = True

    @property
    def name(self) -> str:
        return label_of(self.rows.info)


def lines_of(run: RunRows, others: Sequence[Compared], scorer: str | None) -> list[str]:
    """The table, what it means, where a cycle's time goes, and the answers."""
    entries = [*others, Compared(run)]
    plain = _named(entries, "ar_cache")
    speculating = _named(entries, "eagle3_cache")
    said = [_over(run, one.rows) for one in (speculating, plain) if one and one.rows is not run]
    return [
        *table(entries, run),
        "",
        *[text for text in said if text],
        *_degenerate(run, speculating),
        *_few(run),
        "",
        _phases(run),
        *_answers(run, scorer),
        *_failed(run),
    ]


def table(entries: Sequence[Compared], run: RunRows) -> list[str]:
    """One line a system; `run` is marked."""
    timed = run.info.timed
    plain, ar = _named(entries, "ar_cache"), _named(entries, "ar")
    heads = [
        ("", "tokens/s", "against", "tokens", "nodes", "experts", "cycle, ms", "same ids", ""),
        (
            "",
            f"({timed})",
            "AR + cache",
            "/ cycle",
            "verified",
            "/ token",
            f"({timed})",
            "as AR",
            "",
        ),
    ]
    body = [
        _cells(one.name, one, plain) + (_ids(one, ar), "<-" if one.rows is run else "")
        for one in entries
    ]
    bound = fastest_resident(entries)
    if bound is not None:
        name, rows = bound
        body.append((*_cells(name, Compared(rows), plain), "-", "upper bound"))
    return aligned([*heads, *body], left=(0, -1))


def _cells(name: str, one: Compared, plain: Compared | None) -> tuple[str, ...]:
    quantities = ("committed", "verified", "experts", "cycle")
    values = [_value(one.rows, quantity) for quantity in quantities]
    return (name, _value(one.rows, "speed"), _against(one, plain), *values)


def fastest_resident(entries: Sequence[Compared]) -> tuple[str, RunRows] | None:
    """The upper bound of any cache: of the cached systems, the fastest with nothing copied. None on
    a measured clock, where it would be an estimate."""
    cached = [one.rows for one in entries if one.rows.info.selector in BOUNDED]
    if not cached or any(run.info.clock != "modelled" for run in cached):
        return None
    bounds = [(resident_label(run.info.selector), resident(run)) for run in cached if run.ok_ids]
    return max(bounds, key=lambda one: QUANTITIES["speed"].of(one[1]).value or 0.0, default=None)


def _named(entries: Sequence[Compared], selector: str) -> Compared | None:
    return next((one for one in entries if one.rows.info.selector == selector), None)


def _value(run: RunRows, quantity: str) -> str:
    return number(QUANTITIES[quantity].of(run).value)


def _against(one: Compared, plain: Compared | None) -> str:
    if plain is None:
        return "-"
    if one is plain or one.rows is plain.rows:
        return "1"
    return bracketed(QUANTITIES["speed"].ratio(one.rows, plain.rows))


def bracketed(ratio: Interval) -> str:
    """`1.54x [1.39, 1.68]`: 95 % over the requests."""
    if ratio.value is None:
        return "-"
    text = f"{ratio.value:.2f}x"
    return text if ratio.low is None else f"{text} [{ratio.low:.2f}, {ratio.high:.2f}]"


def _ids(one: Compared, ar: Compared | None) -> str:
    """Requests whose ids are AR's, of all that failed in neither."""
    if ar is None or one.rows is ar.rows or not (one.ids_are_its_own and ar.ids_are_its_own):
        return "-"
    same, shared = equal_ids(one.rows, ar.rows)
    return f"{same}/{shared}"


def equal_ids(a: RunRows, b: RunRows) -> tuple[int, int]:
    """Requests with the same output ids in both, and how many failed in neither."""
    shared, _ = shared_requests(a, b)
    left, right = (run.requests.set_index("request_id")["output_ids"] for run in (a, b))
    return sum(list(left[name]) == list(right[name]) for name in shared), len(shared)


# -- sentences -------------------------------------------------------------------------------------


def _over(run: RunRows, base: RunRows) -> str | None:
    """What `run` gains or loses against `base`, and by what."""
    speed = QUANTITIES["speed"].ratio(run, base)
    ours, theirs = label_of(run.info), label_of(base.info)
    if differs := unequal(run, base):
        return (
            f"{ours} and {theirs} had unequal machines ({'; '.join(differs)}), so their times are "
            "not divided; run both again on one machine in one state."
        )
    if speed.value is None:
        return None
    if speed.low is not None and speed.high is not None and speed.low <= 1 <= speed.high:
        head = f"{ours} and {theirs} cannot be told apart here ({bracketed(speed)})"
    elif speed.value >= 1:
        head = f"{ours} is {bracketed(speed)} as fast as {theirs}"
    else:
        head = f"{ours} is slower than {theirs} ({bracketed(speed)} its speed)"
    if base.info.selector == "ar_cache":
        longer = QUANTITIES["cycle"].ratio(run, base).value
        more = QUANTITIES["committed"].ratio(run, base).value
        told = f"{number(more)} times the tokens in {number(longer)} times the time"
        return f"{head}: a cycle commits {told}."
    fewer = QUANTITIES["experts"].ratio(run, base).value
    told = f"it verifies {_value(run, 'verified')} nodes a cycle, not {_value(base, 'verified')}"
    if fewer is not None:
        word = "fewer" if fewer < 1 else "more"
        told += f", and copies {abs(100 * (1 - fewer)):.1f} % {word} experts per token"
    return f"{head}: {told}."


def _degenerate(run: RunRows, base: Compared | None) -> list[str]:
    """How many outputs say nothing of a method, and the ratio without them."""
    count = len(degenerate_of(run))
    told = (
        f"degenerate outputs (one n-gram over half of it, or cut at the cap): {count} of "
        f"{len(run.ok_ids)}"
    )
    if not count or base is None or base.rows is run:
        return [told]
    found = robustness(run, base.rows)
    if found.without.value is None:
        return [f"{told}; none is left without them"]
    over = f"{label_of(run.info)} over {label_of(base.rows.info)}"
    return [
        f"{told}; without them {over} is {bracketed(found.without)}, leaving any one request out "
        f"{found.span}"
    ]


def _few(run: RunRows) -> list[str]:
    n = len(run.ok_ids)
    if n >= FEW:
        return []
    return [
        f"only {n} request{'s' if n != 1 else ''}: the intervals are rough; leave limit out for all"
    ]


def _phases(run: RunRows) -> str:
    t = totals(run)
    cycles = t.sum("cycles")
    parts = {name: ns / cycles / 1e6 for name, ns in phase_sums(t).items()} if cycles else {}
    shown = " | ".join(f"{SHOWN[name]} {number(ms)}" for name, ms in parts.items() if ms)
    cycle = number(QUANTITIES["cycle"].of(run).value)
    article = "an" if label_of(run.info)[0] in "AE" else "a"
    return f"{article} {label_of(run.info)} cycle, {cycle} ms ({run.info.timed}):  {shown}"


def _answers(run: RunRows, scorer: str | None) -> list[str]:
    """Greedy output is the target's own, so the score is AR's, whatever was verified."""
    found = quality_of(run, scorer)
    if found is None:
        return []
    score = f"{found.name} {found.mean:.2f}"
    if not found.is_meaningful:
        return [
            f"answers: quality is not meaningful here ({score}, below {found.goal:.1f}): "
            "speed and equal ids are what is tested"
        ]
    return [f"answers: {score}, the target's own (n={len(run.ok_ids)}){found.beside}"]


def _failed(run: RunRows) -> list[str]:
    why = failures(run)
    return [] if why is None else [f"requests: {why}"]


# -- a sweep ---------------------------------------------------------------------------------------


def job_line(run: RunRows, ran_now: bool) -> str:
    """One job of a sweep."""
    info, state = run.info, "finished" if ran_now else "found finished"
    return (
        f"{label_of(info)}, {info.cache_slots} slots, {info.dataset}: "
        f"{_value(run, 'speed')} tokens/s ({info.timed}), run {info.run_id}, {state}"
    )


def sweep_table(runs: Sequence[RunRows]) -> list[str]:
    """Systems by slots, tokens/s: a table for every workload, model, profile and clock. Runs that
    differ in something else have lines of their own, by run id."""
    lines: list[str] = []
    for place, group in _by_place(runs).items():
        lines += ["", place, ""]
        cells: dict[tuple[str, int], list[RunRows]] = {}
        for run in group:
            cells.setdefault((label_of(run.info), run.info.cache_slots), []).append(run)
        if any(len(found) > 1 for found in cells.values()):
            lines += _listed(group)
            continue
        slots = sorted({slot for _, slot in cells})
        rows = [("tokens/s", *(f"{slot} slots" for slot in slots))]
        for name in dict.fromkeys(name for name, _ in cells):
            found = [cells.get((name, slot)) for slot in slots]
            rows.append((name, *("-" if one is None else _value(one[0], "speed") for one in found)))
        lines += aligned(rows, left=(0,))
    return lines


def _by_place(runs: Sequence[RunRows]) -> dict[str, list[RunRows]]:
    groups: dict[str, list[RunRows]] = {}
    ordered = sorted(runs, key=lambda one: (rank(system_of(one.info)), one.info.cache_slots))
    for run in ordered:
        info = run.info
        place = f"{info.dataset}, {info.model}, n = {len(run.ok_ids)} requests ({info.timed}, "
        groups.setdefault(f"{place}profile {info.profile}, {info.device})", []).append(run)
    return groups


def _listed(runs: Sequence[RunRows]) -> list[str]:
    rows = [("run", "system", "slots", "tokens/s")]
    for run in runs:
        info = run.info
        rows.append((info.run_id, label_of(info), str(info.cache_slots), _value(run, "speed")))
    return aligned(rows, left=(0, 1))
