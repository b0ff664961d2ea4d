"""A figure's panels one below the other, for a page as narrow as a phone.

The paint functions of `specfit.report.artifacts` fill this in the place of a matplotlib SubFigure.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np

TITLE_CHARACTERS = 46
SHORT_LABEL = 24  # characters of a legend's label of which two stand beside each other
SMALL_PRINT = 6.0  # points, of a panel's own legend


class Stacked:
    """A sheet that gives every grid of panels one column. What it does not know is the sheet's.

    `growth` is how many times the height of the same panels side by side the stack needs.
    """

    def __init__(self, sheet: Any) -> None:
        self._sheet = sheet
        self._grids: list[Any] = []
        self._mosaic: list[Any] = []
        self._below: list[tuple[Stacked, float]] = []
        self._spec: Any = None
        self.growth = 1.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sheet, name)

    def subplots(
        self,
        nrows: int = 1,
        ncols: int = 1,
        sharex: bool | str = False,
        sharey: bool | str = False,
        squeeze: bool = True,
        **_: Any,
    ) -> Any:
        """[nrows, ncols] axes, as matplotlib gives them; widths are all the same here."""
        grid = self._sheet.subplots(nrows * ncols, 1, squeeze=False)[:, 0].reshape(nrows, ncols)
        for row, col in np.ndindex(nrows, ncols):
            for shared, share in ((sharex, grid[row, col].sharex), (sharey, grid[row, col].sharey)):
                first = grid[row, 0] if shared == "row" else grid[0, col]
                first = grid[0, 0] if shared is True or shared == "all" else first
                if shared and first is not grid[row, col]:
                    share(first)
        self._grids.append(grid)
        self.growth = float(ncols)
        if not squeeze:
            return grid
        return grid.item() if grid.size == 1 else grid.squeeze()

    def subplot_mosaic(self, mosaic: Sequence[Sequence[str]], **_: Any) -> dict[str, Any]:
        """A panel that reaches over rows keeps that height."""
        rows = {name: sum(name in row for row in mosaic) for row in mosaic for name in row}
        self.growth = sum(rows.values()) / len(mosaic)
        stack = [[name] for name in rows]
        axes: dict[str, Any] = self._sheet.subplot_mosaic(stack, height_ratios=list(rows.values()))
        self._mosaic = list(axes.values())
        return axes

    def subfigures(self, nrows: int, ncols: int, height_ratios: Sequence[float]) -> list[Stacked]:
        assert ncols == 1, "subfigures of ours stand below each other already"
        self._spec = self._sheet.add_gridspec(nrows, 1, height_ratios=height_ratios)
        parts = [Stacked(self._sheet.add_subfigure(cell)) for cell in self._spec]
        self._below = list(zip(parts, height_ratios, strict=True))
        return parts

    def legend(self, *given: Any, ncols: int = 1, **looks: Any) -> Any:
        """In two columns at most."""
        made = self._sheet.legend(*given, ncols=1, **looks)
        if ncols > 1 and all(len(text.get_text()) <= SHORT_LABEL for text in made.get_texts()):
            made.remove()
            made = self._sheet.legend(*given, ncols=2, **looks)
        return made

    def supxlabel(self, *_: Any, **__: Any) -> None:
        """Each panel has its own."""

    def finish(self) -> float:
        """Says on each panel what stood once for a row or a column of them; returns `growth`."""
        for grid in self._grids:
            for row, col in np.ndindex(grid.shape):
                panel, first = grid[row, col], grid[row, 0]
                panel.set_xlabel(panel.get_xlabel() or grid[-1, col].get_xlabel())
                panel.set_ylabel(panel.get_ylabel() or first.get_ylabel())
                panel.set_title(panel.get_title() or grid[0, col].get_title())
                panel.tick_params(labelbottom=True, labelleft=True)
                ticks = list(panel.get_yticks())  # of a panel that names its rows itself: none
                bare = not any(label.get_text() for label in panel.get_yticklabels())
                if bare and ticks == list(first.get_yticks()):
                    panel.set_yticks(ticks, first.get_yticklabels())
        for panel in self._panels:
            panel.set_title(
                "\n".join(
                    line
                    for part in panel.get_title().splitlines()
                    for line in textwrap.wrap(part, TITLE_CHARACTERS)
                ),
                fontsize=panel.title.get_fontsize(),
            )
            own = panel.get_legend()
            for text in own.get_texts() if own is not None else ():
                text.set_fontsize(SMALL_PRINT)
        if self._below:
            heights = [ratio * part.finish() for part, ratio in self._below]
            self._spec.set_height_ratios(heights)
            self.growth = sum(heights) / sum(ratio for _, ratio in self._below)
        return self.growth

    @property
    def _panels(self) -> list[Any]:
        return [*self._mosaic, *(panel for grid in self._grids for panel in grid.flat)]
