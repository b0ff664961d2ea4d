"""Said before a run: a profile's arithmetic on the run's own prompts, or that it is unknown."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from specfit.base.types import Request, RequestError
from specfit.hardware.profile import Billing, Profile
from specfit.report.clock_check import FOLDER
from specfit.workflows.expectation import expected, expected_recording, probed_profile, work_of

MODELLED = Profile("paper", link_gbps=1.0, fixed_ms=100.0, prefill_token_ms=1.0)


@dataclass
class Prompts:
    lengths: list[int]
    ids: list[str] = field(init=False)

    def __post_init__(self) -> None:
        self.ids = [str(i) for i in range(len(self.lengths))]

    def request(self, index: int) -> Request:
        if self.lengths[index] == 0:
            raise RequestError("too long")
        return Request(self.ids[index], np.arange(self.lengths[index]), 10, frozenset({0}))


def spec(results: Path, clock: str = "modelled", profile: Profile = MODELLED) -> Any:
    """Uncached decoding of 10 tokens: 2 own layers billed as 4, 1 of 4 experts a row."""
    return SimpleNamespace(
        config=SimpleNamespace(
            results_dir=str(results), new_tokens=10, selector=SimpleNamespace(name="ar")
        ),
        kind=SimpleNamespace(drafts=False, reads_routes=False),
        geometry=SimpleNamespace(experts=4, top_k=1),
        billing=Billing("big", 4, 5_000_000, 2, 1_000_000),
        workload=Prompts([6, 0, 4, 2]),
        profile=profile,
        clock=clock,
        slots=0,
        device_name="Some CPU",
    )


def leave_probe(results: Path, device: str = "Some CPU") -> None:
    values = {"name": "probe-x", "gpu_names": [device], "link_gbps": 0.5, "fixed_ms": 50.0}
    values |= {"overlap": False, "expert_us": 1000.0, "prefill_token_ms": 0.0}
    (results / FOLDER).mkdir()
    (results / FOLDER / "a.json").write_text("not json")
    (results / FOLDER / "b.json").write_text(json.dumps({"profile": values}))


def test_a_modelled_run_says_its_timed_seconds(tmp_path: Path) -> None:
    """A token takes 100 + 4 x 5 ms; a prompt of 4 tokens 100 + 4 + 4 x 4 x 5; four requests."""
    said = expected(spec(tmp_path))
    seconds = 4 * (10 * 120 + 184) / 1000
    assert f"expected for 4 requests: {seconds:.0f} s timed (modelled by profile paper)" in said
    assert "elapsed unknown before a request is done" in said and "an estimate" in said


def test_elapsed_is_by_this_machines_probe(tmp_path: Path) -> None:
    """As it is: 50 + 2 x (2 + 1) ms a token, 50 + 8 x 3 a prompt."""
    leave_probe(tmp_path)
    seconds = 4 * (10 * 56 + 74) / 1000
    assert f"{seconds:.0f} s elapsed (by profile probe-x)" in expected(spec(tmp_path))
    assert f"{seconds:.0f} s timed, {seconds:.0f} s elapsed" in expected(
        spec(tmp_path, "wall", Profile("local", None, None))
    )
    decoding = expected_recording(spec(tmp_path), 4)
    assert f"expected for 4 requests: {seconds:.0f} s elapsed to decode them" in decoding


def test_only_what_is_left_is_expected(tmp_path: Path) -> None:
    assert work_of(spec(tmp_path), 0).prompt_tokens == 4
    left = work_of(spec(tmp_path), 2)
    assert (left.requests, left.prompt_tokens) == (2, 3)
    assert work_of(spec(tmp_path), 4).prompt_tokens == 0


@pytest.mark.parametrize("device", [None, "Another CPU"])
def test_without_numbers_it_is_unknown(tmp_path: Path, device: str | None) -> None:
    if device is not None:
        leave_probe(tmp_path, device)
    local = spec(tmp_path, "wall", Profile("local", None, None))
    assert expected(local).startswith("expected: unknown, profile local has no numbers")
    assert expected_recording(local, 3).startswith("expected: unknown")
    assert probed_profile(tmp_path, "Some CPU") is None
