"""What stands where on the page. An artifact that no section names still gets a place: the last."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Section:
    """`names` are artifacts, in the order they are shown."""

    name: str
    title: str
    about: str
    names: tuple[str, ...]


LEAD = Section(
    "acceptance",
    "Gain against acceptance",
    "What SpecFit gains over EAGLE-3 with the same cache, by what EAGLE-3 commits: one point a "
    "request, under the embedded router's routes and under the real one's (half-real).",
    ("figure_acceptance",),
)
"""Stands directly below the headline cards."""
SECTIONS = (
    Section(
        "measured",
        "Measured",
        "Every system on one machine's own clock, experts on its disk, beside the modelled clock.",
        ("figure_measured", "table_measured"),
    ),
    Section(
        "both",
        "Both workloads",
        "The README's picture.",
        ("figure_front",),
    ),
    Section(
        "setup",
        "Set-up",
        "The models, the profiles with how each constant is known, the workloads and the cost "
        "models that the selections below were made with.",
        ("table_setup",),
    ),
    Section(
        "cycle",
        "One cycle",
        "A drafted pool, the experts each node would add, and what the rule took of it.",
        ("figure_1",),
    ),
    Section(
        "reports",
        "Reports",
        "Every system on reports (sec. 4.2).",
        ("figure_2", "table_2"),
    ),
    Section(
        "problems",
        "Word problems",
        "Every system on word problems (sec. 4.3).",
        ("figure_3", "table_3"),
    ),
    Section(
        "slots",
        "Fewer slots",
        "What the selection gains as the expert cache shrinks (sec. 4.4).",
        ("figure_4", "table_figure_4"),
    ),
    Section(
        "real",
        "Under the real router's routes",
        "Half-real: recorded trees and acceptances, real tokens' routes, over graftings and seeds.",
        (
            "figure_real_geometry",
            "table_real_geometry",
            "figure_formats",
            "table_formats",
        ),
    ),
    Section(
        "measured_formats",
        "Formats, measured",
        "The embedded pair from this machine's disk, its experts in bf16, FP8 and int4.",
        ("table_measured_formats",),
    ),
    Section(
        "card",
        "A second card",
        "The systems on the slower link (sec. 4.5).",
        ("table_4",),
    ),
    Section(
        "routes",
        "Wrong routes, and what a selection costs",
        "Routes that are partly wrong, and the time of a selection, measured (sec. 4.6).",
        ("figure_section_4_6", "table_section_4_6", "figure_selection_growth"),
    ),
    Section(
        "rule",
        "The rule itself",
        "The ratio rule beside the throughput-optimal one, and its settings (app. A.4).",
        ("table_5", "figure_sweep"),
    ),
    Section(
        "phases",
        "Where a cycle's time goes",
        "Each system's mean decode cycle by phase.",
        ("figure_phases", "table_phases"),
    ),
    Section(
        "predictions",
        "Predicted against realised",
        "Whether times, tokens and path probabilities came as the selection expected.",
        ("figure_predictions", "table_predictions"),
    ),
    Section(
        "rivals",
        "Other rules, other routes, other movement",
        "Beyond the paper: published selection rules side by side, routes without an oracle, and "
        "what is copied when.",
        ("table_rivals", "table_routes", "table_movement"),
    ),
    Section(
        "map",
        "Does speculation pay?",
        "The best system over link and fixed cost, and what specfit.advise says against full runs.",
        ("figure_map", "table_map", "table_advice"),
    ),
    Section(
        "constants",
        "What the assumed constants decide",
        "The headline ratios at half and double each constant that a profile assumes and along the "
        "line of equal AR; what the paper's own ratios imply.",
        ("table_constants", "table_implied"),
    ),
    Section(
        "validation",
        "The simulator against others' counts",
        "Hit rates that another engine counted, and a slot curve that others measured.",
        ("table_validation",),
    ),
)
REST = ("more", "More", "Artifacts that no section above names.")


def label(name: str) -> str:
    """'table_2' as Table 2, 'figure_section_4_6' as Figure: section 4.6."""
    kind, _, rest = name.partition("_")
    words = re.sub(r"(?<=\d)_(?=\d)", ".", rest).replace("_", " ")
    return f"{kind.capitalize()} {words}" if words.isdigit() else f"{kind.capitalize()}: {words}"


def sections_of(names: Iterable[str]) -> list[Section]:
    """Sections with the artifacts that there are; none is left out but what LEAD shows."""
    known = list(names)
    found = [
        Section(s.name, s.title, s.about, tuple(n for n in s.names if n in known)) for s in SECTIONS
    ]
    placed = {name for section in [LEAD, *found] for name in section.names}
    rest = Section(*REST, tuple(name for name in known if name not in placed))
    return [section for section in [*found, rest] if section.names]
