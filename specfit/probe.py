"""`python -m specfit.probe`: this machine in numbers, and how far the modelled clock is off with
them.

Half of the requests make the profile, the other half hold it against the wall clock. The file is
used by `gpu=local gpu.profile=<file>` (and gpu.clock=modelled to bill instead of measure).
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from specfit.commands import hydra_command
from specfit.config import from_hydra

if TYPE_CHECKING:
    from specfit.hardware.link import Bandwidth
    from specfit.hardware.profile import Profile
    from specfit.hardware.rebill import Comparison

REQUESTS, TOKENS = 6, 48
GOAL = 0.10


def probe(composed: Any) -> int:
    from dataclasses import replace

    from specfit.console import say
    from specfit.measuring import document, fit_profile, prepare, validate
    from specfit.results.atomic import write_json
    from specfit.results.provenance import collect

    config = from_hydra(composed)
    requests, tokens = config.limit or REQUESTS, config.max_new_tokens or TOKENS
    config = replace(config, limit=max(2, requests), max_new_tokens=tokens)
    half = max(1, config.limit // 2) if config.limit else 1
    prepare(config, _run_plain, say)
    profile, spread, link = fit_profile(config, slice(0, half))
    compared = validate(config, profile, config.cache_slots, slice(half, None))
    path = Path(config.results_dir) / "profiles" / f"{profile.name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    written = document(profile, spread, link, compared)
    write_json(path, written | {"provenance": collect().as_dict()})
    for line in report(profile, spread, link, compared):
        say(line)
    say(f"profile: {path} (use it with gpu=local gpu.profile={path})")
    return 0


def _run_plain(facts: Any) -> None:
    from specfit.build import build_machine
    from specfit.console import Progress
    from specfit.execution import execute

    with Progress(facts) as progress:
        execute(facts, build_machine, progress)


def report(
    profile: Profile,
    spread: dict[str, tuple[float, float]],
    link: list[Bandwidth],
    compared: list[Comparison],
) -> list[str]:
    """What a person reads: the link, the constants and their spread, the modelled clock's error."""
    lines = ["memory    bytes       GB/s (slowest, fastest repeat)"]
    for row in link:
        lines.append(
            f"{row.memory:8}  {row.size_bytes:10}  {row.gbps:6.2f} "
            f"({row.low_gbps:.2f}, {row.high_gbps:.2f})"
        )
    for name, (low, high) in spread.items():
        value = getattr(profile, name)
        lines.append(f"{name} = {value:.4g} ({low:.4g} to {high:.4g}, one request left out)")
    lines.append("system        cycles  measured s  modelled s  error     decode alone")
    for c in compared:
        lines.append(
            f"{c.system:13} {c.cycles:6}  {c.measured_ns / 1e9:10.3f}  {c.modelled_ns / 1e9:10.3f}"
            f"  {100 * c.error:+6.1f} %  {100 * c.decode_error:+6.1f} %"
        )
    worst = max(abs(c.error) for c in compared)
    word = "within" if worst <= GOAL else "outside"
    lines.append(f"worst error {100 * worst:.1f} %, {word} the goal of {100 * GOAL:.0f} %")
    return lines


if __name__ == "__main__":
    sys.exit(hydra_command(probe))
