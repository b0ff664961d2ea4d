"""What figure scripts share: the sheet of paper, its stamp, files with the same bytes each time.

A figure script has `make(reader) -> Drawing`: it reads and analyses rows first, and paints only
when every number is there. Colours, markers, hatches and names come from `specfit.report.styles`.
"""

from __future__ import annotations

import io
import os
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

os.environ["SOURCE_DATE_EPOCH"] = "0"
import matplotlib

matplotlib.use("Agg")
from matplotlib.figure import Figure, SubFigure

from specfit.report.footer import PREVIEW, Footer

WIDTH = 9.0  # inches
STAMP_CHARACTERS = 190  # of the stamp's font, across WIDTH
STAMP_LINE = 0.115  # inches

STYLE = {
    "font.family": "DejaVu Sans",
    "font.size": 9.0,
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.alpha": 0.3,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 8.0,
    "hatch.linewidth": 0.6,
    "svg.hashsalt": "specfit",
    "svg.fonttype": "path",
    "pdf.fonttype": 42,
    "savefig.dpi": 160,
}
SAVED: dict[str, dict[str, Any]] = {  # no date, no version: the same rows give the same bytes
    "pdf": {"CreationDate": None, "Creator": "specfit", "Producer": None},
    "svg": {"Date": None, "Creator": "specfit"},
    "png": {"Software": None},
}


@dataclass(frozen=True)
class Drawing:
    """`paint` fills an empty sheet of WIDTH x `height` inches; `alt` says in words what is seen."""

    name: str
    title: str
    height: float
    stamp: Footer
    alt: str
    paint: Callable[[SubFigure], None]
    folder = "figures"

    @cached_property
    def files(self) -> dict[str, bytes]:
        with matplotlib.rc_context(STYLE):
            figure = self._figure()
            return {f"{self.name}.{kind}": self._saved(figure, kind) for kind in SAVED}

    def _figure(self) -> Figure:
        """Title and panels above, the stamp below in a strip of its own."""
        told = textwrap.wrap(self.stamp.text, STAMP_CHARACTERS)
        strip = STAMP_LINE * (len(told) + 1)
        figure = Figure(figsize=(WIDTH, self.height + strip), layout="constrained")
        panels, foot = figure.subfigures(2, 1, height_ratios=[self.height, strip])
        panels.suptitle(self.stamp.titled(self.title), fontsize=11, fontweight="bold")
        self.paint(panels)
        foot.text(0.01, 0.95, "\n".join(told), fontsize=6, color="0.35", va="top")
        if self.stamp.preview:
            figure.text(0.5, 0.5, PREVIEW, fontsize=60, color="0.85", ha="center", va="center")
        return figure

    def _saved(self, figure: Figure, kind: str) -> bytes:
        out = io.BytesIO()
        figure.savefig(out, format=kind, metadata=SAVED[kind])
        return out.getvalue()
