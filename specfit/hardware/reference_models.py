"""What published models need of a device, and a forward billed as one: `gpu.billed=<name>`."""

from __future__ import annotations

from specfit.base.published import PUBLISHED, PublishedShape
from specfit.base.types import SpecfitError
from specfit.hardware.memory import DeviceNeeds
from specfit.hardware.profile import Billing, Profile


def _needs(shape: PublishedShape) -> DeviceNeeds:
    """In bfloat16, but for experts that are stored otherwise."""
    attention = 2 * shape.hidden * shape.head_dim * (shape.heads + shape.kv_heads)
    dense = shape.layers * (attention + shape.experts * shape.hidden)
    dense += 2 * shape.vocabulary * shape.hidden
    return DeviceNeeds(
        layers=shape.layers,
        experts=shape.experts,
        expert_bytes=shape.expert_bytes(),
        dense_bytes=2 * dense,
        drafter_bytes=2 * shape.draft_head_parameters,
        kv_bytes_per_token=2 * shape.layers * 2 * shape.kv_heads * shape.head_dim,
        workspace_bytes=500_000_000,
    )


BILLED_MODELS = {name: _needs(shape) for name, shape in PUBLISHED.items()}


def billing(name: str, own_layers: int, own_expert_bytes: int) -> Billing:
    """Raises SpecfitError for an unknown model or a layer count that does not divide."""
    if name == "self":
        return Billing.own(own_layers, own_expert_bytes)
    if name not in BILLED_MODELS:
        raise SpecfitError(f"gpu.billed is {name!r}; use self or {', '.join(BILLED_MODELS)}")
    billed = BILLED_MODELS[name]
    return Billing(name, billed.layers, billed.expert_bytes, own_layers, own_expert_bytes)


def fits(
    profile: Profile, billed: str, slots: int, context: int, ahead_blocks: int = 0
) -> bool | None:
    """Whether the setting would fit the profile's card; None where either size is unknown.

    `ahead_blocks`: of the billed model, for experts that come before they are demanded.
    """
    if profile.memory_bytes is None or billed not in BILLED_MODELS:
        return None
    staging_blocks = profile.copies_in_flight + 1 + ahead_blocks
    needed = BILLED_MODELS[billed].device_bytes(slots, staging_blocks, context)
    return needed <= profile.memory_bytes
