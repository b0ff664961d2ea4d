"""How selection time grows with pool, K and, without a size limit, nodes: from the bench's rows.

python scripts/figure_selection_growth.py [--rows results/bench/selection.json]
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

PANELS = (
    ("growth_nodes", "nodes", "nodes in the pool (K = 7)", "Search"),
    ("growth_k", "k", "K (60 nodes)", "Search"),
    ("growth_closure", "nodes", "nodes in the pool (no size limit)", "Minimum cuts"),
)


def draw(axes: Any, rows: list[dict[str, Any]], along: str, label: str, paper_ms: float) -> None:
    places = [row[along] for row in rows]
    median = [row["median_us"] / 1e3 for row in rows]
    low = [row["p5_us"] / 1e3 for row in rows]
    high = [row["p95_us"] / 1e3 for row in rows]
    axes.fill_between(places, low, high, alpha=0.25, linewidth=0, label="5th to 95th percentile")
    axes.plot(places, median, marker="o", markersize=3, label=f"median, {rows[0]['pools']} pools")
    axes.axhline(paper_ms, color="0.4", linestyle=":", label="paper, 18 nodes, K = 7")
    axes.set_yscale("log")
    axes.set_xlabel(label)
    axes.grid(True, which="major", alpha=0.3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=Path, default=Path("results/bench/selection.json"))
    parser.add_argument("--out", type=Path, default=Path("results/figures/selection_growth.png"))
    options = parser.parse_args()
    found = json.loads(options.rows.read_text(encoding="utf-8"))
    machine, shape = found["machine"], found["geometry"]
    figure, axes = plt.subplots(1, len(PANELS), figsize=(11, 3.4), constrained_layout=True)
    for panel, (name, along, label, title) in zip(axes, PANELS, strict=True):
        draw(panel, found[name], along, label, found["paper_median_us"] / 1e3)
        panel.set_title(title, fontsize=10)
    axes[0].set_ylabel("milliseconds per pool (CPU time)")
    axes[0].legend(fontsize=7, loc="upper left")
    figure.suptitle(
        f"{shape['layers']} layers x {shape['experts']} experts, top-{shape['top']}, random pools; "
        f"one core of {machine['cpu']}, load {machine['load_average_before'][0]}",
        fontsize=9,
    )
    options.out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(options.out, dpi=150)
    print(f"wrote {options.out}")


if __name__ == "__main__":
    main()
