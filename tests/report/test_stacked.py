"""Panels below each other: each says for itself what stood once for a row or a column."""

from __future__ import annotations

from specfit.report.stacked import Stacked


def test_a_grid_becomes_a_column_whose_panels_stand_alone() -> None:
    from matplotlib.figure import Figure

    sheet = Figure(layout="constrained")
    stacked = Stacked(sheet)
    grid = stacked.subplots(2, 2, sharey="row", squeeze=False)
    for row, name in enumerate(("reports", "problems")):
        grid[row, 0].set_ylabel(name)
        grid[row, 0].set_ylim(0, 10 * (row + 1))
        for panel in grid[row]:
            panel.set_yticks([0, 1], ["AR", "SpecFit"])
        grid[row, 1].set_yticklabels([])
    grid[0, 0].set_title("speed")
    grid[1, 0].set_xlabel("tokens/s")
    assert stacked.finish() == 2.0
    columns = [panel.get_position().x0 for panel in grid.flat]
    assert len(set(columns)) == 1, "one column"
    assert [panel.get_ylabel() for panel in grid.flat] == ["reports"] * 2 + ["problems"] * 2
    assert grid[1, 0].get_title() == "speed" and grid[0, 0].get_xlabel() == "tokens/s"
    assert grid[0, 1].get_ylim() == grid[0, 0].get_ylim() != grid[1, 0].get_ylim()


def test_row_names_stand_on_every_panel_but_one_that_has_its_own() -> None:
    from matplotlib.figure import Figure

    stacked = Stacked(Figure())
    first, hidden, own = stacked.subplots(1, 3)
    for panel in (first, hidden, own):
        panel.set_yticks([0, 1], ["AR", "SpecFit"])
    hidden.set_yticklabels([])
    own.set_yticks([])
    stacked.finish()
    assert [label.get_text() for label in hidden.get_yticklabels()] == ["AR", "SpecFit"]
    assert not own.get_yticklabels()


def test_a_panel_that_reaches_over_rows_keeps_its_height() -> None:
    from matplotlib.figure import Figure

    stacked = Stacked(Figure())
    axes = stacked.subplot_mosaic([["tree", "rule"], ["tree", "time"]], width_ratios=[2, 1])
    tall, short = (axes[name].get_position().height for name in ("tree", "time"))
    assert abs(tall - 2 * short) < 1e-9 and stacked.finish() == 2.0
