"""The closing table of one run, as data and as plain text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from specfit.report.clock_check import clock_sentence
from specfit.report.degenerate import degenerate_of, loops_of
from specfit.report.intervals import Interval, speedup
from specfit.report.machines import unequal
from specfit.report.metrics import (
    PHASES,
    Summary,
    mean_measures,
    same_ids,
    same_scores,
    summarise,
    totals,
)
from specfit.storage.manifest import RunInfo
from specfit.storage.rows import RunRows

Value = float | int | str | None


@dataclass(frozen=True)
class Line:
    """One line of a table. None is shown as a dash, never as 0."""

    label: str
    value: Value
    unit: str = ""
    note: str = ""

    @property
    def shown(self) -> str:
        text = f"{number(self.value)} {self.unit}".rstrip()
        return f"{text} ({self.note})" if self.note else text


def number(value: Value) -> str:
    """Three significant digits for a ratio, every digit of a count."""
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.0f}" if abs(value) >= 99.95 else f"{value:#.3g}"
    return str(value)


def interval_note(interval: Interval) -> str:
    if interval.low is None or interval.high is None:
        note = f"n={interval.n}, too few requests for an interval"
    else:
        note = f"95 % {interval.low:.2f}-{interval.high:.2f}, n={interval.n}"
    return note + (f", {interval.excluded} failed" if interval.excluded else "")


def closing_table(
    run: RunRows, ar: RunRows | None = None, results: Path | None = None
) -> list[Line]:
    """What a person sees when a run ends; `ar` is the AR run of the same requests, if any, and
    `results` the folder where a probe has left how far the modelled clock is off."""
    s, info = summarise(run), run.info
    lines = [
        Line("decode speed", s.tokens_per_second, "tokens/s", info.timed),
        Line("committed per cycle", s.committed_per_cycle, "tokens"),
        Line("verified per cycle", s.verified_per_cycle, "nodes"),
        _copies_line(run, s),
        Line("hit rate", _percent(s.hit_rate), "%", "decode"),
        *_phase_lines(s, info),
        *_byte_lines(s, info),
        *_time_lines(s, info),
        *_score_lines(run),
        Line("requests", s.requests, "", failures(run) or ""),
        *_cut_lines(run),
        *_degenerate_lines(run),
        Line("system", f"{info.selector}, {info.cache_slots} slots"),
        Line("workload", f"{info.dataset}, {info.model}"),
        Line("clock, profile, device", f"{info.clock}, {info.profile}, {info.device}"),
        *_clock_lines(info, results),
    ]
    return lines + _fallbacks(run) + _marks(run) + ([] if ar is None else _against(run, ar))


def failures(run: RunRows) -> str | None:
    """How many requests failed, the first one's reason, and how many share it; None where all are
    ok."""
    return failed_sentence(str(text) for text in run.requests["status"] if text != "ok")


def failed_sentence(reasons: Iterable[str]) -> str | None:
    """`3 failed, 2 of them: <the first one's reason>`; reasons that differ in a number are one."""
    kinds = [(re.sub(r"\d+", "#", text), text) for text in reasons]
    if not kinds:
        return None
    shared = sum(kind == kinds[0][0] for kind, _ in kinds)
    count = f"{len(kinds)} failed" + (f", {shared} of them" if shared < len(kinds) else "")
    return f"{count}: {kinds[0][1]}"


def counted(count: int, noun: str) -> str:
    """1 request, 2 requests."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def render(lines: Sequence[Line], title: str = "") -> str:
    """Plain text: labels in one column, values in the next."""
    width = max((len(line.label) for line in lines), default=0)
    body = [f"{line.label:<{width}}  {line.shown}" for line in lines]
    return "\n".join(([title] if title else []) + body)


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share


def _copies_line(run: RunRows, s: Summary) -> Line:
    """As the clock bills them, here as in every table."""
    from specfit.report.quantities import copy_scale

    scale = copy_scale(run)
    both = (s.experts_per_token, s.experts_per_token_with_prefill)
    decode, whole = (None if copies is None else copies * scale for copies in both)
    note = f"{number(whole)} with prefill"
    if run.info.billed not in (None, "self"):
        note += f", billed as {run.info.billed}"
    return Line("experts per token", decode, "copies", note)


def _phase_lines(s: Summary, info: RunInfo) -> list[Line]:
    lines = []
    for phase in PHASES:
        ns, share = s.phase_ns_per_cycle[phase], _percent(s.phase_shares[phase])
        if not ns and phase != "verify":
            continue
        note = f"{info.timed}, {number(share)} % of decode"
        if phase == "verify" and s.wait_ns_per_cycle is not None:
            note += f", {number(s.wait_ns_per_cycle / 1e6)} ms of it waiting for copies"
        lines.append(Line(f"{phase} per cycle", None if ns is None else ns / 1e6, "ms", note))
    return lines


