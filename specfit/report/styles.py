"""The one registry of names and looks: what a system, a phase or a workload is called and drawn as.

Colours are Okabe and Ito's, chosen so that no two systems share both a grey level and a hatch or
marker: everything reads without colour. Other rules than the paper's are one family of browns, told
apart by their markers. No drawing library is needed to read this.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from specfit.storage.manifest import RunInfo, stand_in


@dataclass(frozen=True)
class Style:
    """How one thing looks wherever it appears."""

    label: str
    colour: str
    marker: str = "o"
    hatch: str = ""
    line: str = "-"


SYSTEMS: dict[str, Style] = {
    "ar": Style("AR", "#BFBFBF", "s", "", ":"),
    "ar_cache": Style("AR + cache", "#4D4D4D", "D", "///", "-."),
    "eagle3": Style("EAGLE-3", "#56B4E9", "v", "...", ":"),
    "eagle3_cache": Style("EAGLE-3 + cache", "#0072B2", "^", "\\\\\\", "-."),
    "specfit_uncached": Style("SpecFit, no cache", "#E69F00", "P", "xxx", ":"),
    "specfit": Style("SpecFit", "#D55E00", "o", "", "-"),
    "specfit_own": Style("SpecFit, own fit", "#CC79A7", "X", "++", "--"),
    "closure": Style("closure", "#009E73", "h", "oo", "-"),
    "greedy": Style("greedy ratio", "#E3D5B5", "8", "--", "--"),
    "evict": Style("EVICT", "#CDB88A", "*", "||", "--"),
    "ecospec": Style("EcoSpec", "#B39B66", "H", "//", "--"),
    "cascade": Style("Cascade", "#977C45", ">", "OO", "--"),
    "moe_speq": Style("MoE-SpeQ", "#775F30", "p", "**", "--"),
    "chain_k": Style("chain", "#574420", "<", "--", "--"),
    "eagle3_full": Style("EAGLE-3 + cache, all nodes", "#003B5C", "1", "+", "--"),
}
PAPER = Style("paper", "#000000", "d", "", "None")

# Where a cycle's time goes. Verify is split: waiting for copies, and the rest of the forward.
# Greens and greys, which no system has.
PHASES: dict[str, Style] = {
    "draft": Style("draft", "#C7E9C0", hatch="..."),
    "route": Style("route", "#EDF8E9", hatch="xxx"),
    "select": Style("select", "#74C476", hatch="oo"),
    "wait": Style("verify: waiting for copies", "#238B45", hatch="///"),
    "compute": Style("verify: the rest", "#D9D9D9"),
    "commit": Style("commit", "#969696", hatch="++"),
}

PAPER_WORKLOADS = {"cnn_dailymail": "CNN/DailyMail", "gsm8k": "GSM8K"}
"""What a dataset may stand for -> its name, in the paper's order."""

DATASETS = {"embedded_news": "synthetic reports", "embedded_gsm8k": "synthetic word problems"}
"""Our own datasets in words."""


@dataclass(frozen=True)
class Workload:
    """A dataset, and the paper's workload that it is or replaces."""

    dataset: str
    stands_for: str | None

    @property
    def short(self) -> str:
        if self.stands_for == self.dataset:
            return PAPER_WORKLOADS[self.dataset]
        return DATASETS.get(self.dataset, self.dataset)

    @property
    def label(self) -> str:
        """'synthetic reports (our stand-in for CNN/DailyMail)'; the real one's is its name."""
        return " ".join(self.lines)

    @property
    def lines(self) -> tuple[str, ...]:
        """The label in one or two lines, for the title of a panel."""
        if self.stands_for in (None, self.dataset):
            return (self.short,)
        return self.short, f"(our stand-in for {PAPER_WORKLOADS[self.stands_for or '']})"

    @property
    def order(self) -> tuple[int, str]:
        """Sorts workloads as the paper does, others after them by name."""
        known = list(PAPER_WORKLOADS)
        at = known.index(self.stands_for) if self.stands_for in known else len(known)
        return at, self.dataset


def workload_of(info: RunInfo | Mapping[str, Any]) -> Workload:
    """Of a run, or of a study's document, whose info is a run's as it is stored."""
    if isinstance(info, RunInfo):
        return Workload(info.dataset, info.stands_for)
    return Workload(info["dataset"], stand_in(info))


def system_of(info: RunInfo) -> str:
    """Key into SYSTEMS; a selector that is not in it stands for itself."""
    if info.selector == "specfit" and info.cache_slots == 0:
        return "specfit_uncached"
    if info.selector == "specfit" and info.calibration_at == "own":
        return "specfit_own"
    return info.selector


def style_of(system: str) -> Style:
    """Of a key of SYSTEMS; a selector that is not registered gets its own name and a plain look."""
    return SYSTEMS.get(system, Style(system, "#8C6D31", "*", "--"))


def rank(system: str) -> tuple[int, str]:
    """Sorts systems in the registry's order, others after them by name."""
    known = list(SYSTEMS)
    return (known.index(system) if system in known else len(known), system)


def label_of(info: RunInfo) -> str:
    return style_of(system_of(info)).label
