"""Rewrite README.md's table of device figures from results/device/*.json.

    python scripts/document/device.py

One row per machine that `scripts/device/check.sh` was run on; what stands between the two markers
is generated, and a test fails where it is out of date.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from specfit.base.entry import script  # noqa: E402

README = ROOT / "README.md"
FOLDER = ROOT / "results" / "device"
BEGIN, END = "<!-- device: python scripts/document/device.py -->", "<!-- end of device -->"
NONE = "No device figures yet: not measured."
HEADER = (
    "device",
    "date",
    "equal ids (fp32)",
    "kernels at 8 rows, of the memory's bandwidth",
    "modelled clock, worst error",
    "copies, GB/s (of a plain copy)",
    "30B dummy: load",
    "uncached AR cycle (most allowed)",
    "resident AR beside waiting (goal)",
    "tokens/s: AR, AR 48, EAGLE-3 48, SpecFit 48",
)
SYSTEMS = ("ar", "ar_48", "eagle3_48", "specfit_48")
DASH = "-"

Figures = Mapping[str, Any]


def table(folder: Path = FOLDER) -> str:
    """A rehearsal's file (small sizes, or a CPU) is no device's."""
    documents = [json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("*.json")]
    rows = [row(d) for d in documents if not d["small"] and d["device"] != "cpu"]
    if not rows:
        return NONE
    rule = ["---"] * len(HEADER)
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [HEADER, rule, *sorted(rows)])


def row(document: Figures) -> list[str]:
    """What a section did not reach is a dash, and what failed says so."""
    return [
        str(document["device"]),
        str(document["started"])[:10],
        verdict(document, "equality"),
        kernels(document),
        clock(document),
        copies(document),
        number(figures(document, "dummy").get("load_s"), "{:.0f} s"),
        uncached(document),
        resident(document),
        ", ".join(speed(document, name) for name in SYSTEMS),
    ]


def section(document: Figures, name: str) -> Figures:
    found: Figures = document["sections"].get(name, {})
    return found


def figures(document: Figures, name: str) -> Figures:
    found: Figures = section(document, name).get("figures", {})
    return found


def verdict(document: Figures, name: str) -> str:
    return str(section(document, name).get("verdict", DASH))


def kernels(document: Figures) -> str:
    timings = figures(document, "kernels").get("timings", [])
    at_8 = [timing["share_of_memory"] for timing in timings if timing["rows"] == 8]
    return f"{number(at_8[0] if at_8 else None, '{:.0%}')} ({verdict(document, 'kernels')})"


def clock(document: Figures) -> str:
    compared = figures(document, "probe").get("modelled_against_measured", [])
    worst = max((row["error"] for row in compared), key=abs, default=None)
    return number(None if worst is None else 100 * worst, "{:+.1f} %")


def copies(document: Figures) -> str:
    dummy = figures(document, "dummy")
    reached = system(dummy, "ar").get("achieved_h2d_gbps")
    share = dummy.get("copies_at_share_of_pinned")
    return f"{number(reached, '{:.1f}')} ({number(share, '{:.0%}')})"


def uncached(document: Figures) -> str:
    dummy = figures(document, "dummy")
    cycle = system(dummy, "ar").get("cycle_ms")
    return f"{number(cycle, '{:.0f}')} ms ({number(dummy.get('uncached_bound_ms'), '{:.0f}')})"


def resident(document: Figures) -> str:
    dummy = figures(document, "dummy")
    beside, goal = dummy.get("resident_beside_ms"), dummy.get("resident_goal_ms")
    return f"{number(beside, '{:.1f}')} ms ({number(goal, '{:.0f}')})"


def speed(document: Figures, name: str) -> str:
    return number(system(figures(document, "dummy"), name).get("tokens_per_second"), "{:.2f}")


def system(dummy: Figures, name: str) -> Figures:
    """Empty where the system was not run: its place holds the reason."""
    found = dummy.get(name)
    return found if isinstance(found, dict) else {}


def number(value: float | None, shape: str) -> str:
    return DASH if value is None else shape.format(value)


def rewritten(text: str) -> str:
    """`text` with the block between the markers made anew."""
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


def main() -> int:
    README.write_text(rewritten(README.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(script(main))
