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
    (("growth_nodes",), "nodes", "nodes in the pool (K = 7)"),
    (("growth_k",), "k", "K (60 nodes)"),
    (("growth_closure", "growth_closure_cheap"), "nodes", "nodes in the pool (no size limit)"),
)


def draw(axes: Any, rows: list[dict[str, Any]], along: str) -> None:
    """One series: median, with a band from the 5th to the 95th percentile."""
    places = [row[along] for row in rows]
    median, low, high = (
        [row[key] / 1e3 for row in rows] for key in ("median_us", "p5_us", "p95_us")
    )
    axes.fill_between(places, low, high, alpha=0.25, linewidth=0)
    label = f"{rows[0]['what']}, median and 5-95 % of {rows[0]['pools']} pools"
    axes.plot(places, median, marker="o", markersize=3, label=label)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=Path, default=Path("results/bench/selection.json"))
    parser.add_argument("--out", type=Path, default=Path("results/figures/selection_growth.png"))
    options = parser.parse_args()
    found = json.loads(options.rows.read_text(encoding="utf-8"))
    machine, shape = found["machine"], found["geometry"]
    figure, axes = plt.subplots(1, len(PANELS), figsize=(11, 3.4), constrained_layout=True)
    for panel, (names, along, label) in zip(axes, PANELS, strict=True):
        for name in names:
            draw(panel, found[name], along)
        panel.axhline(
            found["paper_median_us"] / 1e3,
            color="0.4",
            linestyle=":",
            label="paper: 18 nodes, K = 7",
        )
        panel.set_yscale("log")
        panel.set_xlabel(label)
        panel.grid(True, which="major", alpha=0.3)
        panel.legend(fontsize=7)
    axes[0].set_ylabel("milliseconds per pool (CPU time)")
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
