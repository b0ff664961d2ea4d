"""`gpu.profile`: a probe's file gives every hardware value, and nothing else is given beside it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from specfit.base.config import GpuConfig, apply_profile
from specfit.base.types import SpecfitError
from specfit.decoding.spec import profile_of

VALUES = {"name": "probe-x", "link_gbps": 5.5, "fixed_ms": 2.0, "expert_us": 30.0, "overlap": False}


def stored(folder: Path, values: object) -> str:
    path = folder / "x.json"
    path.write_text(json.dumps({"profile": values}))
    return str(path)


def test_the_files_values_are_the_profiles(tmp_path: Path) -> None:
    gpu = GpuConfig(name="local", clock="modelled", profile=stored(tmp_path, VALUES))
    apply_profile(gpu)
    profile = profile_of(gpu)
    assert (profile.name, profile.link_gbps, profile.overlap) == ("probe-x", 5.5, False)
    assert gpu.clock == "modelled", "a choice, not a measurement"
    assert profile.digest() != profile_of(GpuConfig("p", link_gbps=5.5, fixed_ms=2.0)).digest()


@pytest.mark.parametrize(
    ("values", "set_beside", "sentence"),
    [
        (VALUES, {"node_ms": 1.0}, r"gpu\.node_ms is set as well"),
        (VALUES | {"speed": 1}, {}, "unknown value speed"),
        (None, {}, "no file of"),
    ],
)
def test_what_is_wrong_is_said(
    tmp_path: Path, values: object, set_beside: dict[str, float], sentence: str
) -> None:
    gpu = GpuConfig(name="local", profile=stored(tmp_path, values), **set_beside)  # type: ignore[arg-type]
    with pytest.raises(SpecfitError, match=sentence):
        apply_profile(gpu)


def test_a_missing_file_is_said() -> None:
    with pytest.raises(SpecfitError, match=r"absent\.json"):
        apply_profile(GpuConfig(name="local", profile="absent.json"))
