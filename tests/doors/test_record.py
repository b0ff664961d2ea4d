"""Record, then replay: the same ids and the same integer columns as the run of the model itself.

`predicted_reward` may differ by 1e-4 of itself: its low bits depend on the shape of the forward
that made the features. Anything else that differs would have to be traced to a near-tie.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from specfit.base.types import SpecfitError
from specfit.storage.recording.files import Recording, find_recording, read_recording
from specfit.storage.recording.tables import FILES
from specfit.storage.rows import RunRows, load_run
from tests.fakes.tiny_model import RUN_EXPERTS, Runnable

ROOT = Path(__file__).resolve().parents[2]
REQUESTS, NEW_TOKENS = 3, 24

pytestmark = pytest.mark.slow  # tests/recorded has the quick ones


@dataclass
class Workplace:
    """The pair, its results folder, and what was recorded there."""

    pair: Runnable
    results: Path

    def config(self, *said: str) -> Any:
        from specfit.base.config import from_hydra
        from specfit.workflows.hydra_cli import compose

        settings = [f"results_dir={self.results}", f"limit={REQUESTS}", "cache_slots=5"]
        settings += [f"max_new_tokens={NEW_TOKENS}", "calibration.slots=5", "record.batch=2"]
        return from_hydra(compose([*self.pair.overrides, *settings, *said]))

    def record(self, *said: str) -> Path:
        from specfit.decoding.resolve import resolve
        from specfit.storage import identity
        from specfit.workflows.recording.recorder import make_recording, recording_identity

        spec = resolve(self.config(*said))
        who = recording_identity(spec)
        folder = self.results / "recordings" / identity.digest(who)
        if not folder.exists():
            tally = make_recording(spec, folder, who, lambda text: None)
            assert tally.token_mismatches == 0, "a near-tie: see the tally's margin"
        return folder

    def live(self, *said: str) -> RunRows:
        from specfit.decoding.live import build_runtime
        from specfit.decoding.resolve import resolve
        from specfit.workflows.execute import Watcher, execute

        return load_run(execute(resolve(self.config(*said)), build_runtime, Watcher()).folder)

    def replay(self, recording: Recording, *said: str) -> RunRows:
        from specfit.decoding.replay.spec import replay_runtime, resolve_replay
        from specfit.workflows.execute import Watcher, execute

        spec = resolve_replay(self.config(*said), recording, [s.split("=")[0] for s in said])
        return load_run(execute(spec, replay_runtime, Watcher(), below="replays").folder)


@pytest.fixture(scope="module")
def workplace(runnable: Runnable, tmp_path_factory: pytest.TempPathFactory) -> Workplace:
    return Workplace(runnable, tmp_path_factory.mktemp("recorded"))


@pytest.fixture(scope="module")
def recording(workplace: Workplace) -> Recording:
    return read_recording(workplace.record())


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
def test_replayed_rows_are_the_runs(
    workplace: Workplace, recording: Recording, selector: str
) -> None:
    said = (f"selector={selector}", "cache_slots=3")
    assert_same_rows(workplace.live(*said), workplace.replay(recording, *said))


def test_a_run_in_turns_is_the_run(
    workplace: Workplace, recording: Recording, tmp_path: Path
) -> None:
    from specfit.decoding.live import build_runtime
    from specfit.decoding.resolve import resolve
    from specfit.workflows.execute import Watcher, execute

    said = ("selector=specfit", "cache_slots=3", f"results_dir={tmp_path}")
    spec = resolve(workplace.config(*said))
    seen = [execute(spec, build_runtime, Watcher(), until=n) for n in range(1, REQUESTS + 1)]
    assert [one.is_finished for one in seen] == [False] * (REQUESTS - 1) + [True]
    whole, parts = workplace.live(*said[:2]), load_run(seen[-1].folder)
    pd.testing.assert_frame_equal(whole.cycles, parts.cycles)
    pd.testing.assert_frame_equal(whole.requests, parts.requests)
    told = json.loads((seen[-1].folder / "manifest.json").read_text())["provenance"]
    assert len(told) == 1, "one process, told once"


@pytest.mark.parametrize("slots", [0, 5, 12, RUN_EXPERTS])
@pytest.mark.parametrize("selector", ["ar", "ar_cache", "eagle3", "eagle3_cache", "specfit"])
def test_matrix(workplace: Workplace, recording: Recording, selector: str, slots: int) -> None:
    """All selectors at all slots; the fit is made twice, from the model and from the recording."""
    said = (f"selector={selector}", f"cache_slots={slots}", "gpu.billed=self")
    assert_same_rows(workplace.live(*said), workplace.replay(recording, *said))


def test_a_recording_knows_its_format_and_replays_no_other(
    workplace: Workplace, recording: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(workplace.results / "cache"))
    format = "fp8"
    own = read_recording(workplace.record(f"model.format={format}"))
    assert own.recording_id != recording.recording_id
    assert (recording.shape.expert_format, own.shape.expert_format) == (None, "fp8-128x128")
    said = ("selector=eagle3_cache", "cache_slots=3", "gpu.billed=self", f"model.format={format}")
    live, replayed = workplace.live(*said), workplace.replay(own, *said)
    assert_same_rows(live, replayed)
    assert set(replayed.requests["expert_format"]) == {"fp8-128x128"}
    moved = replayed.cycles["transferred_experts"].sum()
    assert moved > 0 and replayed.cycles["transferred_bytes"].sum() == 1584 * moved
    wrong = ((own, "bf16"), (own, "int4"), (recording, format))
    for one, other in wrong:
        with pytest.raises(SpecfitError, match=f"model.format={other} is not what was recorded"):
            workplace.replay(one, "selector=ar_cache", f"model.format={other}")
    plain = workplace.replay(recording, *said[:-1], "model.format=bf16")
    assert plain.requests["expert_format"].isna().all()


def test_noisy_routes_err_alike(workplace: Workplace, recording: Recording) -> None:
    said = ("selector=specfit", "routes=noisy", "routes.accuracy=0.6", "selector.k=4")
    assert_same_rows(workplace.live(*said), workplace.replay(recording, *said))


def test_shards_merge_to_the_unsplit_recording(workplace: Workplace, recording: Recording) -> None:
    from specfit.storage import identity
    from specfit.storage.recording.files import merged

    parts = [read_recording(workplace.record(f"record.shard={i}/2")) for i in range(2)]
    assert [one.requests[0].row for one in parts] == [0, 1]
    whole = merged(parts[::-1], identity.digest)
    assert whole.recording_id == recording.recording_id
    said = ("selector=eagle3_cache", "cache_slots=3")
    a, b = workplace.replay(recording, *said), workplace.replay(whole, *said, "force=true")
    pd.testing.assert_frame_equal(a.cycles, b.cycles)


def test_only_what_decides_tokens_is_in_the_id(workplace: Workplace) -> None:
    from specfit.decoding.resolve import resolve
    from specfit.workflows.recording.recorder import recording_identity

    def who(*said: str) -> Any:
        return recording_identity(resolve(workplace.config(*said)))

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


def test_a_replay_asks_for_what_was_recorded(workplace: Workplace, recording: Recording) -> None:
    """What the recording decides may be repeated, not changed; fewer levels may be drafted."""
    for said in ("dataset=embedded_news", "max_new_tokens=12", "threads=2"):
        with pytest.raises(SpecfitError, match="is not what the recording holds"):
            workplace.replay(recording, said)
    with pytest.raises(SpecfitError, match="runs nothing that can be measured"):
        workplace.replay(recording, "gpu=local")
    rows = workplace.replay(
        recording, "selector=eagle3_cache", "drafter.max_depth=2", "cache_slots=3"
    )
    assert rows.cycles["drafted_levels"].max() == 2
    live = workplace.live("selector=eagle3_cache", "drafter.max_depth=2", "cache_slots=3")
    assert_same_rows(live, rows)


def test_greedy_ids_of_a_finished_run_are_used(workplace: Workplace, recording: Recording) -> None:
    """Any selector's: greedy output depends on none."""
    from specfit.decoding.resolve import resolve
    from specfit.workflows.recording.recorder import _known_outputs

    run = workplace.live("selector=eagle3_cache", "cache_slots=3")
    known, source = _known_outputs(resolve(workplace.config()))
    assert source is not None and run.ok_ids == list(known)
    assert [list(one.output_ids) for one in recording.requests] == list(known.values())  # type: ignore[arg-type]


