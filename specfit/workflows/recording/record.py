"""`python -m specfit.record`: what a run decodes and could have drafted, at every position, once.

`record.merge=[a,b]` joins recordings of different requests (`record.shard=i/n`) instead, and
`recording=<id> routes=learned` adds to a recording what that route source predicts in it.
`model=qwen3-30b-a3b-traced`, or `record.from=<file>` with the routes of another engine, makes one
of a model that exists as a trace alone.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from specfit.base.config import RunConfig, from_hydra
from specfit.workflows.waiting import import_libraries


def record(composed: Any) -> int:
    config = from_hydra(composed)
    if config.record.merge:
        return merge(config)
    import_libraries()
    if config.recording is not None:
        return predict(config)
    if config.record.source is not None or config.model.source == "traced":
        return record_half_real(config)
    from specfit.decoding.resolve import resolve
    from specfit.storage import identity
    from specfit.storage.recording.files import read_manifest
    from specfit.storage.recording.stats import Plain
    from specfit.workflows.progress import Countdown, headline, say
    from specfit.workflows.recording.recorder import make_recording, recording_identity, shard_rows
    from specfit.workflows.run_time import expected_recording

    spec = resolve(config, config.record.split)
    say(headline(spec))
    who = recording_identity(spec)
    folder = Path(config.results_dir) / "recordings" / identity.digest(who)
    if folder.is_dir() and not config.force:
        say(f"found recorded (force=true records it again): {folder}")
        say(size_line(folder))
        return 0
    requests = len(shard_rows(spec))
    say(expected_recording(spec, requests))
    with Countdown() as countdown:
        tally = make_recording(spec, folder, who, say, watch=countdown)
    plain = read_manifest(folder)["notes"].get("ar_cache")
    for sentence in tally.sentences(None if plain is None else Plain(**plain)):
        say(sentence)
    say(size_line(folder))
    say(f"recording {folder.name}: {folder}")
    return 0


def record_half_real(config: RunConfig) -> int:
    from specfit.workflows.progress import say
    from specfit.workflows.recording.tracing import record_traced

    folder = record_traced(config)
    say(size_line(folder))
    say(f"recording {folder.name}: {folder}")
    return 0


def merge(config: RunConfig) -> int:
    from specfit.storage import identity
    from specfit.storage.recording.files import (
        find_recording,
        merged,
        read_recording,
        write_recording,
    )
    from specfit.workflows.progress import say

    results = Path(config.results_dir)
    parts = [read_recording(find_recording(name, results)) for name in config.record.merge]
    whole = merged(parts, identity.digest)
    folder = results / "recordings" / whole.recording_id
    write_recording(folder, whole)
    say(size_line(folder))
    say(f"recording {whole.recording_id}, {len(whole.requests)} requests: {folder}")
    return 0


def predict(config: RunConfig) -> int:
    from specfit.decoding.resolve import resolve
    from specfit.storage.recording.files import find_recording, read_recording
    from specfit.workflows.progress import headline, say
    from specfit.workflows.recording.predicting import add_predictions

    assert config.recording is not None
    recording = read_recording(find_recording(config.recording, Path(config.results_dir)))
    spec = resolve(config)
    say(headline(spec))
    folder = add_predictions(spec, recording, say)
    size = sum(file.stat().st_size for file in folder.iterdir())
    per_1000 = size / max(recording.positions, 1) / 1e3
    say(f"size: {per_1000:.2f} MB per 1,000 output tokens")
    say(f"predictions: {folder}")
    return 0


def size_line(folder: Path) -> str:
    """Bytes of this recording, and of one of Qwen3-30B-A3B."""
    from specfit.base.published import QWEN3_30B_A3B
    from specfit.storage.recording.files import (
        bytes_per_1000_tokens,
        published_bytes_per_1000_tokens,
    )

    here = bytes_per_1000_tokens(folder)
    plain, stored = published_bytes_per_1000_tokens(QWEN3_30B_A3B)
    return (
        f"size: {here / 1e6:.2f} MB per 1,000 output tokens, prompts included; Qwen3-30B-A3B: "
        f"{plain / 1e6:.1f} MB before compression, about {stored / 1e6:.1f} on disk, and 0.4 more "
        "for every 1,000 prompt tokens"
    )
