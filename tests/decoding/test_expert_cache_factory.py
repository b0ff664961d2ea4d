"""Policies, prefetching, costs by residency, the host lane: ids stay, and replays are runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from specfit.base.types import SpecfitError
from specfit.report.metrics import same_ids, totals
from specfit.storage.recording.files import Recording, read_recording
from tests.doors.test_record import Workplace, assert_same_rows
from tests.fakes.tiny_model import Runnable

pytestmark = pytest.mark.slow

SETTINGS = {
    "policy": ["policy=decayed_lfu"],
    "bypass": ["bypass=true", "cache_slots=3"],
    "static": ["policy=static"],
    "outside": ["policy=tests.experts.ranks:newest_first"],
    "tempered": ["drafter.temperature=1.3"],
    "layer": ["prefetch=layer"],
    "noisy": ["prefetch=layer", "routes=noisy", "routes.accuracy=0.5", "prefetch_blocks=7"],
    "root": ["prefetch=root", "cache_slots=0"],
    "ar": ["prefetch=layer", "selector=ar_cache"],
    "ar, last token": ["prefetch=layer", "selector=ar_cache", "routes=last_token", "cache_slots=2"],
    "eagle3": ["prefetch=layer", "selector=eagle3_cache"],
    "miss": ["cost=miss"],
    "hit_miss": ["cost=hit_miss", "policy=lfru"],
    "host": ["miss=auto", "gpu.host_expert_us=300"],
    "all": ["prefetch=tree", "cost=miss", "policy=lfu", "miss=cpu", "gpu.host_expert_us=300"],
}


@pytest.fixture(scope="module")
def workplace(runnable: Runnable, tmp_path_factory: pytest.TempPathFactory) -> Workplace:
    return Workplace(runnable, tmp_path_factory.mktemp("movement"))


@pytest.fixture(scope="module")
def recording(workplace: Workplace) -> Recording:
    return read_recording(workplace.record())


@pytest.mark.parametrize("name", SETTINGS)
def test_the_ids_are_the_targets_and_the_replay_is_the_run(
    workplace: Workplace, recording: Recording, name: str
) -> None:
    live = workplace.live(*SETTINGS[name])
    assert same_ids(live, workplace.live("selector=ar")).equal
    assert_same_rows(live, workplace.replay(recording, *SETTINGS[name]))
    columns = {"prefetched_experts": "prefetch", "host_experts": "host_expert_us"}
    for column, word in columns.items():
        asked = any(word in setting for setting in SETTINGS[name])
        assert (totals(live).sum(column) > 0) == asked
    assert live.cycles["used_prefetched_experts"].isna().all() != (
        "prefetch" in str(SETTINGS[name])
    )


def test_who_knows_the_future_is_a_replay(workplace: Workplace, recording: Recording) -> None:
    copies = {
        policy: totals(workplace.replay(recording, f"policy={policy}")).sum("transferred_experts")
        for policy in ("lru", "belady")
    }
    assert copies["belady"] < copies["lru"]
    with pytest.raises(SpecfitError, match="policy=belady knows the future"):
        workplace.live("policy=belady")


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        (["policy=newest"], "policy is 'newest'; use one of lru"),
        (["prefetch=layer", "selector=ar_cache", "routes=learned"], "routes=learned"),
        (["miss=cpu"], "set gpu.host_expert_us"),
        (["miss=cpu", "gpu.host_expert_us=1", "gpu.clock=wall"], "gpu.clock=modelled"),
        (["prefetch=layer", "gpu=local"], "use prefetch=off"),
        (["cost=miss", "selector=greedy"], "use cost=union"),
    ],
)
def test_what_cannot_be_is_said(workplace: Workplace, said: list[str], sentence: str) -> None:
    with pytest.raises(SpecfitError, match=sentence):
        workplace.live(*said)


def test_a_fit_knows_what_moves(workplace: Workplace, recording: Recording, tmp_path: Path) -> None:
    """Everything the coefficients depend on has a calibration of its own; the default keeps its."""
    from specfit.decoding.calibration.files import calibration_id_of
    from specfit.decoding.replay.spec import resolve_replay

    def fit_of(*said: str) -> str:
        keys = [s.split("=")[0] for s in said]
        return calibration_id_of(resolve_replay(workplace.config(*said), recording, keys))

    priced = [s for s in SETTINGS.values() if "selector" not in str(s)]
    said = [[], *priced, ["prefetch=layer", "routes=noisy"], ["cost=hit_miss"]]
    ids = {fit_of(*settings) for settings in said}
    assert len(ids) == len(said)
    assert fit_of("policy=belady") == fit_of() == fit_of("cost=expected_union")
    assert fit_of("routes=noisy") == fit_of(), (
        "probes read exact routes where nothing is prefetched"
    )
