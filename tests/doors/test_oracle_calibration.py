"""An oracle's chances hold under a rule that prices experts: predicted as real, by two errors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from specfit.storage.rows import load_run
from tests.fakes.tiny_model import Command

pytest.importorskip("torch")


@pytest.mark.slow
def test_what_specfit_selects_is_kept_as_often_as_predicted(
    command: Command, tmp_path: Path
) -> None:
    """On the embedded pair with exact routes: real weights, so that experts tell tokens apart."""
    settings = ("selector=specfit", "drafter=oracle", "cache_slots=12", "limit=8")
    ended = command("dataset=embedded_gsm8k", f"results_dir={tmp_path}", *settings)
    assert ended.code == 0
    cycles = load_run(Path(ended.out.splitlines()[-1].removeprefix("rows: "))).cycles
    whole = cycles[(cycles["verified_nodes"] > 0) & cycles["stop_reason"].isna()]
    predicted = whole["predicted_reward"] / 2**20 - 1  # the bonus is certain
    differs = whole["accepted_tokens"] - predicted
    error = differs.std() / np.sqrt(len(differs))
    assert len(differs) > 200 and abs(differs.mean()) <= 2 * error