def test_a_recording_is_found_again_by_id(workplace: Workplace, recording: Recording) -> None:
    assert find_recording(recording.recording_id, workplace.results).name == recording.recording_id


# -- interrupted -----------------------------------------------------------------------------------


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in FILES}


def test_an_interrupted_recording_goes_on_after_its_last_batch(
    workplace: Workplace, recording: Recording, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import specfit.workflows.recording.recorder

    mine, record_requests = (
        Workplace(workplace.pair, tmp_path),
        specfit.workflows.recording.recorder.record_requests,
    )
    asked: list[list[int]] = []

    def dies_in_the_second(spec: Any, recorder: Any, rows: Any, known: Any) -> Any:
        asked.append(list(rows))
        if len(asked) == 2:
            raise KeyboardInterrupt
        return record_requests(spec, recorder, rows, known)

    monkeypatch.setattr(specfit.workflows.recording.recorder, "record_requests", dies_in_the_second)
    with pytest.raises(KeyboardInterrupt):
        mine.record()
    assert not list(mine.results.glob("recordings/[!.]*")), "there whole or not at all"
    folder = mine.record()
    assert asked == [[0, 1], [2], [2]], "the first batch was kept"
    assert bytes_of(folder) == bytes_of(workplace.record())
    assert not list(mine.results.glob("recordings/.*.parts"))
    notes = read_recording(folder).notes
    assert notes["requests"]["tokens"] == recording.notes["requests"]["tokens"]
    assert notes["ar_cache"] == recording.notes["ar_cache"]


def test_a_recorder_killed_at_random_moments_leaves_the_same_files(
    workplace: Workplace, tmp_path: Path
) -> None:
    settings = ["cache_slots=5", f"limit={REQUESTS}", f"max_new_tokens={NEW_TOKENS}"]
    settings += ["calibration.slots=5", "record.batch=1", f"results_dir={tmp_path}"]
    command = [sys.executable, "-m", "specfit.record", *workplace.pair.overrides, *settings]
    moments, kills, parts = random.Random(0), 0, tmp_path / "recordings"
    while True:
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
        before = len(list(parts.glob(".*.parts/[0-9]*")))
        while process.poll() is None and kills < 3:
            if len(list(parts.glob(".*.parts/[0-9]*"))) > before:
                time.sleep(moments.uniform(0.0, 0.2))
                process.kill()
                kills += 1
                break
            time.sleep(0.002)
        if process.wait(600) == 0:
            break
    assert kills >= 2, "killed while it recorded"
    (folder,) = (path for path in parts.glob("[!.]*"))
    undisturbed = Workplace(workplace.pair, tmp_path / "undisturbed").record("record.batch=1")
    assert bytes_of(folder) == bytes_of(undisturbed)


def test_the_passes_are_counted_and_billed(recording: Recording) -> None:
    """Every token once, the nodes of a position once or less; two streams for each batch of two."""
    tally = recording.notes["requests"]
    positions, prompts = recording.positions, [one.request for one in recording.requests]
    text = positions + sum(len(one.prompt_ids) for one in prompts if one is not None)
    nodes = sum(len(one.pools.tokens) for one in recording.requests if one.pools is not None)
    assert tally["passes"] == 2 * 2 and tally["nodes"] == nodes
    assert text < tally["rows"] <= text + nodes
    most = recording.shape.layers * recording.shape.experts
    scale = 48 // recording.shape.layers
    assert 0 < tally["pass_bytes"] <= 4 * most * scale * 9_437_184
    assert tally["pass_ns"] > 0 and recording.notes["ar_cache"]["ns"] > 0


def test_two_recorders_at_once_make_one_recording(workplace: Workplace, tmp_path: Path) -> None:
    settings = ["cache_slots=5", f"limit={REQUESTS}", f"max_new_tokens={NEW_TOKENS}"]
    settings += ["calibration.slots=5", "record.batch=2", f"results_dir={tmp_path}"]
    command = [sys.executable, "-m", "specfit.record", *workplace.pair.overrides, *settings]
    both = [subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) for _ in range(2)]
    said = [process.communicate(timeout=600)[0].decode() for process in both]
    assert [process.returncode for process in both] == [0, 0]
    (folder,) = (tmp_path / "recordings").glob("[!.]*")
    assert bytes_of(folder) == bytes_of(workplace.record())
    assert all(f"recording {folder.name}" in text or "found recorded" in text for text in said)
    assert len(read_recording(folder).provenance) == 1, "one of them did the work"
