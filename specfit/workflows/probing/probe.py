"""`python -m specfit.probe`: this machine in numbers, and how far the modelled clock is off with
them.

Half of the requests make the profile, the other half hold it against the wall clock. The file is
used by `gpu=local gpu.profile=<file>` (and gpu.clock=modelled to bill instead of measure).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from specfit.base.config import RunConfig, from_hydra

if TYPE_CHECKING:
    from specfit.workflows.probing.profile import Probed

REQUESTS, TOKENS = 6, 48
GOAL = 0.10


def probe(composed: Any) -> int:
    from specfit.workflows.progress import say

    config = from_hydra(composed)
    path = probe_to_file(config, say)
    say(f"profile: {path} (use it with gpu=local gpu.profile={path})")
    return 0


def probe_to_file(config: RunConfig, say: Callable[[str], None]) -> Path:
    """Measures, reports, and leaves the profile below results_dir; the file."""
    from specfit.report.clock_check import FOLDER
    from specfit.storage.atomic import write_json

    document = probe_document(config, say)
    path = Path(config.results_dir) / FOLDER / f"{document['profile']['name']}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, document)
    return path


def probe_document(config: RunConfig, say: Callable[[str], None]) -> dict[str, Any]:
    """Measures and reports; what a probe's file holds."""
    from specfit.storage.provenance import collect
    from specfit.workflows.live_run import perform
    from specfit.workflows.probing.profile import probe_machine
    from specfit.workflows.probing.trials import prepare

    requests, tokens = config.limit or REQUESTS, config.max_new_tokens or TOKENS
    config = replace(config, limit=max(2, requests), max_new_tokens=tokens)
    prepare(config, perform, say)
    result = probe_machine(config, config.cache_slots)
    for line in report(result):
        say(line)
    of = {"model": probed_model(config), "provenance": collect().as_dict()}
    return result.document() | of


def probed_model(config: RunConfig) -> str:
    """With its layers, where they are not all there: then it is no place on a map."""
    layers = config.model.num_layers
    return config.model.name if layers is None else f"{config.model.name}, {layers} layers"


def report(result: Probed) -> list[str]:
    """What a person reads: the link, the constants and their spread, the modelled clock's error."""
    from specfit.report.clock_check import busy_words

    lines = ["memory    bytes       GB/s (slowest, fastest repeat)"]
    for row in result.link:
        lines.append(
            f"{row.memory:8}  {row.size_bytes:10}  {row.gbps:6.2f} "
            f"({row.low_gbps:.2f}, {row.high_gbps:.2f})"
        )
    for name in result.profile.notes:
        low, high = result.spread.get(name, (None, None))
        left_out = "" if low is None else f" ({low:.4g} to {high:.4g}, one request left out)"
        lines.append(f"{name} = {getattr(result.profile, name):.4g}{left_out}")
    lines.append("system        cycles  measured s  modelled s  error     decode alone")
    for c in result.compared:
        lines.append(
            f"{c.system:13} {c.cycles:6}  {c.measured_ns / 1e9:10.3f}  {c.modelled_ns / 1e9:10.3f}"
            f"  {100 * c.error:+6.1f} %  {100 * c.decode_error:+6.1f} %"
        )
    worst = max(abs(c.error) for c in result.compared)
    word = "within" if worst <= GOAL else "outside"
    lines.append(f"worst error {100 * worst:.1f} %, {word} the goal of {100 * GOAL:.0f} %")
    busy = busy_words(result.load_per_core, result.core_share)
    if not busy:
        return lines
    warning = f"warning: {busy}: these numbers are too slow; probe again on an idle machine"
    return [warning, *lines, warning]
