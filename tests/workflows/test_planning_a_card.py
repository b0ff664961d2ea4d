"""A card and memory that are planned with, a display, and whose numbers a forecast has."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from specfit.base.config import UNHASHED, RunConfig
from specfit.base.types import SpecfitError
from specfit.decoding.resolve import other_format, resolve
from specfit.decoding.spec import profile_advice
from specfit.models.target.loading import Checkpoint
from specfit.workflows.advise import refuse_too_little_memory, rests_on
from specfit.workflows.doctor import Findings, planned_host_lines
from specfit.workflows.hydra_cli import config_of

EXPERTS = 58_000_000_000


@pytest.mark.parametrize(
    ("planned", "said", "problems"),
    [(96, "96 GB planned with", 0), (64, "tight, 4.9", 0), (32, "TOO LITTLE", 1)],
)
def test_planned_memory_holds_the_experts_or_is_a_problem(
    planned: float, said: str, problems: int
) -> None:
    against = Findings()
    (line,) = planned_host_lines(EXPERTS, planned, against)
    assert said in line and len(against.problems) == problems
    assert all("59.1 GB" in problem and "more memory" in problem for problem in against.problems)


def config(*words: str) -> RunConfig:
    return config_of(["gpu=rtx4090", "cache_slots=fit", *words])


def test_a_display_takes_slots_and_the_key_itself_is_of_no_id() -> None:
    whole, beside = (resolve(config(*words)).slots for words in ((), ("gpu.display_gb=1",)))
    assert whole == 46 and beside == 44  # 0.453 GB a slot, 0.12 GB to spare
    assert {"gpu.display_gb", "gpu.host_memory_gb", "compare", "show"} <= UNHASHED
    for words in ("gpu.host_memory_gb=0", "gpu.display_gb=-1"):
        with pytest.raises(SpecfitError, match="must be"):
            config(words)


def test_a_profiles_advice_ends_once_it_is_followed() -> None:
    (told,) = profile_advice(config().gpu)
    assert told.startswith("profile rtx4090: ") and "set gpu.link_gbps=25" in told
    assert profile_advice(config("gpu.fixed_ms=50").gpu) == (told,)
    assert profile_advice(config("gpu.link_gbps=25").gpu) == ()


def test_a_forecast_says_whose_acceptance_it_has() -> None:
    lines = rests_on(resolve(config("gpu.host_memory_gb=64")))
    assert "packaged 14 M model" in lines[0] and "embedded_gsm8k" in lines[0]
    assert "times alone stand for qwen3-30b-a3b" in lines[1] and "no GPU has confirmed" in lines[1]
    assert lines[2] == "host memory: the 58.0 GB of experts fit in 64 GB"
    refuse_too_little_memory(config("gpu.host_memory_gb=64"))
    with pytest.raises(SpecfitError, match=r"need 59\.1 GB of host memory with room beside them"):
        refuse_too_little_memory(config("gpu.host_memory_gb=32"))
    assert len(rests_on(resolve(config_of(["gpu.billed=self"])))) == 1


def test_advice_takes_the_bytes_of_a_format() -> None:
    for format, memory_gb in (("fp8", 32), ("int4", 24)):
        billed = f"gpu.billed=qwen3-30b-a3b-{format}"
        refuse_too_little_memory(config(billed, f"gpu.host_memory_gb={memory_gb}"))
        with pytest.raises(SpecfitError, match="of host memory with room beside them"):
            refuse_too_little_memory(config(billed, f"gpu.host_memory_gb={memory_gb // 2}"))
    lines = rests_on(resolve(config("gpu.billed=qwen3-30b-a3b-fp8", "gpu.host_memory_gb=32")))
    assert lines[2] == "host memory: the 29.0 GB of experts fit in 32 GB"


def test_quantised_experts_that_are_billed_in_bf16_are_said() -> None:
    fp8 = cast(Checkpoint, SimpleNamespace(scheme=SimpleNamespace(method="fp8")))
    (told,) = other_format("qwen3-30b-a3b", fp8)
    assert "stored in fp8" in told and "in bf16; gpu.billed=qwen3-30b-a3b-fp8 or" in told
    for billed in ("self", "qwen3-30b-a3b-fp8", "gpt-oss-20b"):
        assert other_format(billed, fp8) == ()
    plain = cast(Checkpoint, SimpleNamespace(scheme=SimpleNamespace(method="none")))
    assert other_format("qwen3-30b-a3b", plain) == ()
