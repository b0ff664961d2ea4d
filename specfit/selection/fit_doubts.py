"""Signs that a fitted cost model says something else than what it is read as."""

from __future__ import annotations

from collections.abc import Sequence

from specfit.selection.cost import CostModel

FAR = 2.0
"""Factor by which beta may differ from what an expert of the union costs on average."""
SLACK = 0.02
"""Share of b_0 by which b_K may lie below it: noise of a measured clock."""


def doubts(
    cost: CostModel,
    demands: Sequence[int] = (),
    missing: Sequence[int | None] = (),
    miss_ns: float | None = None,
) -> list[str]:
    """Sentences without a full stop; none of a fit that can be read as nodes and misses.

    `demands` and `missing` are those of the probes; `miss_ns` is the time of a copy, where the
    clock knows one and nothing hides it. Without any of them beta is not judged.
    """
    found = []
    first, last = cost.intercepts_ns[0] / 1e6, cost.intercepts_ns[-1] / 1e6
    if last < (1 - SLACK) * first:
        found.append(
            f"b_k falls from {first:.1f} ms at no node to {last:.1f} ms at {cost.k}: beta has "
            "taken in what nodes cost, and times at another union are not to be trusted"
        )
    known = [absent for absent in missing if absent is not None]
    if miss_ns is None or len(known) != len(demands) or not sum(demands):
        return found
    share = sum(known) / sum(demands)
    expected, beta = share * miss_ns, cost.expert_ns
    if not expected / FAR <= beta <= FAR * expected:
        found.append(
            f"beta is {beta / 1e3:.0f} us an expert, where the probes missed {100 * share:.0f} % "
            f"of their experts and a miss costs {miss_ns / 1e3:.0f} us ({expected / 1e3:.0f} us an "
            "expert): the union does not say how many are missed"
        )
    return found
