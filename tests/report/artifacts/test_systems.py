"""Tables 2, 3 and 4 from rows that can be worked out in the head."""

from __future__ import annotations

from specfit.report.artifacts.systems import (
    equal_scores,
    paper_sheet,
    ratios_sheet,
    systems_sheet,
)
from specfit.report.paper_values import claims_of
from tests.report.artifacts.members import decoding, member, texts

SYSTEMS = {
    m.system: m.rows
    for m in (
        member("ar", 0, decoding(1, 8)),
        member("eagle3_cache", 48, decoding(3, 12)),
        member("specfit", 48, decoding(2, 6)),
    )
}


def test_systems_stand_side_by_side_with_the_word_for_their_clock() -> None:
    sheet = systems_sheet(SYSTEMS, "Systems")
    assert texts(sheet, "system") == ["AR", "EAGLE-3 + cache", "SpecFit"]
    assert texts(sheet, "tokens/s (modelled)") == ["125", "250", "333"]
    assert texts(sheet, "cycle time, ms (modelled)") == ["8.00", "12.0", "6.00"]
    assert texts(sheet, "score") == ["1.00", "1.00", "1.00"]
    assert texts(sheet, "ids as AR") == ["-", *["0 of 2; first other a, token 3"] * 2]


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
    assert rows[loss, "-13.1 %"] == ("-33.3 %", "same direction")
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
