"""A replay is the run: the same decoder over a recording leaves the same records."""

from __future__ import annotations

import subprocess
import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from specfit.base.types import DraftTree, Routes, SpecfitError
from specfit.decoding.calibration.trials import TreeTrials
from specfit.decoding.replay.parts import RecordedDrafter, RecordedRoutes, RecordedTarget
from specfit.decoding.replay.playback import Playback
from specfit.decoding.replay.routes import KnownRoutes
from specfit.experts.cache import ExpertCache
from specfit.models.routes.atlas import AtlasRoutes
from specfit.storage.recording.requests import accepted_nodes
from tests.fakes import table_model
from tests.fakes.table_model import (
    EXPERT_BYTES,
    EXPERTS,
    LAYERS,
    ScriptedDrafter,
    ScriptedTarget,
    chain,
)

ASKED = table_model.requests(0, 5, 11, 60, 70)  # the last two end with the stop token


@pytest.fixture(scope="module")
def recorded():  # type: ignore[no-untyped-def]
    return table_model.record(ASKED)


CASES = [
    *product(table_model.selectors(), [0, 3, 8, EXPERTS], [None], [None]),
    *product(["specfit", "specfit, full depth"], [3], [0.6, 0.0], [None]),
    ("eagle3_cache", 3, None, 2),
]


@pytest.mark.parametrize(("name", "slots", "accuracy", "chunk"), CASES)
def test_records_equal_the_live_ones(recorded, name, slots, accuracy, chunk) -> None:  # type: ignore[no-untyped-def]
    selector = table_model.selectors()[name]
    live = table_model.live(selector, slots, accuracy, chunk)
    replay = table_model.replayed(recorded, selector, slots, accuracy, chunk)
    cycles = zip(table_model.decode(live, ASKED), table_model.decode(replay, ASKED), strict=True)
    accepted = 0
    for a, b in cycles:
        assert a.record == b.record
        assert a.tokens == b.tokens
        accepted += a.record.accepted_tokens
    assert accepted > 0 or name == "ar_cache", "the script accepts drafts, or nothing is shown"
    residencies = live.target.residency(), replay.target.residency()
    for key, array in residencies[0].items():
        assert np.array_equal(array, residencies[1][key])


@pytest.mark.parametrize("slots", [0, 5])
def test_probes_equal_the_live_ones(slots: int) -> None:
    """Questions that end too early are walked as well: they warm the cache for the next one."""
    asked = table_model.requests(60, 0, 3, 7, new_tokens=64)
    target = ScriptedTarget(chain(*table_model.TEXT), slots)
    drafter = ScriptedDrafter(table_model.GUESSES, table_model.DEPTH)
    live = TreeTrials(target, drafter, AtlasRoutes(target), table_model.clock(), EXPERTS, 7)
    playback = Playback(table_model.record(asked, most=48))
    parts = (
        RecordedTarget(playback, ExpertCache(LAYERS, EXPERTS, slots), EXPERT_BYTES, None),
        RecordedDrafter(playback, table_model.DEPTH),
        RecordedRoutes(playback),
    )
    replay = TreeTrials(*parts, table_model.clock(), EXPERTS, 7)
    assert live.run(iter(asked)) == replay.run(iter(asked))


def test_accepted_nodes_follow_the_greedy_text() -> None:
    tree = DraftTree.empty().grown(np.array([5, 6]), np.array([-1, -1]), np.array([9, 8]))
    tree = tree.grown(np.array([5, 7, 8, 7]), np.array([0, 0, 1, 1]), np.array([4, 4, 3, 3]))
    assert accepted_nodes(tree, [6, 7, 1]).tolist() == [False, True, False, False, False, True]
    assert accepted_nodes(tree, [6]).tolist() == [False, True, False, False, False, False]
    assert not accepted_nodes(tree, [9, 5]).any()
    assert not accepted_nodes(tree, []).any()


def test_an_unknown_prompt_is_refused(recorded) -> None:  # type: ignore[no-untyped-def]
    decoder = table_model.replayed(recorded, table_model.selectors()["ar_cache"], 3, None, None)
    with pytest.raises(SpecfitError, match="no request with this prompt"):
        next(decoder.decode(table_model.requests(20)[0]))


# -- routes=recording ------------------------------------------------------------------------------


def decode_with(known: KnownRoutes, target: ScriptedTarget, drafter: ScriptedDrafter):  # type: ignore[no-untyped-def]
    from specfit.decoding.decoder import Decoder

    selector = table_model.selectors()["specfit"]
    return Decoder(target, drafter, known, selector, table_model.clock())


