"""objective=lambda through whole runs: a fixed price, or the run's own throughput, also resumed.

The scripted recording stands in for the model: `execute` cannot tell, and it runs in no time. Rows
go where a live run's go, since a replay hurries past its first requests and keeps no residency.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from specfit.base.config import from_hydra, hashed_part
from specfit.base.types import SpecfitError
from specfit.decoding.calibration.files import _identity_parts
from specfit.decoding.replay.spec import replay_runtime, resolve_replay
from specfit.decoding.spec import RunSpec
from specfit.selection.cost import CostModel
from specfit.storage import identity
from specfit.storage.atomic import write_json
from specfit.storage.recording.files import Recording
from specfit.storage.rows import RunRows, load_run
from specfit.storage.run_folder import RunStore
from specfit.workflows.execute import Job, Watcher, execute
from specfit.workflows.hydra_cli import compose
from tests.fakes import table_model

ROWS = ("cycles.parquet", "requests.parquet")
COST = CostModel(1e6 + 5e5 * np.arange(8), 2e5)
"""Dear enough that the rules part: some guesses are worth their experts, some are not."""
CONFIG = {
    "model": {"name": "scripted", "path": "nowhere", "calibration_dataset": "embedded_gsm8k"},
    "drafter": {"name": "scripted", "path": "nowhere", "top_k": 2, "max_depth": table_model.DEPTH},
    "dataset": {"name": "scripted", "source": "jsonl", "max_new_tokens": 30},
    "max_new_tokens": 30,
    "threads": 1,
}
FOLLOWING = ("objective=lambda",)


@pytest.fixture(scope="module")
def recording() -> Recording:
    whole = table_model.recording(table_model.requests(0, 5, 11, 40), config=CONFIG)
    whole.identity["calibration"] = "none"
    return whole


def facts_of(recording: Recording, results: Path, *said: str) -> RunSpec:
    """With the fit planted that a run of this config looks up."""
    settings = [f"results_dir={results}", "cache_slots=3", "gpu.billed=self", *said]
    config = from_hydra(compose(settings))
    spec = resolve_replay(config, recording, [one.split("=")[0] for one in said])
    wanted = hashed_part(_identity_parts(spec))
    document = {"identity": wanted, "cost": COST.to_dict(), "probe_count": 0}
    path = results / "calibrations" / f"{identity.calibration_id(wanted)}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, document | {"leave_one_state_out": {}})
    return spec


def run(recording: Recording, results: Path, *said: str) -> Path:
    spec = facts_of(recording, results, *said)
    return execute(spec, replay_runtime, Watcher()).folder


def selections(folder: Path) -> list[tuple[int, int]]:
    cycles = load_run(folder).cycles
    return list(zip(cycles["verified_nodes"], cycles["demand_experts"], strict=True))


def bytes_of(folder: Path) -> list[bytes]:
    return [(folder / name).read_bytes() for name in ROWS]


def test_the_objective_decides_what_is_verified(recording: Recording, tmp_path: Path) -> None:
    plain, following = run(recording, tmp_path), run(recording, tmp_path, *FOLLOWING)
    free = run(recording, tmp_path, *FOLLOWING, "lambda_tokens_per_s=0")
    dear = run(recording, tmp_path, *FOLLOWING, "lambda_tokens_per_s=1e9")
    assert len({plain.name, following.name, free.name, dear.name}) == 4, "four runs, four ids"
    verified = [load_run(folder).cycles["verified_nodes"] for folder in (free, dear)]
    assert (verified[0][1:] > 0).any() and (verified[1] == 0).all(), "time is free, or everything"
    assert selections(following) != selections(plain)
    outputs = [load_run(f).requests["output_ids"].map(list).tolist() for f in (plain, following)]
    assert outputs[0] == outputs[1], "greedy output does not depend on the selector"


@pytest.fixture
def dies(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """The process ends in the third request."""
    serve = Job._serve

    def until(self: Job, index: int, watcher: Any) -> Any:
        if index == 2:
            raise KeyboardInterrupt
        return serve(self, index, watcher)

    with monkeypatch.context() as patched:
        patched.setattr(Job, "_serve", until)
        yield patched


def test_a_resumed_run_goes_on_with_its_totals(
    recording: Recording, tmp_path: Path, dies: pytest.MonkeyPatch
) -> None:
    for results in (tmp_path / "resumed", tmp_path / "forgetful"):
        with pytest.raises(KeyboardInterrupt):
            run(recording, results, *FOLLOWING)
    dies.undo()
    whole = run(recording, tmp_path, *FOLLOWING)
    resumed = run(recording, tmp_path / "resumed", *FOLLOWING)
    assert bytes_of(resumed) == bytes_of(whole)
    dies.setattr(RunStore, "cycles_before", lambda self: [])
    forgetful = run(recording, tmp_path / "forgetful", *FOLLOWING)
    assert bytes_of(forgetful) != bytes_of(whole), "or this test could not fail"


def test_a_request_decoded_again_has_the_run_behind_it(
    recording: Recording, tmp_path: Path
) -> None:
    folder = run(recording, tmp_path, *FOLLOWING)
    rows: RunRows = load_run(folder)
    spec = facts_of(recording, tmp_path, *FOLLOWING)
    from specfit.decoding.calibration.files import calibrated_cost

    fit = calibrated_cost(spec, replay_runtime, tmp_path)
    for request_id in rows.request_ids:
        store = RunStore(folder.parent, folder.name)
        part = Job(spec, replay_runtime, fit).replay_one(request_id, store, Watcher())
        stored = rows.cycles[rows.cycles["request_id"] == request_id]
        assert [cycle.cycle_ns for cycle in part.cycles] == stored["cycle_ns"].tolist()


def test_lambda_is_read_by_one_objective(recording: Recording, tmp_path: Path) -> None:
    with pytest.raises(SpecfitError, match="is read by objective=lambda alone"):
        run(recording, tmp_path, "lambda_tokens_per_s=9")
    with pytest.raises(SpecfitError, match=r"lambda is -1\.0 tokens per second; give a number"):
        run(recording, tmp_path, *FOLLOWING, "lambda_tokens_per_s=-1")
    with pytest.raises(SpecfitError, match="objective is 'speed'; use one of ratio, lambda"):
        run(recording, tmp_path, "objective=speed")
    assert not (tmp_path / "runs").exists()


def test_selectors_that_price_nothing_have_no_objective(
    recording: Recording, tmp_path: Path
) -> None:
    plain = run(recording, tmp_path, "selector=eagle3_cache")
    assert run(recording, tmp_path, "selector=eagle3_cache", *FOLLOWING) == plain
