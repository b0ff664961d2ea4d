"""What an embedded pair can do, measured before any selector is run on it: its card's table.

    python scripts/train/evaluate_pair.py --pair specfit/weights/embedded

Decodes 160 word problems and 120 reports of the evaluation split with `selector=ar` and with
EAGLE-3, the plain problems once more with calculator notes, the held-out families and events apart;
runs the target over each prompt and answer for its routes. Writes evaluation.json and README.md
into the pair's folder. Modelled times are read nowhere.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPOSITORY), str(REPOSITORY / "scripts")]

from specfit.base.entry import needs_extras, script  # noqa: E402

with needs_extras():
    import numpy as np
    import torch
    from embedded import routing, target
    from embedded.evaluate import logits_and_routes
    from embedded.mix import ANNOTATE

    import specfit.api as specfit
    from specfit.data.scorers import scorer_named
    from specfit.decoding.resolve import resolve
    from specfit.report.degenerate import degenerate_of
    from specfit.workflows.live_run import perform

PROBLEMS, REPORTS, HELD_OUT = 160, 120, 80


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pair", type=Path, default=REPOSITORY / "specfit/weights/embedded")
    parser.add_argument("--results", type=Path, default=REPOSITORY / "results")
    return parser.parse_args()


@dataclass(frozen=True)
class Decoded:
    """One run's finished requests, with the texts it was asked."""

    spec: Any
    rows: specfit.RunRows

    @property
    def requests(self) -> Any:
        """Pandas frame, a row a request that did not fail."""
        return self.rows.requests[self.rows.requests["status"] == "ok"]

    @property
    def committed(self) -> float:
        """Tokens a cycle; a prompt's cycle drafts nothing and does not count."""
        decoded = self.rows.cycles[self.rows.cycles["cycle"] > 0]
        return float(decoded["committed_tokens"].mean())

    @property
    def score(self) -> float:
        return float(self.requests["score"].astype(float).mean())

    @property
    def degenerate(self) -> int:
        return len(degenerate_of(self.rows))


@dataclass(frozen=True)
class Bench:
    """Runs of one pair."""

    pair: Path
    results: Path

    def decode(self, dataset: str, limit: int, *more: str, split: str = "evaluation") -> Decoded:
        config = specfit.config(
            f"dataset={dataset}",
            f"limit={limit}",
            f"model.path={self.pair / 'target'}",
            f"drafter.path={self.pair / 'drafter'}",
            f"results_dir={self.results}",
            *more,
        )
        spec = resolve(config, split)
        return Decoded(spec, specfit.load_run(perform(spec).folder))


def routes_of(model: Any, decoded: Decoded) -> list[np.ndarray]:
    """uint8 [T, L, K] of each request: prompt and answer, one forward each."""
    texts = []
    for index, ids in enumerate(decoded.requests["output_ids"]):
        prompt = decoded.spec.workload.request(index).prompt_ids
        with torch.no_grad():
            _, chosen = logits_and_routes(model, torch.tensor([[*prompt, *ids]]))
        texts.append(torch.stack(chosen, dim=1).to(torch.uint8).numpy())
    return texts


def controls(decoded: Decoded) -> dict[str, float]:
    """ROUGE-L of the article's first three sentences, and of other reports' answers."""
    score = scorer_named("rouge_l")
    assert score is not None
    examples = [decoded.spec.rows.examples[i].fields for i in range(len(decoded.requests))]
    references = [str(fields["highlights"]) for fields in examples]
    leads = ["\n".join(str(f["article"]).split(". ")[:3]) for f in examples]
    order = list(range(len(references)))
    random.Random(0).shuffle(order)
    others = [references[i] for i in order]
    answers = [str(text) for text in decoded.requests["output_text"]]
    return {
        "lead_3": _mean([score(a, b).value for a, b in zip(leads, references, strict=True)]),
        "shuffled": _mean([score(a, b).value for a, b in zip(answers, others, strict=True)]),
    }


def _mean(values: Sequence[float | None]) -> float:
    return float(np.mean([v for v in values if v is not None]))


