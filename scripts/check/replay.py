"""Is a replay the run? Every finished modelled run against a replay of its recording, row by row.

    python -m specfit.record dataset=embedded_news        # once
    python scripts/check/replay.py [--results results] [--selectors ar ar_cache ..]

For each run below results/runs whose requests were recorded: the same decoder over the recording.
Every column of the cycles must be equal, except `predicted_reward`, which may differ by 1e-4 of
itself. Prints one line per workload and selector, one cell per slot count: requests equal, of all.

A request that differs is named, not excused: how close the decisions were (routers up to where the
two part and the two best logits there, for which the model is loaded; where tokens agree, also the
two best selections of the cycle). That a router was as close somewhere before is a likely reason,
not a proof that it was this one. Later requests found another cache in the live run, so each of
them is replayed again from the residency that the live run kept before it.

Exit code 1 where a request differs and no decision was closer than 1e-5, or nothing was compared.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from specfit.base.entry import needs_extras, script

with needs_extras():
    import pandas as pd
    from near_ties import NEAR, Closest, closest, plain_model, ratio_gap

    from specfit.base.types import SpecfitError
    from specfit.decoding.calibration.files import Calibration
    from specfit.decoding.replay.spec import replay_runtime, resolve_replay
    from specfit.decoding.resolve import open_checkpoint
    from specfit.decoding.spec import RunSpec
    from specfit.report.live_check import differing_columns, first_difference, reward_difference
    from specfit.storage.find import finished_runs
    from specfit.storage.recording.files import Recording, read_recording
    from specfit.storage.rows import RunRows, load_run
    from specfit.storage.run_folder import RunStore
    from specfit.storage.tables import cycles_table, to_frame
    from specfit.workflows.execute import Job, Watcher, execute, run_id_of
    from specfit.workflows.studies.rules import states_of
    from specfit.workflows.studies.stored import stored_config

SELECTORS = ("ar", "ar_cache", "eagle3", "eagle3_cache", "specfit")


@dataclass(frozen=True)
class Difference:
    request_id: str
    columns: Sequence[str]
    said: str
    is_near: bool

    @property
    def line(self) -> str:
        word = "near-tie" if self.is_near else "NOT a near-tie"
        return f"{self.request_id}: {word}: {self.said}; differs in {', '.join(self.columns[:3])}"


@dataclass(frozen=True)
class Verdict:
    """One live run beside its replay."""

    selector: str
    slots: int
    run_id: str
    requests: int
    cycles: int
    reward: float  # largest relative difference of predicted_reward in equal requests
    differences: Sequence[Difference]

    @property
    def cell(self) -> str:
        return f"{self.requests - len(self.differences)}/{self.requests}"


class Comparison:
    """A live run, its replay, and replays of single requests from what the live run kept."""

    def __init__(self, folder: Path, spec: RunSpec, recording: Recording) -> None:
        self._spec, self._store = spec, RunStore(folder.parent, folder.name)
        self._recording = recording
        outcome = execute(spec, replay_runtime, Watcher(), below="replays")
        self._fit: Calibration | None = outcome.calibration
        self._live, self._again = load_run(folder), load_run(outcome.folder)

    def verdict(self) -> Verdict:
        """Up to the first request that differs, cache contents agree by induction."""
        differences: list[Difference] = []
        furthest = 0.0
        for request_id in self._live.request_ids:
            live = _of(self._live, request_id)
            again = self._alone(request_id) if differences else _of(self._again, request_id)
            columns = differing_columns(live, again)
            if columns:
                differences.append(self._difference(request_id, columns, live, again))
            else:
                furthest = max(furthest, reward_difference(live, again) or 0.0)
        info = self._live.info
        about = info.selector, info.cache_slots, info.run_id
        counted = len(self._live.request_ids), len(self._live.cycles)
        return Verdict(*about, *counted, furthest, differences)

    def _alone(self, request_id: str) -> pd.DataFrame:
        """The request as the live run found it: its residency, and the cycles before it."""
        job = Job(self._spec, replay_runtime, self._fit)
        part = job.replay_one(request_id, self._store, Watcher())
        return to_frame(cycles_table(self._live.info.run_id, part.cycles))

    # -- why ---------------------------------------------------------------------------------------

    def _difference(
        self, request_id: str, columns: list[str], live: pd.DataFrame, again: pd.DataFrame
    ) -> Difference:
        """The closest decisions up to where the two part: a token of the output, or a cycle."""
        recorded = next(r for r in self._recording.requests if r.request_id == request_id)
        row = self._live.requests.set_index("request_id").loc[request_id]
        assert recorded.request is not None and recorded.output_ids is not None
        mine, known = [int(t) for t in row["output_ids"]], recorded.output_ids.tolist()
        parts = (i for i, (a, b) in enumerate(zip(mine, known, strict=False)) if a != b)
        at, cycle = next(parts, None), first_difference(live, again)
        cut = at if at is not None else _committed(live, cycle)
        found = self._closest([*recorded.request.prompt_ids.tolist(), *known[:cut]])
        where = f"token {at}" if at is not None else f"cycle {cycle}, equal tokens"
        said = (
            f"{where}: closest router decision before {found.router_gap:.1e}, two best logits "
            f"{found.margin:.1e} apart"
        )
        smallest = found.smallest
        if at is None and self._fit is not None and 0 < cycle < min(len(live), len(again)):
            gap = self._selections(request_id, live.iloc[cycle], again.iloc[cycle])
            said += f", two best selections {gap:.1e} apart"
            smallest = min(smallest, gap)
        return Difference(request_id, columns, said, smallest < NEAR)

    def _closest(self, context: list[int]) -> Closest:
        config = self._spec.config
        model = plain_model(open_checkpoint(config.model).folder, config.threads)
        return closest(model, context)

    def _selections(self, request_id: str, live: pd.Series, again: pd.Series) -> float:
        """How far the two best selections of the levels that both runs drafted lie apart."""
        assert self._fit is not None
        prompt = self._live.requests.set_index("request_id").loc[request_id, "prompt_tokens"]
        position = int(live["context_tokens"]) - int(prompt) - 1
        state = states_of(self._recording, [request_id])[request_id, position]
        levels = min(int(live["drafted_levels"]), int(again["drafted_levels"]))
        k, experts = self._spec.config.selector.k, self._spec.geometry.experts
        return ratio_gap(state, self._fit.cost, experts, k, levels)


def _committed(cycles: pd.DataFrame, cycle: int) -> int:
    """Tokens that the cycles up to this one, itself included, added."""
    return int(cycles["committed_tokens"].iloc[: cycle + 1].sum())


def _of(rows: RunRows, request_id: str) -> pd.DataFrame:
    return rows.cycles[rows.cycles["request_id"] == request_id]


# -- all runs --------------------------------------------------------------------------------------


def verdicts(recording: Recording, results: Path, selectors: list[str]) -> Iterator[Verdict]:
    dataset = recording.config["dataset"]["name"]
    live = finished_runs(results / "runs", clock="modelled", dataset=dataset, recording=None)
    for folder, manifest in live:
        if manifest.info.selector not in selectors:
            continue
        spec = resolve_replay(stored_config(folder, recording, results), recording)
        if run_id_of(spec) == manifest.info.run_id:  # else of other requests, or another pair
            yield Comparison(folder, spec, recording).verdict()


def matrix(found: Sequence[Verdict], selectors: list[str]) -> str:
    """Markdown; a cell has one entry per run (other profiles, K or repeats)."""
    slots = sorted({one.slots for one in found})
    lines = ["| selector | " + " | ".join(f"{s} slots" for s in slots) + " |"]
    lines.append("|---|" + "---:|" * len(slots))
    for selector in selectors:
        cells = [
            ", ".join(v.cell for v in found if (v.selector, v.slots) == (selector, s)) or "-"
            for s in slots
        ]
        lines.append(f"| {selector} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def show(recording: Recording, found: Sequence[Verdict], selectors: list[str]) -> None:
    lost = [(one, difference) for one in found for difference in one.differences]
    near = sum(difference.is_near for _, difference in lost)
    print(f"{recording.config['dataset']['name']}, recording {recording.recording_id}")
    print(matrix(found, selectors))
    print(
        f"requests equal, of all; {len(found)} runs, {sum(v.cycles for v in found)} cycles; "
        f"predicted_reward within {max(v.reward for v in found):.1e}; {len(lost)} requests differ, "
        f"{near} of them at a near-tie"
    )
    for one, difference in lost:
        print(f"  {one.run_id} {one.selector}, {one.slots} slots, {difference.line}")
    print()


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--results", type=Path, default=Path("results"))
    parser.add_argument("--selectors", nargs="+", default=list(SELECTORS))
    options = parser.parse_args()
    everything: list[Verdict] = []
    try:
        for folder in sorted((options.results / "recordings").glob("[!.]*")):
            recording = read_recording(folder)
            found = list(verdicts(recording, options.results, options.selectors))
            if found:
                show(recording, found, options.selectors)
            everything += found
    except SpecfitError as error:
        print(f"specfit: {error}", file=sys.stderr)
        return 2
    if not everything:
        print(f"no finished run below {options.results}/runs was recorded; see specfit.record")
    bad = [d for one in everything for d in one.differences if not d.is_near]
    return 1 if bad or not everything else 0


if __name__ == "__main__":
    sys.exit(script(main))
