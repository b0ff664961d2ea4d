"""Live run and replay under every route source that predicts: the same rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from specfit.base.types import SpecfitError
from specfit.storage.recording.files import Recording, file_digest, read_recording
from specfit.storage.recording.route_predictions import read_predictions
from tests.doors.test_record import Workplace, assert_same_rows
from tests.fakes.tiny_model import RUN_EXPERTS, RUN_LAYERS, RUN_VOCABULARY, Runnable
from tests.models.routes.predictors import write_files

pytestmark = pytest.mark.slow

HIDDEN, TOP_K = 32, 4


@pytest.fixture(scope="module")
def workplace(runnable: Runnable, tmp_path_factory: pytest.TempPathFactory) -> Workplace:
    return Workplace(runnable, tmp_path_factory.mktemp("predicted"))


@pytest.fixture(scope="module")
def files(workplace: Workplace) -> Path:
    from specfit.decoding.resolve import resolve

    spec = resolve(workplace.config())
    pair = {"target": spec.target_digest, "drafter": spec.drafter_digest}
    return write_files(
        workplace.results / "files", pair, HIDDEN, (RUN_VOCABULARY, RUN_LAYERS, RUN_EXPERTS, TOP_K)
    )


@pytest.fixture(scope="module")
def recording(workplace: Workplace, files: Path) -> Recording:
    from specfit.decoding.resolve import resolve
    from specfit.workflows.recording.predicting import add_predictions

    recording = read_recording(workplace.record())
    spec = resolve(workplace.config("routes=learned", f"routes.path={files}"))
    folder = add_predictions(spec, recording, lambda text: None)
    assert add_predictions(spec, recording, lambda text: None) == folder, "found again"
    return recording


@pytest.mark.parametrize("cost", ["union", "expected_union"])
@pytest.mark.parametrize("slots", [3, RUN_EXPERTS])
@pytest.mark.parametrize("routes", ["learned", "token_table", "last_token"])
def test_replayed_rows_are_the_runs(
    workplace: Workplace, recording: Recording, files: Path, routes: str, slots: int, cost: str
) -> None:
    said = [f"routes={routes}", f"cache_slots={slots}", f"cost={cost}"]
    if routes != "last_token":
        said.append(f"routes.path={files}")
    live = workplace.live(*said)
    assert_same_rows(live, workplace.replay(recording, *said))
    billed = live.cycles["route_ns"].sum()
    assert (billed > 0) == (routes != "last_token")


@pytest.mark.parametrize("routes", ["learned", "token_table", "last_token"])
def test_a_prefetching_run_is_fitted_as_its_replay_is(
    workplace: Workplace, recording: Recording, files: Path, routes: str
) -> None:
    """Its probes are predicted too: what a source remembers is the text before them, no probe."""
    said = [f"routes={routes}", "cache_slots=3", "calibration.at=own", "prefetch=layer"]
    if routes != "last_token":
        said.append(f"routes.path={files}")
    live = workplace.live(*said)
    assert_same_rows(live, workplace.replay(recording, *said))
    assert live.cycles["prefetched_experts"].sum() > 0


def test_the_id_names_the_predictor_and_not_its_folder(
    workplace: Workplace, recording: Recording, files: Path, tmp_path: Path
) -> None:
    def run_id(*said: str) -> str:
        return workplace.replay(recording, "selector=specfit", "cache_slots=3", *said).info.run_id

    here = run_id("routes=token_table", f"routes.path={files}")
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / "token_table.safetensors").write_bytes((files / "token_table.safetensors").read_bytes())
    assert run_id("routes=token_table", f"routes.path={copy}") == here
    assert run_id() != here
    from specfit.decoding.resolve import resolve

    spec = resolve(workplace.config())
    pair = {"target": spec.target_digest, "drafter": "x"}
    write_files(
        tmp_path / "other", pair, HIDDEN + 1, (RUN_VOCABULARY, RUN_LAYERS, RUN_EXPERTS, TOP_K)
    )
    with pytest.raises(SpecfitError, match="holds no predictions of this route source"):
        run_id("routes=learned", f"routes.path={tmp_path / 'other'}")
    with pytest.raises(SpecfitError, match="which routes=learned reads"):
        run_id("routes=learned", f"routes.path={copy}")


def test_predictions_are_of_every_row(
    workplace: Workplace, recording: Recording, files: Path
) -> None:
    found = read_predictions(recording, file_digest(files / "learned.safetensors"))
    for request in recording.requests:
        for position, one in enumerate(found[request.request_id]):
            assert request.pools is not None
            rows = 1 + len(request.pools.tree(position))
            assert one.routes.shape == (rows, RUN_LAYERS, TOP_K)
            chances = one.chances[0]  # of the root: no row is above it
            best = np.take_along_axis(chances, one.routes[0].astype(np.int64), axis=-1)
            assert (best.min(-1) >= np.sort(chances, -1)[..., -TOP_K]).all()


def test_a_study_of_the_sources(
    workplace: Workplace, recording: Recording, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Recall and unions as plain loops over sets count them."""
    from specfit.workflows.studies.routes import study

    said = ("routes=learned", f"routes.path={files}", "cache_slots=3")
    run_id = workplace.replay(recording, *said).info.run_id
    document = study(workplace.results / "replays" / run_id)
    found, sizes = document["sources"], document["sizes"]
    assert sizes[0]["flop"] == 2 * sizes[0]["held_bytes"], "four rows, float32"
    assert sizes[1]["flop"] > sizes[0]["flop"]
    assert sizes[1]["flop"] < 0.05 * sizes[2]["flop"], "well under a draft level"
    predictions = read_predictions(recording, file_digest(files / "learned.safetensors"))
    hits = routed = told = true = 0
    for request in recording.requests:
        assert request.pools is not None
        for position, one in enumerate(predictions[request.request_id]):
            atlas, tree = request.pools.atlas(position), request.pools.tree(position)
            for row in range(len(atlas)):
                hits += len({*one.routes[row, 1].tolist()} & {*atlas[row, 1].tolist()})
                routed += TOP_K
            best = int(np.argmax(tree.path_probs)) + 1
            told += len({*one.routes[0, 2].tolist(), *one.routes[best, 2].tolist()})
            true += len({*atlas[0, 2].tolist(), *atlas[best, 2].tolist()})
    learned = found["learned"]
    assert sum(row[1] for row in learned["hits"]) == hits
    assert sum(row[1] for row in learned["routed"]) == routed
    assert learned["told"][1][2] == told and learned["true"][1][2] == true
    noisy = found["noisy_0.6"]
    share = np.sum(noisy["hits"]) / np.sum(noisy["routed"])
    assert share == pytest.approx(0.6, abs=0.02)
    assert {"expected", "token_table", "last_token"} < set(found)
