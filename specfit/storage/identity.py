"""Who a run is: a short hash of everything that can change its rows, and of nothing else."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from specfit.base.types import Request

ID_DIGITS = 12

# Dotted keys that cannot change a row, or whose meaning another entry of the identity carries:
# a path by the digest of what it names, `device` and `gpu.clock` by what they resolve to. Advice is
# a sentence that is printed.
UNHASHED: frozenset[str] = frozenset(
    {
        "results_dir",
        "force",
        "trace",
        "record",
        "recording",
        "logger",
        "hydra",
        "device",
        "gpu.clock",
        "gpu.notes",
        "gpu.gpu_names",
        "model.calibration_dataset",
        "gpu.advice",
        "gpu.profile",
        "model.path",
        "model.donor",
        "model.repository",
        "model.revision",
        "drafter.path",
        "drafter.repository",
        "drafter.revision",
        "dataset.path",
        "routes.path",
        "dataset.rows",
        "calibration.path",
        "calibration.dataset_path",
    }
)

# A key that came after the first runs -> the value at which old rows stay true; at that value it
# is left out of the hash, so that no old id changes.
HASH_DEFAULTS: dict[str, Any] = {
    "gpu.kernel": "auto",
    "gpu.overlap": True,
    "gpu.tree_ms": 0.0,
    "gpu.extension_ms": 0.0,
    "gpu.link_gbps_cap": None,
    "model.source": "checkpoint",
    "model.tokenizer": None,
    "model.shape": {},
    "model.graft": None,
    "model.graft_seed": 0,
    "model.acceptance": None,
    "drafter.hits": [],
    "drafter.force": False,
    "drafter.temperature": 1.0,
    "dataset.system": None,
    "objective": "ratio",
    "lambda_tokens_per_s": None,
    "cost": "union",
    "level_cost_ms": 0.0,
    "routes.level_ms": 0.0,
    "gpu.host_expert_us": 0.0,
    "policy": "lru",
    "bypass": False,
    "prefetch": "off",
    "prefetch_blocks": None,
    "miss": "transfer",
}

Identity = dict[str, Any]


def canonical(value: Any) -> str:
    """One text per value: sorted keys, no spaces, no NaN; paths and objects are refused."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest(value: Any, digits: int = ID_DIGITS) -> str:
    return hashlib.sha256(canonical(value).encode()).hexdigest()[:digits]


def hashed_part(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """The config without inert keys, keys at their neutral value, and groups left empty by that."""
    kept: dict[str, Any] = {}
    for key, value in config.items():
        dotted = f"{prefix}{key}"
        if dotted in UNHASHED:
            continue
        if dotted in HASH_DEFAULTS and canonical(HASH_DEFAULTS[dotted]) == canonical(value):
            continue
        if isinstance(value, Mapping):
            value = hashed_part(value, f"{dotted}.")
            if not value:
                continue
        kept[key] = value
    return kept


def run_identity(
    config: Mapping[str, Any], digests: Mapping[str, str], clock: str, device: str
) -> Identity:
    """What `run_id` hashes. `config` is resolved; `digests` are of target, head, dataset rows,
    profile values and calibration; `device` (the device's name) counts on the wall clock only."""
    assert clock in ("wall", "modelled"), f"no clock is named {clock!r}"
    identity: Identity = {
        "config": hashed_part(config),
        "digests": dict(digests),
        "clock": clock,
    }
    return identity | ({"device": device} if clock == "wall" else {})


def run_id(identity: Identity) -> str:
    return digest(identity)


def calibration_identity(parts: Mapping[str, Any]) -> Identity:
    """What `calibration_id` hashes: target, head, rows, dtype, profile, clock, slots, K and so on,
    under their config keys, so that later keys are left out at their neutral value here too."""
    return hashed_part(parts)


def calibration_id(identity: Identity) -> str:
    return digest(identity)


def requests_digest(requests: Sequence[Request]) -> str:
    """Digest of what is asked: ids, prompt ids, caps and stop ids, in order."""
    return digest(
        [
            [r.request_id, [int(t) for t in r.prompt_ids], r.max_new_tokens, sorted(r.stop_ids)]
            for r in requests
        ]
    )


def first_difference(a: Any, b: Any, prefix: str = "") -> str | None:
    """Dotted name of the first key, in sorted order, at which two identities differ."""
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        for key in sorted(set(a) | set(b)):
            dotted = f"{prefix}{key}"
            if key not in a or key not in b:
                return dotted
            inner = first_difference(a[key], b[key], f"{dotted}.")
            if inner is not None:
                return inner
        return None
    return None if canonical(a) == canonical(b) else prefix.rstrip(".")
