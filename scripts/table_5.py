"""Table 5 (app. A.4): the ratio rule beside the throughput-optimal one, and the paper beside ours.

    python scripts/table_5.py [results/bench/study_*.json ...]

Reads what scripts/study_recording.py left. The summary we have names these quantities, not the
table's layout; "a bound" is our own (docs), not eq. 7.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

PAPER = {"news": {"stops": "85.8 %"}, "gsm8k": {"stops": "33.7 %"}}
Row = dict[str, Any]


def percent(value: float, digits: int = 2) -> str:
    return f"{100 * value:.{digits}f} %"


def rows_of(workload: str) -> list[tuple[str, Callable[[Row], str], str]]:
    """(label, ours from a study, the paper's) of each line."""
    told = PAPER.get(workload, {})
    return [
        ("lambda*, tokens/s (modelled)", lambda r: f"{1e9 * r['best_throughput']:.3f}", "-"),
        ("gap of the ratio rule", lambda r: percent(r["gap"], 3), "below 1 %"),
        ("a bound on it", lambda r: percent(r["relative_bound"], 3), "-"),
        ("cycles with another tree", lambda r: percent(r["different"], 1), "about a quarter"),
        ("realised, S* over S^", lambda r: f"{100 * r['realised_gain']:+.2f} %", "+0.5 / +0.7 %"),
        (
            "stops before the last level",
            lambda r: percent(r["early_stops"], 1),
            told.get("stops", "-"),
        ),
        ("optimum lost by the stop", lambda r: percent(r["lost_by_stop"], 1), "-"),
        ("levels drafted", lambda r: f"{r['levels']:.2f}", "-"),
        (
            "nodes per token, beta x 1 -> x 2",
            lambda r: f"{r['nodes_per_token']:.3f} -> {r['nodes_per_token_double']:.3f}",
            "falls",
        ),
        (
            "demand per token, beta x 1 -> x 2",
            lambda r: f"{r['demand_per_token']:.1f} -> {r['demand_per_token_double']:.1f}",
            "falls",
        ),
    ]


def show(study: Row) -> str:
    info, weightings = study["info"], study["weightings"]
    workload = "news" if "news" in info["dataset"] or "cnn" in info["dataset"] else "gsm8k"
    names = list(weightings)
    lines = [f"| {info['dataset']} | " + " | ".join(names) + " | paper |"]
    lines.append("|---|" + "---:|" * (len(names) + 1))
    for label, ours, told in rows_of(workload):
        cells = [ours(weightings[name]) for name in names]
        lines.append(f"| {label} | " + " | ".join(cells) + f" | {told} |")
    counts = ", ".join(f"{weightings[name]['cycles']} ({name})" for name in names)
    lines.append("")
    lines.append(
        f"n = {study['requests']} requests; cycles: {counts}; clock: {info['clock']} (times are "
        f"modelled); profile: {info['profile']}; model: {info['model']}; recorded on "
        f"{info['device']}; recording {info['recording']}."
    )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("studies", nargs="*", type=Path)
    options = parser.parse_args()
    paths = options.studies or sorted(Path("results/bench").glob("study_*.json"))
    if not paths:
        parser.error("no study; run scripts/study_recording.py first")
    print("\n\n".join(show(json.loads(path.read_text())) for path in paths))


if __name__ == "__main__":
    main()
