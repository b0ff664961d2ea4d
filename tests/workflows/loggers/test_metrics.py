"""What a logger is told, from rows made by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from specfit.workflows.loggers.metrics import drawn_from, request_metrics
from tests.fakes.rows import part


def test_one_request_by_hand() -> None:
    """Two decode cycles that commit 4 and 2; the counters of a cycle are hand_made's own."""
    one = part("a", (1, 4, 2))
    found = request_metrics(one, "modelled")
    decode_ns = sum(cycle.cycle_ns for cycle in one.cycles[1:])
    assert found["modelled/tokens_per_s"] == pytest.approx(6 / (decode_ns / 1e9))
    assert found["modelled/prefill_s"] == one.cycles[0].cycle_ns / 1e9
    assert found["committed_per_cycle"] == 3
    assert (found["prompt_tokens"], found["output_tokens"], found["score"]) == (10, 7, 1.0)
    copies = sum(cycle.transferred_experts for cycle in one.cycles[1:])
    assert found["experts_per_token"] == pytest.approx(copies / 6)
    assert found["failed"] == 0
    assert "rouge1" not in found, "what has no value is left out"


def test_every_time_of_the_clock_carries_its_word() -> None:
    for word in ("modelled", "measured"):
        names = request_metrics(part("a"), word)
        times = {name for name in names if name.endswith(("_s", "_ns"))}
        assert times == {f"{word}/tokens_per_s", f"{word}/prefill_s", f"{word}/decode_s"} | {
            "elapsed_s"
        }


def test_a_request_without_decode_cycles_has_no_ratio() -> None:
    found = request_metrics(part("a", (1,)), "modelled")
    assert not {"modelled/tokens_per_s", "committed_per_cycle", "hit_rate"} & set(found)


def test_a_failed_request_counts_and_says_nothing_else() -> None:
    assert request_metrics(part("a", status="too long"), "modelled") == {"failed": 1}


def test_figures_and_tables_that_name_the_run_in_any_format(tmp_path: Path) -> None:
    for name, text in {
        "figures/figure_2.svg": "runs abc123",
        "figures/figure_2.png": "\x00",
        "figures/figure_3.svg": "runs def456",
        "tables/table_2.md": "abc123",
        "runs/table_2.md": "abc123",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    found = sorted(str(path.relative_to(tmp_path)) for path in drawn_from("abc123", tmp_path))
    assert found == ["figures/figure_2.png", "figures/figure_2.svg", "tables/table_2.md"]