def _byte_lines(s: Summary, info: RunInfo) -> list[Line]:
    billed = f"billed as {info.billed}" if info.billed else "billed"
    return [Line("copied", s.billed_bytes / 1e9, "GB", f"{billed}, prefill included")]


def _time_lines(s: Summary, info: RunInfo) -> list[Line]:
    elapsed_s = None if s.elapsed_ns is None else s.elapsed_ns / 1e9
    atlas = 100 * (s.atlas_ns or 0) / s.elapsed_ns if s.elapsed_ns else None
    note = f"{number(atlas)} % of it on the atlas, off the clock"
    return [
        Line("timed", s.timed_ns / 1e9, "s", f"{info.timed}, prefill and decode"),
        Line("decoding took", elapsed_s, "s", note),
    ]


def _clock_lines(info: RunInfo, results: Path | None) -> list[Line]:
    if results is None or info.clock != "modelled":
        return []
    return [Line("clock check", clock_sentence(results, info.profile_digest))]


def _fallbacks(run: RunRows) -> list[Line]:
    """Of routes=recording: how often the target was asked after all."""
    found = run.requests["route_fallbacks"].dropna()
    if not len(found):
        return []
    cycles = totals(run).sum("cycles")
    read = f"{cycles - int(found.sum())} of {cycles}"
    return [Line("recorded routes", read, "cycles", f"{int(found.sum())} asked the target")]


def _marks(run: RunRows) -> list[Line]:
    """What a reader must know before using the numbers."""
    lines = []
    if bool(run.requests["fits"].eq(False).any()):  # null is neither
        misfit = "this setting would not fit the profile's memory; cache_slots=fit takes what does"
        lines.append(Line("mark", misfit))
    if _is_forced(run):
        lines.append(
            Line("mark", "committed ids are a script's (drafter.force): equal ids say nothing")
        )
    cap = run.requests["link_gbps_cap"].dropna()
    if len(cap):
        lines.append(Line("mark", f"link capped at {number(float(cap.iloc[0]))} GB/s"))
    locked = run.requests["locked_share"].dropna()
    if len(locked) and locked.min() < 1:
        share = number(100 * float(locked.min()))
        lines.append(Line("mark", f"{share} % of the experts page-locked, the rest copied slower"))
    if moved := machine_moved(run):
        lines.append(Line("mark", f"the machine's state moved during the run: {', '.join(moved)}"))
    return lines


def _score_lines(run: RunRows) -> list[Line]:
    measures = mean_measures(run)
    score = measures.pop("score", None)
    rouge = ", ".join(f"{name} {number(value)}" for name, value in measures.items())
    return [] if score is None else [Line("mean score", score, "", rouge)]


def _cut_lines(run: RunRows) -> list[Line]:
    cut = run.requests["cut_tokens"].dropna()
    documents = int((cut > 0).sum())
    note = f"of {documents} documents, by the workload's own limit"
    return [Line("cut", int(cut.sum()), "tokens", note)] if documents else []


def _degenerate_lines(run: RunRows) -> list[Line]:
    """Counted where there are any."""
    found = degenerate_of(run)
    loops = len(loops_of(run) & found)
    note = f"of {len(run.ok_ids)}; {loops} repeat one n-gram, the others reached the cap"
    return [Line("degenerate outputs", len(found), "", note)] if found else []


def _is_forced(run: RunRows) -> bool:
    return bool(run.requests["drafter_forced"].eq(True).any())


def machine_moved(run: RunRows) -> list[str]:
    """State columns that took more than one value between requests, or show throttling."""
    steady = ("pcie_generation", "pcie_width", "power_limit_w")
    known = {
        name: set(run.requests[name].dropna())
        for name in (*steady, "throttle_reasons", "cpu_throttles")
    }
    moved = [name for name in steady if len(known[name]) > 1]
    throttled = bool(known["throttle_reasons"] - {0})
    heated = any(count > 0 for count in known["cpu_throttles"])
    return moved + ["throttle_reasons"] * throttled + ["cpu_throttles"] * heated


def _against(run: RunRows, ar: RunRows) -> list[Line]:
    gain = speedup(run, ar)
    note = f"{run.info.timed}, {interval_note(gain)}"
    if differs := unequal(run, ar):
        gain = replace(gain, value=None)
        note = f"not divided, the machines differ: {'; '.join(differs)}"
    checks = [Line("ids equal to ar", str(same_ids(run, ar)))]
    if mean_measures(run):
        checks.append(Line("scores equal to ar", str(same_scores(run, ar))))
    return [
        Line("speed-up over ar", gain.value, "x", note),
        *([] if _is_forced(run) else checks),
    ]
