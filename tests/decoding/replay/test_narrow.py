"""Narrowed pools against pools cut by hand, and decoding over them."""

from __future__ import annotations

import numpy as np
import pytest

from specfit.base.types import ROOT, Selection
from specfit.decoding.cycle import Drafted
from specfit.decoding.decoder import Decoder
from specfit.decoding.replay.narrow import NarrowDrafter, narrowed, unseen_levels
from specfit.decoding.replay.parts import RecordedRoutes, RecordedTarget
from specfit.decoding.replay.playback import Playback
from specfit.selection.forced_trees import most_probable
from specfit.storage.recording.requests import RecordedRequest
from tests.fakes import table_model
from tests.fakes.table_model import EXPERT_BYTES, EXPERTS, LAYERS

ASKED = table_model.requests(0, 5, 60)


@pytest.fixture(scope="module")
def recorded() -> list[RecordedRequest]:
    return table_model.record(ASKED)


@pytest.mark.parametrize("width", [1, 2, 3, 5, 99])
def test_the_most_probable_nodes_are_kept(recorded: list[RecordedRequest], width: int) -> None:
    for whole in recorded:
        assert whole.pools is not None
        cut = narrowed(whole, width)
        assert cut.pools is not None and len(cut.pools) == len(whole.pools)
        for position in range(len(whole.pools)):
            before, after = whole.pools.tree(position), cut.pools.tree(position)
            kept = most_probable(before, width)
            at = list(kept)
            assert after.tokens.tolist() == before.tokens[at].tolist()
            assert after.depths.tolist() == before.depths[at].tolist()
            named = [ROOT if p == ROOT else kept.index(p) for p in before.parents[at].tolist()]
            assert after.parents.tolist() == named
            rows = [0, *(1 + node for node in kept)]
            assert np.array_equal(cut.pools.atlas(position), whole.pools.atlas(position)[rows])
            nodes = whole.pools.nodes(position)
            marks = cut.pools.accepted[cut.pools.nodes(position)]
            assert np.array_equal(marks, whole.pools.accepted[nodes][at])
            said = whole.next_tokens[whole.pools.rows(position)][rows]
            assert np.array_equal(cut.next_tokens[cut.pools.rows(position)], said)


def decoded(recorded: list[RecordedRequest], name: str, width: int):  # type: ignore[no-untyped-def]
    from specfit.experts.cache import ExpertCache

    selector = table_model.selectors()[name]
    playback = Playback([narrowed(one, width) for one in recorded])
    target = RecordedTarget(playback, ExpertCache(LAYERS, EXPERTS, 3), EXPERT_BYTES, None)
    routes = RecordedRoutes(playback) if selector.reads_routes else None
    drafter = NarrowDrafter(playback, table_model.DEPTH)
    decoder = Decoder(target, drafter, routes, selector, table_model.clock())
    return list(table_model.decode(decoder, ASKED))


@pytest.mark.parametrize("name", ["eagle3_cache", "specfit", "specfit, full depth"])
def test_a_width_that_drops_nothing_changes_nothing(
    recorded: list[RecordedRequest], name: str
) -> None:
    plain = table_model.replayed(recorded, table_model.selectors()[name], 3, None, None)
    expected = [cycle.record for cycle in table_model.decode(plain, ASKED)]
    assert [cycle.record for cycle in decoded(recorded, name, 99)] == expected


def test_levels_that_came_to_nothing_are_counted(recorded: list[RecordedRequest]) -> None:
    """Width 1 keeps one child of the root. Whoever takes it would have drafted another level."""
    cycles = decoded(recorded, "specfit", 1)
    drafted = [cycle.drafted for cycle in cycles if cycle.record.cycle > 0]
    assert {len(one.tree) for one in drafted} == {1}
    taken = [len(one.selection.nodes) for one in drafted]
    assert any(taken)
    assert [unseen_levels(one, table_model.DEPTH, adaptive=True) for one in drafted] == taken
    assert {unseen_levels(one, table_model.DEPTH, adaptive=False) for one in drafted} == {2}
    assert {unseen_levels(one, 1, adaptive=True) for one in drafted} == {0}
    stopped = Drafted(drafted[0].tree, None, Selection(()))
    assert unseen_levels(stopped, table_model.DEPTH, adaptive=True) == 0, (
        "nothing more was asked for"
    )


def test_output_is_what_it_was(recorded: list[RecordedRequest]) -> None:
    tokens = [token for cycle in decoded(recorded, "specfit", 2) for token in cycle.tokens]
    outputs = [one.output_ids.tolist() for one in recorded if one.output_ids is not None]
    assert tokens == [token for ids in outputs for token in ids]
