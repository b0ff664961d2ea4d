"""What token-by-token decoding of recorded requests is billed: what recording is compared with."""

from __future__ import annotations

from collections.abc import Sequence

from specfit.base.types import RequestError
from specfit.decoding.decoder import Decoder
from specfit.decoding.replay.parts import RecordedTarget
from specfit.decoding.replay.playback import Playback
from specfit.decoding.replay.spec import RecordedWorkload
from specfit.decoding.spec import RunSpec
from specfit.experts.cache import ExpertCache
from specfit.hardware.clock import ModelledClock
from specfit.selection.selectors import NoDraft
from specfit.storage.recording.requests import RecordedRequest
from specfit.storage.recording.stats import Plain


def plain_decoding(
    spec: RunSpec, requests: Sequence[RecordedRequest], stop_ids: Sequence[int], expert_bytes: int
) -> Plain:
    """`ar_cache` on the run's own slots and profile, prefill included."""
    shape, blocks = spec.geometry, spec.profile.copies_in_flight + 1
    cache = ExpertCache(shape.layers, shape.experts, spec.slots, staging_blocks=blocks)
    target = RecordedTarget(Playback(requests), cache, expert_bytes, spec.config.prefill_chunk)
    clock = ModelledClock(spec.profile, spec.billing)
    decoder = Decoder(target, None, None, NoDraft("ar_cache"), clock)
    workload = RecordedWorkload(requests, frozenset(stop_ids))
    total_ns = billed_bytes = 0
    for index in range(len(requests)):
        try:
            request = workload.request(index)
        except RequestError:
            continue
        for cycle in decoder.decode(request):
            total_ns += cycle.record.cycle_ns
            billed_bytes += cycle.record.billed_bytes
    return Plain(spec.slots, total_ns, billed_bytes)
