"""The recent use of experts at every position of a recorded request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from specfit.models.routes.recent_use import RecentUse, Use
from specfit.storage.recording.requests import RecordedRequest


def recent_uses(one: RecordedRequest, decays: Sequence[float], experts: int) -> Iterator[Use]:
    """Before the position's root is processed. The same array every time: copy what is kept."""
    assert one.prompt_routes is not None, "a request that failed has no positions"
    recent = RecentUse(decays, one.prompt_routes.shape[1], experts)
    recent.add(one.prompt_routes)
    for position in range(one.positions):
        yield recent.use
        assert one.pools is not None
        recent.add(one.pools.atlas(position)[:1])