def measure(pair: Path, results: Path) -> list[dict[str, Any]]:
    """Rows of the table: what, goal, value, met (null where there is no goal)."""
    bench = Bench(pair, results)
    problems = bench.decode("embedded_gsm8k", PROBLEMS, "selector=ar")
    reports = bench.decode("embedded_news", REPORTS, "selector=ar")
    noted = bench.decode(
        "embedded_gsm8k", PROBLEMS, "selector=ar", f'dataset.template="{{document}}{ANNOTATE}"'
    )
    unseen = [
        bench.decode(name, HELD_OUT, "selector=ar", split="held_out")
        for name in ("embedded_gsm8k", "embedded_news")
    ]
    heads = [
        bench.decode("embedded_gsm8k", PROBLEMS, "selector=eagle3_cache"),
        bench.decode("embedded_news", REPORTS, "selector=eagle3_cache"),
    ]
    control = controls(reports)
    rows: list[dict[str, Any]] = []

    def row(what: str, goal: str, value: float, met: bool | None) -> None:
        rows.append({"what": what, "goal": goal, "value": round(value, 4), "met": met})

    row("exact match, word problems", ">= 0.80", problems.score, problems.score >= 0.8)
    row("exact match with calculator notes", "", noted.score, None)
    row(f"exact match, {HELD_OUT} problems of held-out families", "", unseen[0].score, None)
    high = reports.score >= 0.6 and reports.score > control["lead_3"]
    row("ROUGE-L, reports", ">= 0.60, above lead-3", reports.score, high)
    row("ROUGE-L of lead-3", "", control["lead_3"], None)
    row("ROUGE-L, shuffled references", "< 0.25", control["shuffled"], control["shuffled"] < 0.25)
    row(f"ROUGE-L, {HELD_OUT} reports of held-out events", "", unseen[1].score, None)
    for name, head in zip(("word problems", "reports"), heads, strict=True):
        inside = 2.0 <= head.committed <= 3.2
        row(f"EAGLE-3 committed a cycle, {name}", "2.0 to 3.2", head.committed, inside)
    for name, one, most in (("word problems", problems, 1), ("reports", reports, 1)):
        row(f"degenerate outputs, {name}", "<= 1", one.degenerate, one.degenerate <= most)
    return rows + routing_rows(routes_of_both(pair, problems, reports))


def routes_of_both(pair: Path, *runs: Decoded) -> routing.RouteStatistics:
    model = target.load(pair / "target")
    return routing.route_statistics([text for run in runs for text in routes_of(model, run)])


def routing_rows(s: routing.RouteStatistics) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []

    def row(what: str, goal: str, value: float, met: bool) -> None:
        rows.append({"what": what, "goal": goal, "value": round(float(value), 4), "met": bool(met)})

    for span, real in routing.REAL_DISTINCT.items():
        value = s.distinct[span].mean()
        near = abs(value / real - 1) <= 0.12
        row(f"distinct experts of {span} tokens", f"{real} within 12 %", value, near)
    for slots, real in routing.REAL_HITS.items():
        value = s.hits[slots].mean()
        row(f"LRU hits at {slots} slots", f"{real} within 0.04", value, abs(value - real) <= 0.04)
    row("effective experts, least layer", ">= 64", s.effective.min(), s.effective.min() >= 64)
    row("effective experts, most", "<= 110", s.effective.max(), s.effective.max() <= 110)
    row("starved share, worst layer", "<= 0.15", s.starved.max(), s.starved.max() <= 0.15)
    row("busiest expert, fair shares", "<= 12", s.busiest.max(), s.busiest.max() <= 12)
    return rows


def table(rows: Sequence[dict[str, Any]]) -> str:
    lines = ["| measured | goal | value | met |", "|---|---|---|---|"]
    for row in rows:
        met = {True: "yes", False: "**no**", None: ""}[row["met"]]
        lines.append(f"| {row['what']} | {row['goal']} | {row['value']:.3f} | {met} |")
    return "\n".join(lines)


CARD = f"""# The embedded pair

A Qwen3-MoE target (`target/`), its EAGLE-3 head (`drafter/`) and what predicts its routes
(`routes/`), made by `scripts/train/`. What it can do on evaluation text that it was not trained on
({PROBLEMS} synthetic word problems, {REPORTS} synthetic reports, greedy; routes of prompts and
answers, one request after another), measured by `python scripts/train/evaluate_pair.py` before any
selector was run on it:

"""


def main() -> None:
    options = parse()
    rows = measure(options.pair.resolve(), options.results.resolve())
    text = json.dumps({"rows": rows}, indent=1) + "\n"
    (options.pair / "evaluation.json").write_text(text)
    (options.pair / "README.md").write_text(CARD + table(rows) + "\n")
    print(table(rows))


if __name__ == "__main__":
    sys.exit(script(main))