def decode_counting(decoder, known: KnownRoutes):  # type: ignore[no-untyped-def]
    """Records, and (cycles, fallbacks) over all requests."""
    records, cycles, fallbacks = [], 0, 0
    for request in ASKED:
        records += [cycle.record for cycle in decoder.decode(request)]
        cycles, fallbacks = cycles + known.cycles, fallbacks + known.fallbacks
    return records, (cycles, fallbacks)


def test_live_routes_from_a_recording_ask_the_target_nothing(recorded) -> None:  # type: ignore[no-untyped-def]
    target = ScriptedTarget(chain(*table_model.TEXT), 3)
    known = KnownRoutes(Playback(recorded), AtlasRoutes(target))
    decoder = decode_with(known, target, ScriptedDrafter(table_model.GUESSES, table_model.DEPTH))
    records, counts = decode_counting(decoder, known)
    plain = table_model.live(table_model.selectors()["specfit"], 3, None, None)
    assert records == [cycle.record for cycle in table_model.decode(plain, ASKED)]
    assert target.observed == []
    assert counts == (sum(record.cycle > 0 for record in records), 0)


def test_another_pool_falls_back_to_the_atlas_and_is_counted(recorded) -> None:  # type: ignore[no-untyped-def]
    """The head differs on one token: only cycles whose pool holds a guess after it fall back."""
    other = table_model.GUESSES | {TEXT_TOKEN: (300, 301)}
    target = ScriptedTarget(chain(*table_model.TEXT), 3)
    known = KnownRoutes(Playback(recorded), AtlasRoutes(target))
    decoder = decode_with(known, target, ScriptedDrafter(other, table_model.DEPTH))
    records, (cycles, fallbacks) = decode_counting(decoder, known)
    assert 0 < fallbacks < cycles
    assert target.observed, "the target was asked instead"
    assert all(record.route_mismatches in (0, None) for record in records)


TEXT_TOKEN = table_model.TEXT[9]


def test_a_request_that_was_not_recorded_falls_back() -> None:
    target = ScriptedTarget(chain(*table_model.TEXT), 3)
    known = KnownRoutes(Playback(table_model.record(ASKED[:1])), AtlasRoutes(target))
    decoder = decode_with(known, target, ScriptedDrafter(table_model.GUESSES, table_model.DEPTH))
    list(table_model.decode(decoder, ASKED[1:2]))
    assert known.fallbacks == known.cycles > 0


# -- without a model -------------------------------------------------------------------------------


CODE = """
import sys
from specfit.workflows.hydra_cli import hydra_command
from specfit.workflows.replay import replay
code = hydra_command(replay)
heavy = {"torch", "transformers", "datasets"} & set(sys.modules)
sys.exit(code or (9 if heavy else 0))
"""


def test_a_replay_needs_no_torch(tmp_path: Path) -> None:
    """The whole command, in a process of its own: rows below replays/, and no model library."""
    from specfit.storage.recording.files import write_recording
    from specfit.storage.rows import load_run

    config = {
        "model": {"name": "scripted", "path": "nowhere", "calibration_dataset": "embedded_gsm8k"},
        "drafter": {
            "name": "scripted",
            "path": "nowhere",
            "top_k": 2,
            "max_depth": table_model.DEPTH,
        },
        "dataset": {"name": "scripted", "source": "jsonl", "max_new_tokens": 30},
        "max_new_tokens": 30,
        "threads": 1,
    }
    whole = table_model.recording(ASKED, config=config)
    write_recording(tmp_path / "recordings" / "scripted", whole)
    said = ["recording=scripted", f"results_dir={tmp_path}", "selector=eagle3_cache"]
    said += ["cache_slots=3", "gpu.billed=self"]
    done = subprocess.run([sys.executable, "-c", CODE, *said], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (folder,) = [path for path in (tmp_path / "replays").iterdir() if path.is_dir()]
    rows = load_run(folder)
    assert rows.info.recording == "scripted"
    assert rows.info.clock == "modelled"
    assert len(rows.ok_ids) == len(ASKED)


def test_levels_of_a_pool_are_parts_of_it() -> None:
    playback = Playback(table_model.record(ASKED[:1]))
    playback.begin(ASKED[0].prompt_ids)
    playback.seek(0)
    for levels in range(1, table_model.DEPTH + 1):
        part = playback.tree.upto(levels)
        assert part.levels == levels
        DraftTree(part.tokens, part.parents, part.depths, part.path_probs)  # asserts itself
    assert len(playback.tree.upto(0)) == 0
    assert Routes(playback.atlas[0], playback.atlas[1:]).nodes.shape[0] == len(playback.tree)
