"""What a recorder refuses before anything is loaded; what it records is in test_record.py."""

from __future__ import annotations

import pytest

from specfit.base.config import from_hydra
from specfit.base.types import SpecfitError
from specfit.workflows.hydra_cli import compose
from specfit.workflows.recording.recorder import refuse_made_up


@pytest.mark.parametrize("routing", ["markov", "weights"])
def test_what_is_made_up_is_not_recorded(routing: str) -> None:
    dummy = from_hydra(compose(["model=qwen3-30b-a3b-dummy", f"model.routing={routing}"]))
    named = "model.routing=markov" if routing == "markov" else "drafter=oracle"
    with pytest.raises(SpecfitError, match=f"{named} makes that up"):
        refuse_made_up(dummy)


def test_a_model_with_a_head_is_recorded() -> None:
    refuse_made_up(from_hydra(compose([])))
