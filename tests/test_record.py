"""Record, then replay: the same ids and the same integer columns as the run of the model itself.

`predicted_reward` may differ by 1e-4 of itself: its low bits depend on the shape of the forward
that made the features. Anything else that differs would have to be traced to a near-tie.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from specfit.core import SpecfitError
from specfit.results.recording import Recording, find_recording, read_recording
from specfit.results.rows import RunRows, load_run
from tests.runnable import EXPERTS, Runnable

REQUESTS, NEW_TOKENS = 3, 24

pytestmark = pytest.mark.slow  # tests/recorded has the quick ones


class Quiet:
    def calibrates(self) -> None: ...

    def starts(self, total: int, done: int) -> None: ...

    def sees_cycle(self, cycle: Any) -> None: ...

    def finishes_request(self, part: Any) -> None: ...


@dataclass
class Desk:
    """The pair, its results folder, and what was recorded there."""

    pair: Runnable
    results: Path

    def config(self, *said: str) -> Any:
        from specfit.commands import compose
        from specfit.config import from_hydra

        settings = [f"results_dir={self.results}", f"limit={REQUESTS}", "cache_slots=5"]
        settings += [f"max_new_tokens={NEW_TOKENS}", "calibration.slots=5", "record.batch=2"]
        return from_hydra(compose([*self.pair.overrides, *settings, *said]))

    def record(self, *said: str) -> Path:
        from specfit.recorder import make_recording, recording_identity
        from specfit.resolve import resolve
        from specfit.results import identity

        facts = resolve(self.config(*said))
        who = recording_identity(facts)
        folder = self.results / "recordings" / identity.digest(who)
        if not folder.exists():
            tally = make_recording(facts, folder, who, lambda text: None)
            assert tally.token_mismatches == 0, "a near-tie: see the tally's margin"
        return folder

    def live(self, *said: str) -> RunRows:
        from specfit.build import build_machine
        from specfit.execution import execute
        from specfit.resolve import resolve

        return load_run(execute(resolve(self.config(*said)), build_machine, Quiet()).folder)

    def replay(self, recording: Recording, *said: str) -> RunRows:
        from specfit.execution import execute
        from specfit.recorded.facts import recorded_machine, resolve_replay

        facts = resolve_replay(self.config(*said), recording, [s.split("=")[0] for s in said])
        return load_run(execute(facts, recorded_machine, Quiet(), below="replays").folder)


@pytest.fixture(scope="module")
def desk(runnable: Runnable, tmp_path_factory: pytest.TempPathFactory) -> Desk:
    return Desk(runnable, tmp_path_factory.mktemp("recorded"))


@pytest.fixture(scope="module")
def recording(desk: Desk) -> Recording:
    return read_recording(desk.record())


def assert_same_rows(live: RunRows, replay: RunRows) -> None:
    assert live.info.run_id == replay.info.run_id
    assert replay.info.recording is not None and live.info.recording is None
    a, b = live.cycles, replay.cycles
    reward = "predicted_reward"
    pd.testing.assert_frame_equal(a.drop(columns=reward), b.drop(columns=reward))
    both = a[reward].notna()
    assert both.equals(b[reward].notna())
    far = (a[reward] - b[reward]).abs()[both] / a[reward][both]
    assert (far <= 1e-4).all()
    pd.testing.assert_frame_equal(live.requests, replay.requests)


@pytest.mark.parametrize("selector", ["ar_cache", "eagle3_cache"])
def test_replayed_rows_are_the_runs(desk: Desk, recording: Recording, selector: str) -> None:
    said = (f"selector={selector}", "cache_slots=3")
    assert_same_rows(desk.live(*said), desk.replay(recording, *said))


@pytest.mark.parametrize("slots", [0, 5, 12, EXPERTS])
@pytest.mark.parametrize("selector", ["ar", "ar_cache", "eagle3", "eagle3_cache", "specfit"])
def test_matrix(desk: Desk, recording: Recording, selector: str, slots: int) -> None:
    """All selectors at all slots; the fit is made twice, from the model and from the recording."""
    said = (f"selector={selector}", f"cache_slots={slots}", "gpu.billed=self")
    assert_same_rows(desk.live(*said), desk.replay(recording, *said))


def test_noisy_routes_err_alike(desk: Desk, recording: Recording) -> None:
    said = ("selector=specfit", "routes=noisy", "routes.accuracy=0.6", "selector.k=4")
    assert_same_rows(desk.live(*said), desk.replay(recording, *said))


def test_shards_merge_to_the_unsplit_recording(desk: Desk, recording: Recording) -> None:
    from specfit.results import identity
    from specfit.results.recording import merged

    parts = [read_recording(desk.record(f"record.shard={i}/2")) for i in range(2)]
    assert [one.requests[0].row for one in parts] == [0, 1]
    whole = merged(parts[::-1], identity.digest)
    assert whole.recording_id == recording.recording_id
    said = ("selector=eagle3_cache", "cache_slots=3")
    a, b = desk.replay(recording, *said), desk.replay(whole, *said, "force=true")
    pd.testing.assert_frame_equal(a.cycles, b.cycles)


def test_only_what_decides_tokens_is_in_the_id(desk: Desk) -> None:
    from specfit.recorder import recording_identity
    from specfit.resolve import resolve

    def who(*said: str) -> Any:
        return recording_identity(resolve(desk.config(*said)))

    same = (
        "selector=ar_cache",
        "cache_slots=2",
        "gpu=rtx4090",
        "seed=3",
        "repeat=1",
        "selector.k=3",
    )
    assert all(who(said) == who() for said in same)
    other = ("max_new_tokens=9", "limit=2", "drafter.max_depth=3", "threads=2")
    assert all(who(said) != who() for said in other)


def test_a_replay_asks_for_what_was_recorded(desk: Desk, recording: Recording) -> None:
    """What the recording decides may be repeated, not changed; fewer levels may be drafted."""
    for said in ("dataset=embedded_news", "max_new_tokens=12", "threads=2"):
        with pytest.raises(SpecfitError, match="is not what the recording holds"):
            desk.replay(recording, said)
    with pytest.raises(SpecfitError, match="runs nothing that can be measured"):
        desk.replay(recording, "gpu=local")
    rows = desk.replay(recording, "selector=eagle3_cache", "drafter.max_depth=2", "cache_slots=3")
    assert rows.cycles["drafted_levels"].max() == 2
    live = desk.live("selector=eagle3_cache", "drafter.max_depth=2", "cache_slots=3")
    assert_same_rows(live, rows)


def test_greedy_ids_of_a_finished_run_are_used(desk: Desk, recording: Recording) -> None:
    """Any selector's: greedy output depends on none."""
    from specfit.recorder import _known_outputs
    from specfit.resolve import resolve
    from specfit.teaching import Tally

    run = desk.live("selector=eagle3_cache", "cache_slots=3")
    tally = Tally()
    known = _known_outputs(resolve(desk.config()), tally)
    assert tally.ids_from is not None and run.ok_ids == list(known)
    assert [list(one.output_ids) for one in recording.requests] == list(known.values())  # type: ignore[arg-type]


def test_a_recording_is_found_again_by_id(desk: Desk, recording: Recording) -> None:
    assert find_recording(recording.recording_id, desk.results).name == recording.recording_id
