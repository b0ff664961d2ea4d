"""A first run with default settings finds its calibration in the package, from a wheel too."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from specfit.base.config import from_hydra
from specfit.storage.calibration_files import SHIPPED, calibration_path, shipped_calibrations
from specfit.workflows.hydra_cli import compose

ROOT = Path(__file__).resolve().parents[3]
SHARING = (
    (),
    ("cache_slots=12",),
    ("cache_slots=0",),
    ("dataset=embedded_news", "limit=5"),
    ("routes=noisy", "routes.accuracy=0.6"),
    ("selector=evict", "cache_slots=12"),
)
"""Settings of README's commands that share the shipped calibrations."""


def spec_of(*overrides: str) -> Any:
    from specfit.decoding.resolve import resolve

    return resolve(from_hydra(compose([*overrides, "device=cpu"])))


def no_runtime(*_: object) -> Any:
    raise AssertionError("nothing is calibrated")


def test_they_are_found_by_id() -> None:
    from specfit.decoding.calibration.files import calibration_id_of

    ids = [calibration_id_of(spec_of(*overrides)) for overrides in SHARING]
    assert set(ids) == set(shipped_calibrations()), "python scripts/ship_calibrations.py makes them"


def test_a_first_run_copies_one_and_says_so(tmp_path: Path) -> None:
    from specfit.decoding.calibration.files import calibrated_cost

    spec = spec_of("selector=specfit")
    first = calibrated_cost(spec, no_runtime, tmp_path)
    assert first.path == calibration_path(first.calibration_id, tmp_path) and not first.made_now
    assert "(shipped with the package): 144 probes on the modelled clock" in first.sentence()
    assert all(told.startswith("warning: ill-conditioned fit") for told in first.warnings())
    by_size = calibrated_cost(spec_of("selector=evict"), no_runtime, tmp_path).sizes
    assert by_size is not None and by_size.k == 7, "trials are shipped as well"
    assert calibrated_cost(spec, no_runtime, tmp_path).cost.to_dict() == first.cost.to_dict()
    with pytest.raises(AssertionError, match="nothing is calibrated"):
        calibrated_cost(spec_of("selector=specfit", "force=true"), no_runtime, tmp_path)


def test_one_that_is_there_is_not_replaced(tmp_path: Path) -> None:
    from specfit.decoding.calibration.files import calibrated_cost, calibration_id_of

    spec = spec_of()
    document = dict(shipped_calibrations()[calibration_id_of(spec)])
    document["cost"] = document["cost"] | {"expert_ns": 1.0}
    path = calibration_path(calibration_id_of(spec), tmp_path)
    path.parent.mkdir()
    path.write_text(json.dumps(document))
    found = calibrated_cost(spec, no_runtime, tmp_path)
    assert found.cost.expert_ns == 1.0
    told = found.warnings()[-1]
    assert told.startswith("warning: ill-conditioned fit: beta is 0 us an expert, where the probes")


def test_an_installed_package_has_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files that setuptools installs, laid out as in site-packages."""
    import setuptools  # noqa: F401, I001 (brings distutils, which Python 3.12 no longer has)
    from distutils.core import run_setup

    monkeypatch.chdir(ROOT)
    build = run_setup("setup.py", stop_after="init").get_command_obj("build_py")
    build.ensure_finalized()
    for package, source, _, names in build.data_files:
        for name in names:
            link(Path(source) / name, tmp_path / package.replace(".", "/") / name)
    for package, module, source in build.find_all_modules():
        link(Path(source), tmp_path / package.replace(".", "/") / f"{module}.py")
    code = (
        "from specfit.storage.calibration_files import SHIPPED, shipped_calibrations\n"
        "print(SHIPPED, *shipped_calibrations())"
    )
    ended = subprocess.run(
        [sys.executable, "-P", "-c", code],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
    )
    assert ended.returncode == 0, ended.stderr
    installed = tmp_path / "specfit" / SHIPPED.relative_to(ROOT / "specfit")
    assert ended.stdout.split() == [str(installed), *shipped_calibrations()]


def link(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.suffix == ".safetensors":
        target.symlink_to(source.resolve())  # large; the others know where they lie
    else:
        shutil.copyfile(source, target)


@pytest.mark.slow
@pytest.mark.parametrize("overrides", [(), ("cache_slots=0",)])
def test_making_one_again_gives_the_same(overrides: tuple[str, ...], tmp_path: Path) -> None:
    """Trials to the nanosecond; the last bits of a least-squares fit may be another machine's."""
    from specfit.decoding.calibration.files import calibrated_cost
    from specfit.decoding.live import build_runtime

    made = calibrated_cost(spec_of("force=true", *overrides), build_runtime, tmp_path)
    shipped = shipped_calibrations()[made.calibration_id]
    assert made.path is not None
    ours = json.loads(made.path.read_text())
    assert ours["probes"] == shipped["probes"]
    assert np.allclose(ours["cost"]["intercepts_ns"], shipped["cost"]["intercepts_ns"], rtol=1e-12)
