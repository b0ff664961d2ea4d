"""Who a run is: a short hash of everything that can change its rows, and of nothing else."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from specfit.base.types import Request

ID_DIGITS = 12

Identity = dict[str, Any]


def canonical(value: Any) -> str:
    """One text per value: sorted keys, no spaces, no NaN; paths and objects are refused."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest(value: Any, digits: int = ID_DIGITS) -> str:
    return hashlib.sha256(canonical(value).encode()).hexdigest()[:digits]


def run_identity(
    config: Mapping[str, Any], digests: Mapping[str, str], clock: str, device: str
) -> Identity:
    """What `run_id` hashes. `config` is resolved and without unhashed keys (`hashed_part` of
    specfit/base/config.py); `digests` are of target, head, dataset rows, profile values and
    calibration; `device` (the device's name) counts on the wall clock only."""
    assert clock in ("wall", "modelled"), f"no clock is named {clock!r}"
    identity: Identity = {
        "config": dict(config),
        "digests": dict(digests),
        "clock": clock,
    }
    return identity | ({"device": device} if clock == "wall" else {})


def run_id(identity: Identity) -> str:
    return digest(identity)


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
