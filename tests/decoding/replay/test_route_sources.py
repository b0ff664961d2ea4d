"""Sources that need nothing of a recording but its tokens and routes: the replay is the run."""

from __future__ import annotations

import numpy as np
import pytest

from specfit.base.interfaces import RouteSource
from specfit.decoding.decoder import Decoder
from specfit.decoding.replay.parts import RecordedDrafter, RecordedTarget
from specfit.decoding.replay.playback import Playback
from specfit.decoding.replay.routes import recent_uses
from specfit.experts.cache import ExpertCache
from specfit.models.routes.last_token import LastTokenRoutes
from specfit.models.routes.recent_use import RecentUse
from specfit.models.routes.token_table import TokenTableRoutes
from specfit.selection.selectors import SpecFit
from tests.fakes import table_model
from tests.fakes.table_model import (
    EXPERT_BYTES,
    EXPERTS,
    LAYERS,
    TOP_K,
    ScriptedDrafter,
    ScriptedTarget,
    chain,
)
from tests.models.routes.predictors import random_table

ASKED = table_model.requests(0, 5, 60)
VOCABULARY = 400


def source_named(name: str) -> RouteSource:
    if name == "last_token":
        return LastTokenRoutes()
    return TokenTableRoutes(random_table(VOCABULARY, LAYERS, EXPERTS, TOP_K))


@pytest.mark.parametrize("name", ["last_token", "token_table"])
@pytest.mark.parametrize("slots", [0, 4])
def test_records_equal_the_live_ones(name: str, slots: int) -> None:
    target = ScriptedTarget(chain(*table_model.TEXT), slots)
    drafter = ScriptedDrafter(table_model.GUESSES, table_model.DEPTH)
    selector = SpecFit(table_model.COST, EXPERTS)
    live = Decoder(target, drafter, source_named(name), selector, table_model.clock())
    playback = Playback(table_model.record(ASKED))
    recorded = RecordedTarget(playback, ExpertCache(LAYERS, EXPERTS, slots), EXPERT_BYTES, None)
    drafts = RecordedDrafter(playback, table_model.DEPTH)
    replay = Decoder(recorded, drafts, source_named(name), selector, table_model.clock())
    pairs = zip(table_model.decode(live, ASKED), table_model.decode(replay, ASKED), strict=True)
    wrong = 0
    for a, b in pairs:
        assert a.record == b.record and a.tokens == b.tokens
        wrong += a.record.route_mismatches or 0
    assert wrong > 0, "the sources err, or nothing is shown"


class Watched(LastTokenRoutes):
    """Keeps the recent use that a source on the run's clock would have, read by read."""

    def __init__(self) -> None:
        self._recent = RecentUse((0.0, 0.8), LAYERS, EXPERTS)
        self.at: dict[tuple[str, int], np.ndarray] = {}

    def begin(self, request) -> None:  # type: ignore[no-untyped-def]
        super().begin(request)
        self._recent.clear()
        self._request, self._prompt = request.request_id, len(request.prompt_ids)

    def observe(self, routed) -> None:  # type: ignore[no-untyped-def]
        super().observe(routed)
        self._recent.add(routed)

    def read(self, root_token, tree, context_tokens):  # type: ignore[no-untyped-def]
        position = context_tokens - 1 - self._prompt
        self.at[self._request, position] = self._recent.use.copy()
        return super().read(root_token, tree, context_tokens)


def test_recent_use_of_a_recording_is_the_runs() -> None:
    target = ScriptedTarget(chain(*table_model.TEXT), 4)
    drafter, source = ScriptedDrafter(table_model.GUESSES, table_model.DEPTH), Watched()
    decoder = Decoder(
        target, drafter, source, SpecFit(table_model.COST, EXPERTS), table_model.clock()
    )
    for _ in table_model.decode(decoder, ASKED):
        pass
    compared = 0
    for one in table_model.record(ASKED):
        for position, use in enumerate(recent_uses(one, (0.0, 0.8), EXPERTS)):
            if (one.request_id, position) in source.at:
                assert np.array_equal(source.at[one.request_id, position], use)
                compared += 1
    assert compared == len(source.at) > 20
