"""`python -m specfit.record`: what a run decodes and could have drafted, at every position, once.

`record.merge=[a,b]` joins recordings of different requests (`record.shard=i/n`) instead.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from specfit.commands import hydra_command
from specfit.config import RunConfig, from_hydra


def record(composed: Any) -> int:
    config = from_hydra(composed)
    if config.record.merge:
        return merge(config)
    from specfit.console import headline, say
    from specfit.recorder import make_recording, recording_identity
    from specfit.resolve import resolve
    from specfit.results import identity

    facts = resolve(config)
    say(headline(facts))
    who = recording_identity(facts)
    folder = Path(config.results_dir) / "recordings" / identity.digest(who)
    if folder.is_dir() and not config.force:
        say(f"found recorded (force=true records it again): {folder}")
        say(size_line(folder))
        return 0
    tally = make_recording(facts, folder, who, say)
    source = f"ids of run {tally.ids_from}" if tally.ids_from else "decoded here"
    say(
        f"greedy ids: {source}, {tally.decode_seconds:.1f} s; layer-major passes: "
        f"{tally.teacher_seconds:.1f} s (text {tally.text_seconds:.1f}, pools drafted "
        f"{tally.draft_seconds:.1f}, pools routed {tally.pools_seconds:.1f}), experts streamed "
        f"{tally.passes} times; elapsed, measured"
    )
    say(
        f"{tally.token_mismatches} of {tally.tokens} tokens differ between one pass and step by "
        f"step (largest margin {tally.largest_mismatch_margin:.1e})"
    )
    say(size_line(folder))
    say(f"recording {folder.name}: {folder}")
    return 0


def merge(config: RunConfig) -> int:
    from specfit.console import say
    from specfit.results import identity
    from specfit.results.recording import find_recording, merged, read_recording, write_recording

    results = Path(config.results_dir)
    parts = [read_recording(find_recording(name, results)) for name in config.record.merge]
    whole = merged(parts, identity.digest)
    folder = results / "recordings" / whole.recording_id
    write_recording(folder, whole)
    say(size_line(folder))
    say(f"recording {whole.recording_id}, {len(whole.requests)} requests: {folder}")
    return 0


def size_line(folder: Path) -> str:
    """Bytes of this recording, and of one of Qwen3-30B-A3B."""
    from specfit.results.recording import QWEN3_30B, bytes_per_1000_tokens

    here = bytes_per_1000_tokens(folder)
    plain, stored = QWEN3_30B
    return (
        f"size: {here / 1e6:.2f} MB per 1,000 output tokens, prompts included; Qwen3-30B-A3B: "
        f"{plain / 1e6:.1f} MB before compression, about {stored / 1e6:.1f} on disk, and 0.4 more "
        "for every 1,000 prompt tokens"
    )


if __name__ == "__main__":
    sys.exit(hydra_command(record))
