"""Models a forward can be billed as, in numbers: `gpu.billed=<name>`."""

from __future__ import annotations

from specfit.base.types import SpecfitError
from specfit.hardware.memory import DeviceNeeds
from specfit.hardware.profile import Billing, Profile


def _qwen3_30b_a3b() -> DeviceNeeds:
    layers, hidden, heads, kv_heads, head_dim, experts, vocabulary = (
        48,
        2048,
        32,
        4,
        128,
        128,
        151936,
    )
    attention = 2 * hidden * heads * head_dim + 2 * hidden * kv_heads * head_dim
    dense = layers * (attention + experts * hidden) + 2 * vocabulary * hidden
    return DeviceNeeds(
        layers=layers,
        experts=experts,
        expert_bytes=2 * 3 * hidden * 768,
        dense_bytes=2 * dense,
        drafter_bytes=2 * 522_152_832,  # the RedHatAI head, its own embedding included
        kv_bytes_per_token=2 * layers * 2 * kv_heads * head_dim,
        workspace_bytes=500_000_000,
    )


BILLED_MODELS = {"qwen3-30b-a3b": _qwen3_30b_a3b()}


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
