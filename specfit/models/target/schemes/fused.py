"""All experts of a layer in two tensors, as transformers 5 holds them in memory and saves them with
`save_original_format=False`: gate_up_proj [E, 2I, H], gate first, and down_proj [E, H, I]."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from specfit.experts.expert_format import ExpertFormat
from specfit.models.target.family import Family
from specfit.models.target.schemes.scheme import Headers, Scheme, Stored

GATE_UP, DOWN = "gate_up_proj", "down_proj"


class Fused(Scheme):
    def family(self, family: Family) -> Family:
        """transformers' own names, `mlp` whatever the family's files call it."""
        return replace(family, block="mlp")

    def expert(
        self, family: Family, format: ExpertFormat, headers: Headers, layer: int, expert: int
    ) -> Iterator[Stored]:
        prefix = f"model.layers.{layer}.{family.block}.experts."
        wide, narrow = format.hidden, format.intermediate
        entry = headers(prefix + GATE_UP)
        count = entry.shape[0] if entry is not None and entry.shape else 0
        gate_up, down = (count, 2 * narrow, wide), (count, wide, narrow)
        yield Stored(prefix + GATE_UP, gate_up, rows=(expert, 0, narrow))
        yield Stored(prefix + GATE_UP, gate_up, rows=(expert, narrow, 2 * narrow))
        yield Stored(prefix + DOWN, down, rows=(expert, 0, wide))

    def expert_names(self, family: Family, layer: int, expert: int) -> Iterator[str]:
        yield from ()
