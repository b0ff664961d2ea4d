"""One set of probes serves every selector: the paper's fit, and the line that a closure needs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from specfit.selection.fit import fit_affine
from specfit.selection.min_cut import affine
from specfit.storage.rows import load_run
from tests.fakes.tiny_model import Command, Runnable

SMALL = ("limit=1", "max_new_tokens=6", "cache_slots=4", "calibration.slots=4")


@pytest.fixture
def facts_of(runnable: Runnable) -> Any:
    from specfit.base.config import from_hydra
    from specfit.decoding.resolve import resolve
    from specfit.workflows.hydra_cli import compose

    return lambda *said: resolve(from_hydra(compose([*runnable.overrides, *SMALL, *said])))


def test_the_closure_shares_the_papers_probes(facts_of: Any) -> None:
    from specfit.decoding.calibration.files import calibration_id_of

    shared = calibration_id_of(facts_of("selector=specfit"))
    assert calibration_id_of(facts_of("selector=closure")) == shared
    assert calibration_id_of(facts_of("selector=closure", "selector.k=30")) == shared
    assert calibration_id_of(facts_of("selector=specfit", "selector.k=5")) != shared


def test_its_cost_is_the_line_through_them(facts_of: Any, calibration: Path) -> None:
    from specfit.decoding.calibration.files import calibrated_cost
    from specfit.decoding.live import build_runtime

    said = ("selector=closure", "selector.k=25", f"calibration.path={calibration}")
    found = calibrated_cost(facts_of(*said), build_runtime, calibration.parent)
    probes = json.loads(calibration.read_text())["probes"]
    columns = [[probe[name] for probe in probes] for name in ("size", "demand", "cycle_ns")]
    expected = fit_affine(*columns, 25)
    assert found.is_line and found.cost.k == 25 and not found.made_now
    assert np.array_equal(found.cost.intercepts_ns, expected.intercepts_ns)
    assert affine(found.cost).node >= 0, "what the closure asks of it"
    assert "b_k on a line" in found.sentence()


def test_a_run_of_the_closure(
    command: Command, runnable: Runnable, calibration: Path, tmp_path: Path
) -> None:
    said = (*runnable.overrides, *SMALL, f"calibration.path={calibration}")
    ended = command(*said, "selector=closure", f"results_dir={tmp_path}")
    assert ended.code == 0, ended.err
    assert "144 probes on the modelled clock, b_k on a line" in ended.out
    rows = load_run(Path(ended.out.splitlines()[-1].removeprefix("rows: ")))
    cycles = rows.cycles[rows.cycles["cycle"] > 0]
    assert (cycles["searched_subtrees"] >= 2).all(), "the empty selection and a cut at least"
    assert not (tmp_path / "calibrations").exists()


def test_a_k_below_the_pool_is_refused_before_anything_is_written(
    command: Command, runnable: Runnable, calibration: Path, tmp_path: Path
) -> None:
    said = (*runnable.overrides, *SMALL, f"calibration.path={calibration}")
    ended = command(*said, "selector=closure", "selector.k=17", f"results_dir={tmp_path}")
    assert ended.code == 2 and not list(tmp_path.iterdir())
    assert ended.sentence == (
        "selector=closure has no size limit, so selector.k is the pool's size: it is 17, and a "
        "pool has up to 18 nodes; set selector.k=18"
    )
