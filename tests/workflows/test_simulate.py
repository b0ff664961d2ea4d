"""A rehearsal is the replay: the same sums, without a row or a fit on disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from specfit.report.metrics import COUNTERS, totals
from specfit.storage.recording.files import Recording, read_recording
from specfit.workflows.simulate import simulate
from tests.doors.test_record import Workplace
from tests.fakes.tiny_model import RUN_EXPERTS, RUN_LAYERS, RUN_VOCABULARY, Runnable
from tests.models.routes.predictors import write_files

pytestmark = pytest.mark.slow

HIDDEN, TOP_K = 32, 4


@pytest.fixture(scope="module")
def workplace(runnable: Runnable, tmp_path_factory: pytest.TempPathFactory) -> Workplace:
    return Workplace(runnable, tmp_path_factory.mktemp("rehearsed"))


@pytest.fixture(scope="module")
def recording(workplace: Workplace) -> Recording:
    return read_recording(workplace.record())


@pytest.mark.parametrize(
    "said",
    [
        ("selector=ar_cache", "routes=token_table", "prefetch=layer", "routes.path={files}"),
        ("selector=eagle3_cache", "policy=decayed_lfu"),
        ("selector=specfit", "calibration.at=own", "cache_slots=3"),
        ("selector=specfit", "cost=miss"),
        ("selector=evict",),
    ],
)
def test_sums_are_the_rows(
    workplace: Workplace, recording: Recording, said: tuple[str, ...]
) -> None:
    from specfit.decoding.resolve import resolve

    spec = resolve(workplace.config())
    pair = {"target": spec.target_digest, "drafter": spec.drafter_digest}
    files = write_files(
        workplace.results / "files", pair, HIDDEN, (RUN_VOCABULARY, RUN_LAYERS, RUN_EXPERTS, TOP_K)
    )
    words = [word.format(files=files) for word in said]
    rows = totals(workplace.replay(recording, *words)).decode
    before = set((workplace.results / "replays").rglob("*"))
    found = simulate(workplace.config(*words), recording)
    assert set((workplace.results / "replays").rglob("*")) == before, "nothing is left behind"
    assert list(found.request_ids) == rows.index.tolist()
    for column in ("cycles", *COUNTERS):
        assert found.sums[column].tolist() == rows[column].tolist(), column
    speed = 1e9 * rows["committed_tokens"].sum() / rows["cycle_ns"].sum()
    assert found.tokens_per_second == pytest.approx(speed)


def test_a_setting_that_was_not_recorded_is_refused(
    workplace: Workplace, recording: Recording
) -> None:
    from specfit.base.types import SpecfitError

    with pytest.raises(SpecfitError, match="a layer has"):
        simulate(workplace.config(f"cache_slots={RUN_EXPERTS + 1}"), recording)


def test_no_file_is_read_twice(tmp_path: Path, workplace: Workplace, recording: Recording) -> None:
    """Predictions of one file are read once, however often a setting is tried."""
    from specfit.decoding.replay import spec as replay_spec
    from specfit.decoding.resolve import resolve
    from specfit.workflows.recording.predicting import add_predictions

    spec = resolve(workplace.config())
    pair = {"target": spec.target_digest, "drafter": spec.drafter_digest}
    files = write_files(
        tmp_path / "files", pair, HIDDEN, (RUN_VOCABULARY, RUN_LAYERS, RUN_EXPERTS, TOP_K)
    )
    config = workplace.config("routes=learned", f"routes.path={files}")
    add_predictions(resolve(config), recording, lambda text: None)
    replay_spec._predictions.cache_clear()
    first, again = (simulate(config, recording) for _ in range(2))
    assert first.sums["cycle_ns"].tolist() == again.sums["cycle_ns"].tolist()
    assert replay_spec._predictions.cache_info().misses == 1
