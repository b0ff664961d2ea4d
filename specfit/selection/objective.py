"""The price of time that replaces the ratio (app. A.1): argmax R(S) - lambda T(S)."""

from __future__ import annotations

import math

from specfit.base.types import PROBABILITY_ONE, SpecfitError

_PER_NS = PROBABILITY_ONE / 1e9
"""One committed token per second, in reward units (2**-20 tokens) per nanosecond."""


class LambdaRule:
    """lambda in committed tokens per second: a given value, or the run's own throughput so far.

    The online value is total committed / total decode time, the ratio whose fixed point is
    lambda*. Before the first decode cycle there is none, and the ratio rule decides: it is the
    lambda rule at the cycle's own best ratio. Totals run over requests; a run that goes on after
    being killed gives them back (`committed`, `elapsed_ns`), since they decide what comes next.
    """

    def __init__(
        self, tokens_per_s: float | None = None, committed: int = 0, elapsed_ns: int = 0
    ) -> None:
        if tokens_per_s is not None and not (math.isfinite(tokens_per_s) and tokens_per_s >= 0):
            raise SpecfitError(
                f"lambda is {tokens_per_s} tokens per second; give a number of at least 0, or none "
                "to follow the run's own throughput"
            )
        self.tokens_per_s = tokens_per_s
        self.committed = committed
        self.elapsed_ns = elapsed_ns

    def update(self, committed: int, cycle_ns: int) -> None:
        """A decode cycle ended; prefill is no decode cycle."""
        self.committed += committed
        self.elapsed_ns += cycle_ns

    def price(self) -> float | None:
        """What one nanosecond costs in units of 2**-20 tokens; None: no cycle has been timed."""
        if self.tokens_per_s is not None:
            return self.tokens_per_s * _PER_NS
        if self.elapsed_ns == 0:
            return None
        return self.committed * PROBABILITY_ONE / self.elapsed_ns
