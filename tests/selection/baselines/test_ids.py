"""On a random target in the real formats, every rival rule says what `generate` says."""

from __future__ import annotations

import pytest

from specfit.decoding.decoder import Decoder
from specfit.models.routes.atlas import AtlasRoutes
from tests.doors.test_equality import must_equal, said
from tests.fakes.tiny_model import EXPERTS, Pair
from tests.selection.baselines.making import RIVALS, make

INDICES, NEW_TOKENS = (0, 2), 14


@pytest.mark.parametrize("name", RIVALS)
def test_ids_are_those_of_generate(pair: Pair, name: str) -> None:
    selector, target = make(name, EXPERTS), pair.target(5)
    routes = AtlasRoutes(target) if selector.reads_routes else None
    drafter = pair.oracle(INDICES, NEW_TOKENS + 8)
    decoder = Decoder(target, drafter, routes, selector, pair.clock())
    accepted = 0
    for index in INDICES:
        ids, drafted = said(decoder, pair.request(index, NEW_TOKENS))
        must_equal(ids, pair.greedy(index, NEW_TOKENS), pair.plain, pair.prompts[index])
        accepted += drafted
    assert accepted > 4 or name == "cascade", "the test needs paths that are accepted"
