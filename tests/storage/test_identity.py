"""Which keys make another run, and which do not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from specfit.base import config as declarations
from specfit.base.config import HASH_DEFAULTS, UNHASHED, hashed_part
from specfit.base.types import Request
from specfit.storage.identity import (
    calibration_id,
    canonical,
    first_difference,
    requests_digest,
    run_id,
    run_identity,
)

CONFIG: dict[str, Any] = {
    "cache_slots": 12,
    "limit": 20,
    "max_new_tokens": 128,
    "seed": 0,
    "repeat": 0,
    "threads": 2,
    "prefill_chunk": None,
    "force": False,
    "trace": None,
    "compare": None,
    "show": None,
    "recording": None,
    "results_dir": "results",
    "device": "auto",
    "model": {
        "name": "embedded",
        "dtype": "float32",
        "donor": None,
        "format": None,
        "path": "/somewhere",
        "repository": None,
        "revision": None,
        "calibration_dataset": "embedded_gsm8k",
    },
    "drafter": {
        "check": False,
        "name": "embedded",
        "path": None,
        "repository": None,
        "revision": None,
        "force": False,
    },
    "selector": {"name": "specfit", "k": 7, "adaptive_depth": True},
    "routes": {"name": "atlas", "accuracy": 1.0, "path": ""},
    "dataset": {
        "name": "embedded_gsm8k",
        "path": None,
        "rows": [],
        "stands_for": "gsm8k",
    },
    "gpu": {
        "name": "paper_main",
        "clock": "auto",
        "link_gbps": 25.0,
        "advice": None,
        "notes": {},
        "gpu_names": [],
        "profile": None,
        "host_memory_gb": None,
        "display_gb": None,
    },
    "calibration": {"at": "primary", "slots": 48, "path": None, "dataset_path": None},
    "offload": {"tier": "host", "pack": None, "ram_slots": 0},
    "logger": {"name": "none"},
}
DIGESTS = {"target": "t", "head": "h", "requests": "r", "profile": "p", "calibration": "c"}


def id_of(
    config: dict[str, Any], clock: str = "modelled", device: str = "cpu", **digests: str
) -> str:
    return run_id(run_identity(hashed_part(config), DIGESTS | digests, clock, device))


def changed(dotted: str, value: Any) -> dict[str, Any]:
    group, _, key = dotted.rpartition(".")
    if not group:
        return CONFIG | {key: value}
    return CONFIG | {group: {**CONFIG[group], key: value}}


UNHASHED_VALUES = {
    "results_dir": "elsewhere",
    "force": True,
    "trace": "q3",
    "compare": False,
    "show": 2,
    "recording": "abc",
    "device": "cpu",
    "gpu.clock": "modelled",
    "gpu.advice": "buy a faster card",
    "gpu.notes": {"link_gbps": "measured"},
    "gpu.gpu_names": ["a GPU"],
    "gpu.profile": "probe.json",
    "gpu.host_memory_gb": 64.0,
    "gpu.display_gb": 1.0,
    "model.calibration_dataset": "gsm8k",
    "model.path": "/elsewhere",
    "model.format": "fp8",
    "model.donor": "another",
    "model.repository": "owner/name",
    "model.revision": "abc",
    "drafter.path": "/elsewhere",
    "drafter.repository": "owner/name",
    "drafter.revision": "abc",
    "drafter.check": True,
    "dataset.path": "my.jsonl",
    "dataset.rows": [3, 1],
    "dataset.stands_for": "cnn_dailymail",
    "routes.path": "/elsewhere",
    "calibration.path": "c.json",
    "calibration.dataset_path": "train.jsonl",
    "offload.pack": "/elsewhere",
    "logger.name": "wandb",
}
HASHED = {
    "cache_slots": 24,
    "limit": 10,
    "max_new_tokens": 64,
    "seed": 1,
    "repeat": 1,
    "threads": 1,
    "prefill_chunk": 64,
    "model.name": "other",
    "model.dtype": "bfloat16",
    "drafter.name": "oracle",
    "drafter.force": True,
    "selector.name": "eagle3_cache",
    "selector.k": 5,
    "selector.adaptive_depth": False,
    "routes.name": "noisy",
    "routes.accuracy": 0.6,
    "dataset.name": "embedded_news",
    "gpu.name": "rtx4090",
    "gpu.link_gbps": 12.0,
    "calibration.at": "own",
    "calibration.slots": 24,
    "offload.tier": "disk",
    "offload.ram_slots": 8,
}


@pytest.mark.parametrize(("dotted", "value"), UNHASHED_VALUES.items())
def test_unhashed_keys_leave_the_id(dotted: str, value: Any) -> None:
    assert id_of(changed(dotted, value)) == id_of(CONFIG)


@pytest.mark.parametrize(("dotted", "value"), HASHED.items())
def test_every_other_key_makes_another_run(dotted: str, value: Any) -> None:
    assert id_of(changed(dotted, value)) != id_of(CONFIG)


def test_the_two_lists_cover_the_config_and_the_unhashed_keys() -> None:
    leaves = {
        f"{key}.{inner}" if isinstance(value, dict) else key
        for key, value in CONFIG.items()
        for inner in (value if isinstance(value, dict) else [key])
    }
    assert leaves == set(UNHASHED_VALUES) | set(HASHED)
    assert {"logger", "record"} | (set(UNHASHED_VALUES) - {"logger.name"}) == UNHASHED


@pytest.mark.parametrize("name", DIGESTS)
def test_digests_make_another_run(name: str) -> None:
    assert id_of(CONFIG, **{name: "other"}) != id_of(CONFIG)


def test_clock_counts_and_the_device_on_the_wall_clock_only() -> None:
    assert id_of(CONFIG, "wall", "cpu") != id_of(CONFIG, "modelled", "cpu")
    assert id_of(CONFIG, "modelled", "cpu") == id_of(CONFIG, "modelled", "gpu")
    assert id_of(CONFIG, "wall", "cpu") != id_of(CONFIG, "wall", "gpu")


def test_a_later_key_keeps_old_ids_at_its_hash_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(declarations, "HASH_DEFAULTS", {"policy.name": "lru", "prefetch": 0})
    old = id_of(CONFIG)
    assert id_of(CONFIG | {"policy": {"name": "lru"}, "prefetch": 0}) == old
    assert id_of(CONFIG | {"policy": {"name": "lfu"}, "prefetch": 0}) != old
    assert id_of(CONFIG | {"prefetch": 1}) != old
    assert id_of(CONFIG | {"prefetch": False}) != old, "False is not 0"


def test_the_id_is_twelve_hex_digits_and_does_not_drift() -> None:
    """A golden id: if it changes, every stored run would be run again."""
    assert id_of(CONFIG) == "635bb81afe36"
    assert id_of(dict(reversed(CONFIG.items()))) == "635bb81afe36"


@pytest.mark.parametrize("dotted", HASH_DEFAULTS)
def test_no_key_that_came_later_moves_the_golden_id(dotted: str) -> None:
    group, _, key = dotted.rpartition(".")
    neutral = HASH_DEFAULTS[dotted]
    added = {key: neutral} if not group else {group: {**CONFIG.get(group, {}), key: neutral}}
    assert id_of(CONFIG | added) == "635bb81afe36"
    other = {key: "x"} if not group else {group: {**CONFIG.get(group, {}), key: "x"}}
    assert id_of(CONFIG | other) != "635bb81afe36"


def test_a_calibration_drops_the_same_keys_and_names_a_difference() -> None:
    parts = {"target": "t", "selector": {"k": 7}, "model": {"dtype": "float32", "path": "/a"}}
    same = hashed_part(parts | {"model": {"dtype": "float32", "path": "/b"}})
    other = hashed_part(parts | {"selector": {"k": 5}})
    assert calibration_id(same) == calibration_id(hashed_part(parts))
    assert calibration_id(other) != calibration_id(same)
    assert first_difference(same, other) == "selector.k"
    assert first_difference(same, same) is None
    assert first_difference(same, same | {"a": 1}) == "a"


def test_only_plain_values_are_hashed() -> None:
    with pytest.raises(TypeError):
        canonical({"a": Path("x")})
    with pytest.raises(ValueError):
        canonical(float("nan"))


def test_requests_digest_sees_order_prompts_caps_and_stops() -> None:
    def request(name: str, ids: list[int], cap: int = 8, stop: int = 1) -> Request:
        return Request(name, np.array(ids), cap, frozenset({stop}), reference="any")

    base = [request("a", [1, 2]), request("b", [3])]
    others = [
        base[::-1],
        base[:1],
        [request("a", [1, 9]), base[1]],
        [request("a", [1, 2], cap=9), base[1]],
        [request("a", [1, 2], stop=5), base[1]],
    ]
    assert requests_digest(base) == requests_digest([request("a", [1, 2]), request("b", [3])])
    assert requests_digest(base) not in [requests_digest(other) for other in others]
