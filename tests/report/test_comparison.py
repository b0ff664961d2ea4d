"""Cells and sentences of a comparison, on rows that can be counted in the head."""

from __future__ import annotations

import pytest

from specfit.report.comparison import Compared, equal_ids, job_line, lines_of, sweep_table, table
from specfit.storage.rows import RunRows
from tests.fakes.rows import part, rows_of

# AR + cache: 4 ms a cycle, 1 token, 4 copies. A tree: 2 tokens, 12 ms, 15 copies.
# A selection of it: 2 tokens, 6 ms, 6 copies.
TREE = {
    "draft_ns": 2_000_000,
    "verify_ns": 10_000_000,
    "transfer_wait_ns": 8_000_000,
    "demand_experts": 30,
    "hit_experts": 15,
    "transferred_experts": 15,
}
CHOSEN = TREE | {
    "verify_ns": 4_000_000,
    "transfer_wait_ns": 3_000_000,
    "transferred_experts": 6,
    "hit_experts": 24,
}


def plain(**changes: object) -> RunRows:
    parts = [part(name, (1, 1, 1), output_ids=[1, 2, 3], **changes) for name in "ab"]
    return rows_of(parts, "b" * 12, selector="ar_cache", cache_slots=12)


def tree() -> RunRows:
    parts = [part(name, (1, 2), output_ids=[1, 2, 3], **TREE) for name in "ab"]
    return rows_of(parts, "c" * 12, selector="eagle3_cache", cache_slots=12)


def chosen(last: int = 3, score: float = 1.0, dataset: str = "embedded_gsm8k") -> RunRows:
    parts = [
        part(
            "a",
            (1, 2),
            output_ids=[1, 2, 3],
            scores={"score": score, "score_control": 0.25},
            **CHOSEN,
        ),
        part(
            "b",
            (1, 2),
            output_ids=[1, 2, last],
            scores={"score": score, "score_control": 0.25},
            **CHOSEN,
        ),
    ]
    return rows_of(parts, "a" * 12, selector="specfit", cache_slots=12, dataset=dataset)


def cells(lines: list[str], name: str) -> list[str]:
    (line,) = [line for line in lines if line.startswith(f"{name}  ")]
    return line.removeprefix(name).split()


def test_a_line_has_speed_ratio_counters_and_ids() -> None:
    run, ar = (
        chosen(),
        rows_of(
            [part(name, (1, 1, 1), output_ids=[1, 2, 3]) for name in "ab"], "d" * 12, selector="ar"
        ),
    )
    lines = table([Compared(ar), Compared(plain()), Compared(tree()), Compared(run)], run)
    assert cells(lines, "AR + cache") == ["250", "1", "1.00", "0.00", "4.00", "4.00", "2/2"]
    assert cells(lines, "EAGLE-3 + cache")[:3] == ["167", "0.67x", "[0.67,"]
    assert cells(lines, "SpecFit")[0] == "333" and cells(lines, "SpecFit")[-2:] == ["2/2", "<-"]
    bound = cells(lines, "SpecFit, resident")
    assert bound[:2] == ["667", "2.67x"], "3 of its 6 ms are waiting for copies; the tree's: 2 of 4"
    assert sum("resident" in line for line in lines) == 1, "the fastest alone"


def test_ids_that_differ_are_counted_and_borrowed_ones_are_not() -> None:
    run = chosen(last=4)
    assert equal_ids(run, plain()) == (1, 2)
    ar = rows_of(
        [part(name, (1, 1, 1), output_ids=[1, 2, 3]) for name in "ab"], "d" * 12, selector="ar"
    )
    assert cells(table([Compared(ar), Compared(run)], run), "SpecFit")[-2] == "1/2"
    borrowed = table([Compared(ar, ids_are_its_own=False), Compared(run)], run)
    assert cells(borrowed, "SpecFit")[-2] == "-"


def test_the_sentences_name_what_is_gained_and_what_is_lost() -> None:
    run = chosen()
    told = lines_of(run, [Compared(plain()), Compared(tree())], None)
    (over,) = [line for line in told if "EAGLE-3 + cache:" in line]
    assert over.startswith("SpecFit is 2.00x [2.00, 2.00] as fast as EAGLE-3 + cache")
    assert over.endswith("copies 60.0 % fewer experts per token.")
    (loss,) = [
        line
        for line in lines_of(tree(), [Compared(plain())], None)
        if line.startswith("EAGLE-3 + cache is slower than AR + cache (0.67x")
    ]
    assert loss.endswith("a cycle commits 2.00 times the tokens in 3.00 times the time.")
    (few,) = [line for line in told if line.startswith("only 2 requests")]
    assert "rough" in few


def test_a_cycle_is_split_into_its_phases() -> None:
    told = lines_of(chosen(), [Compared(plain())], None)
    (cycle,) = [line for line in told if line.startswith("a SpecFit cycle, ")]
    assert cycle.endswith("draft 2.00 | waiting for copies 3.00 | computing 1.00")


@pytest.mark.parametrize(
    ("dataset", "score", "said"),
    [
        ("embedded_gsm8k", 0.5, "quality is not meaningful here (exact match 0.50, below 0.8)"),
        (
            "embedded_gsm8k",
            0.9,
            "exact match 0.90, the target's own (n=2); against other requests'",
        ),
        ("gsm8k", 0.5, "exact match 0.50"),  # the goal is the shipped pair's
    ],
)
def test_quality_below_the_goal_is_not_spoken_of(dataset: str, score: float, said: str) -> None:
    told = lines_of(chosen(score=score, dataset=dataset), [Compared(plain())], "gsm8k_exact_match")
    (answers,) = [line for line in told if line.startswith("answers: ")]
    assert said in answers
    assert ("references 0.25" in answers) == ("not meaningful" not in answers)


def test_a_sweep_is_systems_by_slots_and_twins_are_listed() -> None:
    lines = sweep_table([chosen(), plain(), tree()])
    assert cells(lines, "SpecFit") == ["333"] and cells(lines, "tokens/s") == ["12", "slots"]
    assert [line.split("  ")[0] for line in lines[-3:]] == [
        "AR + cache",
        "EAGLE-3 + cache",
        "SpecFit",
    ]
    twins = sweep_table([plain(), plain()])
    assert sum(line.startswith("b" * 12) for line in twins) == 2
    assert job_line(plain(), True).endswith(f"250 tokens/s (modelled), run {'b' * 12}, finished")
