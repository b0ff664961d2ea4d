"""Every table and figure by name, and what makes it: a file per topic, its sheets and figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from specfit.report.artifacts import (
    accuracy,
    advice,
    anatomy,
    constants,
    formats,
    front,
    implied,
    measured,
    measured_formats,
    movement,
    paying,
    phases,
    predictions,
    real_geometry,
    real_geometry_slots,
    rivals,
    routes,
    rules,
    selection_growth,
    setup,
    slots,
    sweeps,
    systems,
    validation,
)
from specfit.report.reader import ResultsReader

Make = Callable[[ResultsReader], Any]
TABLES: Mapping[str, Make] = {
    "table_2": systems.table_2,
    "table_3": systems.table_3,
    "table_4": systems.table_4,
    "table_5": rules.table_5,
    "table_advice": advice.table_advice,
    "table_constants": constants.table_constants,
    "table_figure_4": slots.table_figure_4,
    "table_formats": formats.table_formats,
    "table_implied": implied.table_implied,
    "table_map": paying.table_map,
    "table_measured": measured.table_measured,
    "table_measured_formats": measured_formats.table_measured_formats,
    "table_movement": movement.table_movement,
    "table_phases": phases.table_phases,
    "table_predictions": predictions.table_predictions,
    "table_real_geometry": real_geometry.table_real_geometry,
    "table_rivals": rivals.table_rivals,
    "table_routes": routes.table_routes,
    "table_section_4_6": accuracy.table_section_4_6,
    "table_setup": setup.table_setup,
    "table_validation": validation.table_validation,
}
FIGURES: Mapping[str, Make] = {
    "figure_1": anatomy.figure_1,
    "figure_2": systems.figure_2,
    "figure_3": systems.figure_3,
    "figure_4": slots.figure_4,
    "figure_acceptance": real_geometry.figure_acceptance,
    "figure_formats": formats.figure_formats,
    "figure_front": front.figure_front,
    "figure_map": paying.figure_map,
    "figure_measured": measured.figure_measured,
    "figure_phases": phases.figure_phases,
    "figure_predictions": predictions.figure_predictions,
    "figure_real_geometry": real_geometry_slots.figure_real_geometry,
    "figure_section_4_6": accuracy.figure_section_4_6,
    "figure_selection_growth": selection_growth.figure_selection_growth,
    "figure_sweep": sweeps.figure_sweep,
}
UNCOMMITTED: Mapping[str, str] = {
    "figure_map": "map",
    "table_map": "map",
    "table_measured_formats": "measured_formats",
}
"""Artifacts whose suite has no reference rows: made once it has run, or when asked for by name."""
