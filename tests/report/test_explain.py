"""Two systems whose factors can be worked out in the head."""

from __future__ import annotations

from pathlib import Path

import pytest

from specfit.base.types import SpecfitError
from specfit.explain import main
from specfit.report.explain import explain
from specfit.report.explained import against_cache, screen, sentence, short
from specfit.storage.rows import load_run
from tests.fakes.rows import part, rows_of, store_run

# AR + cache: 4 ms a cycle (1 draft, 2 waiting, 1 the rest), 1 token, 10 experts, 4 of them copied.
AR = {"selector": "ar_cache", "cache_slots": 12}
TREE = {"selector": "eagle3_cache", "cache_slots": 12}
# A tree: 2 tokens a cycle, 12 ms (2 draft, 8 waiting, 2 the rest), 30 experts, 15 of them copied.
GROWN = {
    "draft_ns": 2_000_000,
    "verify_ns": 10_000_000,
    "transfer_wait_ns": 8_000_000,
    "demand_experts": 30,
    "hit_experts": 15,
    "transferred_experts": 15,
}


def base(**changes: object) -> object:
    return rows_of([part("a", (1, 1, 1)), part("b", (1, 1, 1))], "b" * 12, **(AR | changes))


def tree(**changes: object) -> object:
    parts = [part("a", (1, 2, 2), **GROWN), part("b", (1, 2, 2), **GROWN)]
    return rows_of(parts, "a" * 12, **(TREE | changes))


def test_the_speedup_is_the_committed_ratio_over_the_cycle_ratio() -> None:
    e = explain(tree(), base())
    assert (e.committed_ratio, e.cycle_ratio) == (2.0, 3.0)
    assert e.speedup.value == pytest.approx(2 / 3)
    assert e.break_even_ms == 8.0  # twice the tokens may take twice the 4 ms


def test_the_phases_add_up_to_the_cycle_and_to_the_difference() -> None:
    e = explain(tree(), base())
    for side in (e.of, e.base):
        assert sum(side.phases_ms.values()) == pytest.approx(side.cycle_ms)
    added = e.added_ms()
    assert added == {
        "draft": 1.0,
        "route": 0.0,
        "select": 0.0,
        "wait": 6.0,
        "compute": 1.0,
        "commit": 0.0,
    }
    assert sum(added.values()) == pytest.approx(e.of.cycle_ms - e.base.cycle_ms)


def test_copies_are_union_growth_times_the_missed_share() -> None:
    e = explain(tree(), base())
    assert (e.union_growth, e.of.hit_rate, e.base.hit_rate) == (3.0, 0.5, 0.6)
    assert e.miss_ratio == pytest.approx(0.5 / 0.4)
    assert e.union_growth * e.miss_ratio == pytest.approx(15 / 4)


def test_the_sentence_names_the_cause() -> None:
    said = sentence(explain(tree(), base()))
    assert said.startswith("EAGLE-3 + cache is slower than AR + cache (0.67 times its speed)")
    assert "commits 2.00 times the tokens and takes 3.00 times as long" in said
    assert "75 % of the 8.00 ms (modelled) added per cycle is waiting for copies" in said
    assert "demand 3.00 times the experts, and 50 % of them hit, not 60 %" in said


def test_a_faster_run_is_explained_by_what_it_saved() -> None:
    said = sentence(explain(base(), tree()))
    assert said.startswith("AR + cache is 1.50 times as fast as EAGLE-3 + cache")
    assert "75 % of the 8.00 ms (modelled) saved per cycle is waiting for copies" in said


def test_another_phase_can_be_the_cause() -> None:
    slow = part("a", (1, 1, 1), draft_ns=9_000_000)
    said = sentence(explain(rows_of([slow], **TREE), rows_of([part("a", (1, 1, 1))], **AR)))
    assert "100 % of the 8.00 ms (modelled) added per cycle is drafting." in said


def test_runs_that_differ_by_chance_are_not_ranked() -> None:
    """One request is faster, one slower: the interval holds 1."""
    ours = rows_of([part("a", (1, 4)), part("b", (1, 1))], "a" * 12, **TREE)
    theirs = rows_of([part("a", (1, 1)), part("b", (1, 3))], "b" * 12, **AR)
    assert "cannot be told apart here (1.25 times the speed, 95 % 0.33-4.00, n=2)" in sentence(
        explain(ours, theirs)
    )


def test_equal_runs_are_called_equal() -> None:
    assert sentence(explain(base(selector="ar"), base())).startswith(
        "AR and AR + cache are equally"
    )


def test_two_runs_of_one_system_are_told_apart_by_what_differs() -> None:
    e = explain(base(cache_slots=48), base())
    assert (e.of.name, e.base.name) == ("AR + cache at 48 slots", "AR + cache at 12 slots")


def test_every_time_carries_its_word() -> None:
    for clock, word in (("modelled", "modelled"), ("wall", "measured")):
        e = explain(tree(clock=clock), base(clock=clock))
        assert word in short(e) and f"cycle, ms ({word})" in screen(e)
        assert f"ms ({word})" in sentence(e)


def test_what_cannot_be_compared_is_refused() -> None:
    with pytest.raises(SpecfitError, match="only runs of one clock"):
        explain(tree(clock="wall"), base())
    with pytest.raises(SpecfitError, match="different requests"):
        explain(tree(requests_digest="r2"), base())
    nothing = rows_of([part("a", (1,)), part("b", (1,))], "a" * 12, **TREE)
    with pytest.raises(SpecfitError, match="decoded nothing"):
        explain(nothing, base())


# -- on disk ---------------------------------------------------------------------------------------


def stored(results: Path) -> None:
    store_run(results / "runs", [part("a", (1, 1, 1))], "b" * 12, **AR)
    store_run(results / "runs", [part("a", (1, 2, 2), **GROWN)], "a" * 12, **TREE)


def test_the_command_takes_the_first_letters_of_an_id(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stored(tmp_path)
    assert main(["aaa", "b", "--results", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert said.startswith("aaaaaaaaaaaa against bbbbbbbbbbbb: embedded_gsm8k")
    assert len(said.splitlines()) <= 24, "one screen"


def test_the_command_says_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stored(tmp_path)
    store_run(tmp_path / "runs", [part("a")], "abc" * 4, **TREE)
    for name, why in (
        ("a", "begins 2 run ids"),
        ("zz", "no finished run"),
        ("", "no finished run"),
    ):
        assert main([name, "b", "--results", str(tmp_path)]) == 2
        assert why in capsys.readouterr().err


def test_a_run_is_explained_against_ar_with_the_same_cache(tmp_path: Path) -> None:
    stored(tmp_path)
    runs = tmp_path / "runs"
    said = against_cache(runs, load_run(runs / ("a" * 12)))
    assert said is not None and said.startswith("against AR + cache: 0.67 x = committed 2.00 x")
    assert against_cache(runs, load_run(runs / ("b" * 12))) is None
    larger = rows_of([part("a", (1, 2))], "c" * 12, selector="eagle3_cache", cache_slots=48)
    assert against_cache(runs, larger) is None, "another cache size is no twin"
