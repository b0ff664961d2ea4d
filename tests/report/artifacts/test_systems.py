"""Tables 2, 3 and 4 from rows that can be worked out in the head."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from specfit.report.artifacts.systems import (
    BELADY_COLUMN,
    BREAK_EVEN_COLUMN,
    equal_scores,
    paper_sheet,
    ratios_sheet,
    systems_sheet,
    table_2,
)
from specfit.report.paper_values import claims_of
from specfit.report.reader import ResultsReader
from specfit.storage.rows import RunRows
from specfit.storage.suite import Cell, Suite
from tests.fakes.rows import store_run
from tests.report.artifacts.members import decoding, member, texts
from tests.scripts.drawable import made

SYSTEMS = {
    m.system: m.rows
    for m in (
        member("ar", 0, decoding(1, 8, pool_nodes=0)),
        member("ar_cache", 48, decoding(1, 5, pool_nodes=0)),
        member("eagle3_cache", 48, decoding(3, 12)),
        member("specfit", 48, decoding(2, 6)),
    )
}


def test_systems_stand_side_by_side_with_the_word_for_their_clock() -> None:
    sheet = systems_sheet(SYSTEMS, "Systems")
    bounds = ["AR, resident", "EAGLE-3, resident", "SpecFit, resident"]
    assert texts(sheet, "system") == ["AR", "AR + cache", "EAGLE-3 + cache", "SpecFit", *bounds]
    speeds = ["125", "200", "250", "333", "333", "300", "500"]
    assert texts(sheet, "tokens/s (modelled)") == speeds, "2 ms a cycle are waiting for copies"
    assert texts(sheet, "hit rate, %")[-3:] == ["100", "100", "100"]
    assert texts(sheet, "cycle time, ms (modelled)")[:4] == ["8.00", "5.00", "12.0", "6.00"]
    assert texts(sheet, "score")[:4] == ["1.00", "1.00", "1.00", "1.00"]
    other = ["0 of 2; first other a, token 3"]
    assert texts(sheet, "ids as AR")[:4] == ["-", "yes", *other * 2]


def test_break_even_and_belady_stand_beside_each_system() -> None:
    """12 ms against AR + cache's 5 ms a token; Belady hits 8 of 10 and LRU 6."""
    knowing = {
        "specfit": member("specfit", 48, decoding(2, 6, hit_experts=8, transferred_experts=2)).rows
    }
    sheet = systems_sheet(SYSTEMS, "Systems", knowing)
    assert texts(sheet, BREAK_EVEN_COLUMN)[:4] == ["-", "-", "2.40", "1.20"]
    assert texts(sheet, BELADY_COLUMN)[:4] == ["-", "-", "-", "20.0"]
    assert "make reproduce SUITE=belady" in systems_sheet(SYSTEMS, "Systems").note


def test_scores_stand_beside_their_control_and_poor_ones_are_not_shown() -> None:
    def runs(score: float) -> dict[str, RunRows]:
        changed = dict(SYSTEMS)
        for system, run in SYSTEMS.items():
            requests = run.requests.assign(score=score, score_control=0.25)
            info = replace(run.info, dataset="embedded_gsm8k")
            changed[system] = replace(run, requests=requests, info=info)
        return changed

    good = systems_sheet(runs(0.9), "Systems")
    assert texts(good, "score")[0] == "0.900" and texts(good, "score_control")[0] == "0.250"
    poor = systems_sheet(runs(0.5), "Systems")
    assert texts(poor, "quality")[:4] == ["not meaningful here"] * 4
    assert not {"score", "score_control"} & set(poor.columns)


def test_ratios_are_of_specfit_over_each_other() -> None:
    sheet = ratios_sheet(SYSTEMS, "specfit", ["ar", "eagle3_cache"], "Ratios")
    assert texts(sheet, "tokens/s (modelled)") == ["2.67x", "1.33x"]
    assert texts(sheet, "committed / cycle") == ["2.00x", "0.67x"]
    assert texts(sheet, "cycle time (modelled)") == ["0.75x", "0.50x"]
    assert texts(sheet, "experts / token") == ["0.50x", "1.50x"]


def test_the_paper_stands_beside_ours_with_a_verdict() -> None:
    sheet = paper_sheet(claims_of("table_2"), SYSTEMS, "Paper")
    rows = {(row[0].text, row[2].text): (row[3].text, row[-1].text) for row in sheet.cells()}
    gain = "SpecFit: tokens/s (modelled), against EAGLE-3 + cache"
    assert rows[gain, "+21.6 %"] == ("+33.3 %", "same direction")
    loss = "SpecFit: committed / cycle, against EAGLE-3 + cache"
    assert rows[loss, "-13.1 %"] == ("-33.3 %", "as the control")
    experts = "SpecFit: experts / token, against EAGLE-3 + cache"
    assert rows[experts, "-22.1 %"] == ("+50.0 %", "other direction")
    assert rows["SpecFit: tokens/s (modelled)", "8.27"] == ("333", "not comparable")
    assert rows["AR: tokens/s (modelled)", "4.67*"] == ("125", "fitted")
    assert rows["SpecFit: tokens/s (modelled), against EAGLE-3", "1.97x"] == ("-", "not tested")


def test_equal_scores_are_checked_and_said() -> None:
    assert equal_scores(SYSTEMS).startswith("Every system scores alike on every request")
    wrong = member("specfit", 48, decoding(2, 6)).rows
    wrong.requests["score"] = [1.0, 0.0]
    assert equal_scores(SYSTEMS | {"specfit": wrong}).endswith("where ids do: SpecFit.")
    assert equal_scores({}) == "No request has a score."


def test_belady_rows_are_those_of_the_same_setting(tmp_path: Path) -> None:
    results, cells = made(tmp_path), []
    for number, changes in enumerate(({"profile_digest": "p2"}, {})):
        run_id = f"b{number}" * 6
        said = {"selector": "specfit", "cache_slots": 48, "dataset": "embedded_news"} | changes
        hits = {"hit_experts": 8 - number, "transferred_experts": 2 + number}
        store_run(results / "replays", decoding(2, 6, **hits), run_id, **said)
        cells.append(Cell(f"news/{number}/specfit", "replay", "policy=belady", run_id))
    Suite("belady", "full", (), tuple(cells)).write(results)
    table = table_2(ResultsReader(results))
    found = dict(zip(*(texts(table.sheets[""], c) for c in ("system", BELADY_COLUMN)), strict=True))
    assert found["SpecFit"] == "10.0" and found["EAGLE-3 + cache"] == "-"
    assert table.stamp.suites == ("table_2", "belady")
