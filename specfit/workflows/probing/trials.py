"""Short decodes on the wall clock with everything that was asked of the cache kept: a probe's eyes.

Trials take turns, one request each, there and back again, so that a machine that grows busier or
warmer does so for all of them alike.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from specfit.base.config import GpuConfig, RunConfig, SelectorConfig
from specfit.base.types import Request
from specfit.decoding.factory import build_decoder, build_selector
from specfit.decoding.live import build_runtime
from specfit.decoding.oracle_texts import is_scripted, make_script
from specfit.decoding.resolve import LiveRunSpec, find_device, resolve
from specfit.decoding.spec import answerable
from specfit.experts.copies import CpuCopyEngine
from specfit.hardware.clock import WallClock
from specfit.hardware.clock_error import Observed
from specfit.selection.cost import CostModel
from specfit.storage.request_files import Residency

WARM_UP_TOKENS = 6
TIMER = time.process_time_ns
"""On a CPU: its own seconds, equal to the wall's on an idle machine with one thread, and less
disturbed by what else a busy one does."""

Group = dict[str, list[Observed]]


def settled(
    config: RunConfig, selector: str, slots: int | str, k: int = SelectorConfig.k
) -> LiveRunSpec:
    """The config as this machine, on the wall clock, with another selector."""
    plain = GpuConfig(
        name="local",
        clock="wall",
        billed="self",
        kernel=config.gpu.kernel,
        graphs=config.gpu.graphs,
        link_gbps_cap=config.gpu.link_gbps_cap,
        copies_in_flight=config.gpu.copies_in_flight,
    )
    drafts = not selector.startswith("ar")
    chosen = SelectorConfig(selector, k if drafts else 0, adaptive_depth=selector == "specfit")
    return resolve(replace(config, gpu=plain, selector=chosen, cache_slots=slots))


def roomy(config: RunConfig) -> str:
    """`cache_slots` that hold as many experts as this device can: a CPU every one."""
    device, _ = find_device(config.device)
    return "fit" if device.type == "cuda" else "all"


def prepare(
    config: RunConfig, run: Callable[[LiveRunSpec], None], say: Callable[[str], None]
) -> None:
    """An oracle needs its script before anything is measured."""
    spec = settled(config, "eagle3_cache", roomy(config))
    if is_scripted(spec):
        make_script(spec, run, say)


@dataclass(frozen=True)
class Trial:
    """One system at one slot count; `cost` is for a selector that weighs one."""

    spec: LiveRunSpec
    cost: CostModel | None = None


class Bench:
    """What trials have been seen to do so far, and the residency each of them goes on with.

    A turn is two rounds, the second in the other order and from the same residency: the same cycles
    again.
    """

    def __init__(self, trials: Mapping[str, Trial]) -> None:
        self.trials = dict(trials)
        self.seen: Group = {name: [] for name in trials}
        self._requests = {name: answerable(trial.spec.workload) for name, trial in trials.items()}
        self.elapsed_ns = self.cpu_ns = 0  # of every decode
        self._before: dict[str, Residency] = {}  # of the turn
        self._after: dict[str, Residency] = {}

    @property
    def requests(self) -> int:
        """That every trial can be asked."""
        return min(len(requests) for requests in self._requests.values())

    def there(self, index: int) -> None:
        """Every trial decodes request `index`, after those before it."""
        self._before = dict(self._after)
        for name, requests in self._requests.items():
            self.seen[name] += self._decode(name, requests[index])

    def back(self, index: int) -> None:
        """Once more, last trial first."""
        for name, requests in reversed(self._requests.items()):
            self.seen[name] += self._decode(name, requests[index])

    def _decode(self, name: str, request: Request) -> list[Observed]:
        """After a few untimed tokens, which leave the residency as it was."""
        spec, cost = self.trials[name].spec, self.trials[name].cost
        machine = build_runtime(spec, spec.slots, spec.kind.drafts)
        clock = machine.clock()
        if isinstance(machine.engine.copies, CpuCopyEngine):
            machine.engine.copies.timer = TIMER
            clock = WallClock(_nothing, machine.target.expert_bytes, TIMER)
        decoder = build_decoder(spec, machine, build_selector(spec, cost), clock)
        before = self._before.get(name) or machine.target.residency()
        for _ in decoder.decode(replace(request, max_new_tokens=WARM_UP_TOKENS)):
            pass
        machine.target.restore(dict(before))
        begun, cpu_begun = time.monotonic_ns(), TIMER()
        seen = [Observed(cycle.record, cycle.traces) for cycle in decoder.decode(request)]
        self.elapsed_ns += time.monotonic_ns() - begun
        self.cpu_ns += TIMER() - cpu_begun
        self._after[name] = machine.target.residency()
        return seen


def _nothing() -> None:
    """A CPU has done what it was asked when the call returns."""
