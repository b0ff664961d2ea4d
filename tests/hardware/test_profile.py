"""What a profile and a billing accept, and what a profile's digest depends on."""

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from specfit.base.types import ForwardTrace, SpecfitError
from specfit.hardware.profile import Billing, Profile

PAPER = Profile("paper_main", link_gbps=25, fixed_ms=70)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("link_gbps", 0),
        ("link_gbps", -1.0),
        ("link_gbps", float("nan")),
        ("link_gbps", float("inf")),
        ("fixed_ms", -1),
        ("node_ms", -0.1),
        ("draft_level_ms", None),
        ("prefill_token_ms", float("nan")),
        ("copies_in_flight", 0),
        ("copies_in_flight", 9),
        ("copies_in_flight", 1.5),
        ("memory_bytes", 0),
    ],
)
def test_a_wrong_value_is_refused_by_name(name: str, value: Any) -> None:
    with pytest.raises(SpecfitError, match=f"profile paper_main: {name}={value} must be"):
        replace(PAPER, **{name: value})


@pytest.mark.parametrize("notes", [{"link_gbps": "guessed"}, {"colour": "measured"}])
def test_a_note_names_a_value_and_a_known_source(notes: dict[str, str]) -> None:
    with pytest.raises(SpecfitError, match="published, inferred, assumed, measured"):
        replace(PAPER, notes=notes)


def test_the_defaults_are_the_design_s_constants() -> None:
    got = {field.name: getattr(PAPER, field.name) for field in fields(PAPER)}
    assert got == {
        "name": "paper_main",
        "link_gbps": 25,
        "fixed_ms": 70,
        "gpu_names": (),
        "node_ms": 0.6,
        "draft_level_ms": 3.0,
        "selection_ms": 3.0,
        "commit_ms": 0.0,
        "prefill_token_ms": 0.2,
        "copy_latency_us": 0.0,
        "expert_us": 0.0,
        "copies_in_flight": 2,
        "memory_bytes": None,
        "overlap": True,
        "tree_ms": 0.0,
        "extension_ms": 0.0,
        "miss_us": 0.0,
        "host_expert_us": 0.0,
        "notes": {},
    }


def test_the_digest_is_of_the_values_only() -> None:
    told = replace(PAPER, name="x", gpu_names=("A100",), notes={"fixed_ms": "inferred"})
    assert told.digest() == PAPER.digest() == replace(PAPER, link_gbps=25.0).digest()
    other = {"copies_in_flight": 3, "memory_bytes": 1}
    for field in fields(PAPER):
        if field.name not in ("name", "gpu_names", "notes"):
            changed = replace(PAPER, **{field.name: other.get(field.name, 0.125)})
            assert changed.digest() != PAPER.digest(), field.name
    assert replace(PAPER, link_gbps=None).digest() != PAPER.digest()


def test_the_digest_of_committed_rows_stays() -> None:
    """A value added to Profile later must be neutral and left out at its neutral value."""
    assert PAPER.digest() == "840fefa1d9037a9d"


def test_billing_scales_layers() -> None:
    billing = Billing("qwen3-30b-a3b", 48, 9_437_184, own_layers=8, own_expert_bytes=24_576)
    assert billing.layer_scale == 6
    own = Billing.own(8, 24_576)
    assert (own.name, own.layer_scale, own.expert_bytes) == ("self", 1, 24_576)


@pytest.mark.parametrize("own_layers", [5, 7, 36, 96])
def test_a_scale_that_is_not_whole_is_refused(own_layers: int) -> None:
    with pytest.raises(SpecfitError, match=r"gpu\.billed=big has 48 layers.*use gpu\.billed=self"):
        Billing("big", 48, 10, own_layers, 1)


def test_billed_bytes_are_misses_times_scale_times_billed_bytes() -> None:
    counts = np.array([3, 0])
    trace = ForwardTrace(0, False, counts, counts, counts * 0, np.full((2, 3), -1))
    assert Billing("big", 6, 1000, own_layers=2, own_expert_bytes=10).billed_bytes(trace) == 9000
    assert Billing.own(2, 10).billed_bytes(trace) == 30
    with pytest.raises(AssertionError):
        Billing.own(4, 10).billed_bytes(trace)
