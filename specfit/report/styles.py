"""The one registry of names and looks: what a system, a phase or a workload is called and drawn as.

Colours are Okabe and Ito's, chosen so that no two systems share both a grey level and a hatch or
marker: everything reads without colour. Other rules than the paper's are one family of browns, told
apart by their markers. No drawing library is needed to read this.
"""

from __future__ import annotations

from dataclasses import dataclass

from specfit.storage.manifest import RunInfo


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
PHASES: dict[str, Style] = {
    "draft": Style("draft", "#56B4E9", hatch="..."),
    "route": Style("route", "#CC79A7", hatch="xxx"),
    "select": Style("select", "#F0E442", hatch="oo"),
    "wait": Style("verify: waiting for copies", "#D55E00", hatch="///"),
    "compute": Style("verify: the rest", "#BFBFBF"),
    "commit": Style("commit", "#009E73", hatch="++"),
}

# Place in the paper -> what the place is called there.
WORKLOADS = {"news": "CNN/DailyMail", "gsm8k": "GSM8K"}


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
