"""A recording of a model that exists as a routing trace alone (`decoding/replay/traced.py`).

The donor's recording (same dataset, limits and draft head) is made first where it is missing.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from specfit.base.config import ModelConfig, RunConfig, from_hydra
from specfit.base.published import QWEN3_30B_A3B
from specfit.base.types import SpecfitError
from specfit.decoding.replay.traced import Graft, traced_recording
from specfit.decoding.spec import locate
from specfit.storage.foreign_traces import RoutingTrace, read_trace
from specfit.storage.recording.files import (
    Recording,
    Shape,
    file_digest,
    read_once,
    write_recording,
)
from specfit.workflows.hydra_cli import compose

TRACED = "qwen3-30b-a3b-traced"
BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}


def record_traced(config: RunConfig) -> Path:
    """The recording's folder, made when missing."""
    from specfit.workflows.progress import say

    config = named_trace(config)
    donor = donor_recording(config)
    recording = traced(config, donor)
    folder = Path(config.results_dir) / "recordings" / recording.recording_id
    if folder.is_dir() and not config.force:
        say(f"found recorded (force=true records it again): {folder}")
    else:
        write_recording(folder, recording)
    say(recording.notes["half_real"])
    return folder


def named_trace(config: RunConfig) -> RunConfig:
    """`record.from=<file>` in the place of the shipped trace; what else model= says stays."""
    source = config.record.source
    if source is None:
        return config
    model = config.model
    if model.source != "traced":
        model = from_hydra(compose([f"model={TRACED}", f"model.donor={model.name}"])).model
        model = replace(model, shape={}, name=f"traced-{Path(source).name.split('.')[0]}")
    changed = replace(config, model=replace(model, path=source))
    changed.freeze()
    return changed


def donor_recording(config: RunConfig) -> Recording:
    from specfit.decoding.resolve import resolve
    from specfit.workflows.progress import say
    from specfit.workflows.recording.recorder import find_or_record

    donor = config.model.donor
    if donor is None:
        raise SpecfitError(
            "model.donor names no model whose recorded trees stand above the routes; use "
            "model.donor=embedded"
        )
    model = from_hydra(compose([f"model={donor}"])).model
    if model.source == "traced":
        raise SpecfitError(f"model.donor={donor} has no trees of its own; use embedded")
    own = replace(config, model=model)
    own.freeze()
    return read_once(find_or_record(resolve(own, own.record.split), say))


def traced(config: RunConfig, donor: Recording, trace: RoutingTrace | None = None) -> Recording:
    """The donor under the routes of the config's model. Raises SpecfitError.

    `trace`: what the model's path holds, where the caller has read it.
    """
    model = config.model
    if model.format is not None:
        raise SpecfitError(
            f"model={model.name} is routes without weights, so there is nothing to store as "
            f"model.format={model.format}; bill its experts as that with "
            "gpu.billed=qwen3-30b-a3b-fp8 or -int4"
        )
    path = locate(model.path)
    trace = trace or read_trace(path, config.record.experts)
    recorder = dict(donor.config) | {"model": asdict(model)}
    recorder = {key: value for key, value in recorder.items() if key != "record"}
    return traced_recording(
        donor,
        trace,
        file_digest(path),
        Graft(model.graft or "within_8", model.graft_seed),
        recorder,
        traced_shape(trace, model, donor),
        model.acceptance,
    )


def traced_shape(trace: RoutingTrace, model: ModelConfig, donor: Recording) -> Shape:
    """Layers, experts and k of the trace; text of the donor; an expert's bytes as the trace or the
    model's shape says. Raises SpecfitError where neither does."""
    known = model.shape
    if (trace.layers, trace.experts) == (QWEN3_30B_A3B.layers, QWEN3_30B_A3B.experts):
        own = QWEN3_30B_A3B
        known = {"hidden_size": own.hidden, "moe_intermediate_size": own.intermediate, **known}
    hidden, inner = (known.get(key, 0) for key in ("hidden_size", "moe_intermediate_size"))
    if trace.expert_bytes is not None:
        expert_bytes = round(float(trace.expert_bytes.mean()))
    elif hidden and inner:
        expert_bytes = 3 * hidden * inner * BYTES[model.dtype]
    else:
        raise SpecfitError(
            f"{trace.name} does not say how large an expert is; add model={TRACED} "
            "model.shape.hidden_size=<n> model.shape.moe_intermediate_size=<n>"
        )
    text: dict[str, Any] = {
        "vocabulary": donor.shape.vocabulary,
        "context": donor.shape.context,
        "hidden": hidden,
        "intermediate": inner,
    }
    return Shape(
        layers=trace.layers,
        experts=trace.experts,
        top_k=trace.top_k,
        expert_bytes=expert_bytes,
        **text,
    )
