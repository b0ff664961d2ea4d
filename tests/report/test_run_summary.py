from __future__ import annotations

from specfit.report.quantities import BILLED_EXPERT_BYTES
from specfit.report.run_summary import Line, closing_table, number, render
from specfit.storage.tables import MachineState, RequestFlags
from tests.fakes.rows import EXPERT_BYTES, part, rows_of

OURS = rows_of([part("a", (1, 4, 4)), part("b", (1, 2))], billed="qwen3-30b-a3b")
AR = rows_of([part("a", (1, 1, 1)), part("b", (1, 1))], "b" * 12, selector="ar", cache_slots=0)


def shown(lines: list[Line]) -> dict[str, str]:
    return {line.label: line.shown for line in lines}


def test_closing_table_says_what_was_asked_for() -> None:
    said = shown(closing_table(OURS))
    assert said["decode speed"] == "833 tokens/s (modelled)"
    assert said["committed per cycle"] == "3.33 tokens"
    assert said["verified per cycle"] == "2.33 nodes"
    billed = 6 * EXPERT_BYTES / BILLED_EXPERT_BYTES["qwen3-30b-a3b"]  # of the billed model's
    decode, whole = number(1.2 * billed), number(5 / 3 * billed)
    told = f"{decode} copies ({whole} with prefill, billed as qwen3-30b-a3b)"
    assert said["experts per token"] == told
    assert said["hit rate"] == "60.0 % (decode)"
    assert said["verify per cycle"].startswith("3.00 ms (modelled, 75.0 % of decode, 2.00 ms")
    assert said["copied"].endswith("(billed as qwen3-30b-a3b, prefill included)")
    assert said["timed"] == "0.0200 s (modelled, prefill and decode)"
    assert said["decoding took"] == "0.0400 s (50.0 % of it on the atlas, off the clock)"
    assert said["requests"] == "2"
    assert said["clock, profile, device"] == "modelled, paper_main, a processor"
    assert "speed-up over ar" not in said


def test_every_time_of_the_clock_carries_its_word() -> None:
    for clock, word in (("modelled", "modelled"), ("wall", "measured")):
        run = rows_of([part("a")], clock=clock)
        timed = {"decode speed", "timed"} | {f"{p} per cycle" for p in ("draft", "verify")}
        said = shown(closing_table(run, run))
        assert all(word in said[label] for label in timed | {"speed-up over ar"})


def test_an_ar_run_adds_the_speedup_and_the_id_check() -> None:
    said = shown(closing_table(OURS, AR))
    assert said["speed-up over ar"].startswith("3.33 x (modelled, 95 % 2.00-4.00, n=2")
    assert said["ids equal to ar"] == "no: first at request a, token 3"


ROUGE = {"score": 0.25, "rouge1": 0.5, "rouge2": 0.125, "rougel": 0.25, "rougelsum": 0.375}


def test_every_measure_is_shown_and_compared_with_ar() -> None:
    run = rows_of([part("a", scores=ROUGE), part("b", scores=ROUGE | {"score": 0.75})])
    said = shown(closing_table(run, run))
    assert said["mean score"] == (
        "0.500 (rouge1 0.500, rouge2 0.125, rougel 0.250, rougelsum 0.375)"
    )
    assert said["scores equal to ar"] == "yes, 2 requests"
    other = rows_of([part("a", scores=ROUGE), part("b", scores=ROUGE)])
    assert shown(closing_table(run, other))["scores equal to ar"] == "no: first at request b"
    assert shown(closing_table(OURS))["mean score"] == "1.00"


def test_without_a_scorer_nothing_is_said_of_scores() -> None:
    run = rows_of([part("a", scores={"score": None})])
    assert not {"mean score", "scores equal to ar"} & set(shown(closing_table(run, run)))


def test_failed_requests_are_counted() -> None:
    run = rows_of([part("a"), part("b", status="too long")])
    assert shown(closing_table(run))["requests"] == "1 (1 failed: too long)"
    assert shown(closing_table(run, run))["speed-up over ar"].endswith("1 failed)")


def test_a_run_whose_requests_all_failed_has_dashes() -> None:
    said = shown(closing_table(rows_of([part("a", status="too long")])))
    assert (
        said["decode speed"] == "- tokens/s (modelled)"
        and said["requests"] == "0 (1 failed: too long)"
    )


def test_marks_say_what_a_reader_must_know() -> None:
    flags = RequestFlags(fits=False, routing="router", drafter_forced=True, link_gbps_cap=12.0)
    states = [MachineState(pcie_generation=g, throttle_reasons=0) for g in (4, 3)]
    parts = [part(n, flags=flags, machine=m) for n, m in zip("ab", states, strict=True)]
    marks = [line.value for line in closing_table(rows_of(parts)) if line.label == "mark"]
    assert marks == [
        "this setting would not fit the profile's memory; cache_slots=fit takes what does",
        "committed ids are a script's (drafter.force): equal ids say nothing",
        "link capped at 12.0 GB/s",
        "the machine's state moved during the run: pcie_generation",
    ]
    assert "mark" not in shown(closing_table(OURS))


def test_routes_from_a_recording_are_counted() -> None:
    asked = [RequestFlags(route_fallbacks=n) for n in (0, 1)]
    run = rows_of([part(name, flags=f) for name, f in zip("ab", asked, strict=True)])
    cycles = int((run.cycles["cycle"] > 0).sum())
    (line,) = [one for one in closing_table(run) if one.label == "recorded routes"]
    assert line.shown == f"{cycles - 1} of {cycles} cycles (1 asked the target)"
    assert "recorded routes" not in shown(closing_table(OURS))


def test_numbers_have_three_digits_and_counts_all_of_them() -> None:
    values = (None, 0.0, 1.0, 0.01234, 99.99, 999.7, 12345.6, 12345, "x")
    shown_as = ["-", "0.00", "1.00", "0.0123", "100", "1000", "12346", "12345", "x"]
    assert [number(value) for value in values] == shown_as


def test_render_lines_up_labels() -> None:
    text = render([Line("a", 1), Line("long label", 2.0, "ms", "modelled")], "title")
    assert text == "title\na           1\nlong label  2.00 ms (modelled)"
