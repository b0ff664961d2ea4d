"""The synthetic workloads: right answers, balanced families, splits that share no row."""

from __future__ import annotations

import hashlib
import re
from collections import Counter

import pytest

from specfit.data.synthetic.grammar import SPLITS, word_lists
from specfit.data.synthetic.reports import events, report
from specfit.data.synthetic.word_problems import families, word_problem

EQUATION = re.compile(r"(\d+) ([-+*/]) (\d+) = \$?(?:<<([^>]*)>>)?(\d+)")


def computed(left: int, sign: str, right: int) -> float:
    """Written apart from the generator, which evaluates its templates' own expressions."""
    if sign == "+":
        return left + right
    if sign == "-":
        return left - right
    return left * right if sign == "*" else left / right


@pytest.mark.parametrize("annotated", [False, True])
@pytest.mark.parametrize("split", SPLITS)
def test_every_step_is_right_and_the_last_one_is_the_answer(split: str, annotated: bool) -> None:
    for index in range(200):
        problem = word_problem(split, index, annotated)
        *steps, last = problem.answer.split("\n")
        assert 2 <= len(steps) <= 3 and re.fullmatch(r"#### \d+", last)
        for step in steps:
            (found,) = EQUATION.findall(step)
            left, sign, right, note, value = found
            assert computed(int(left), sign, int(right)) == int(value), step
            assert bool(note) == annotated and 2 <= int(value) < 200
            if annotated:
                assert note == f"{left}{sign}{right}={value}"
        assert last == f"#### {value}"


@pytest.mark.parametrize("split", SPLITS)
def test_families_and_events_take_turns(split: str) -> None:
    for names, kinds in (
        ([word_problem(split, i).family for i in range(4 * len(families(split)))], families(split)),
        ([report(split, i).event for i in range(4 * len(events(split)))], events(split)),
    ):
        assert Counter(names) == {kind.name: 4 for kind in kinds}
    assert len(families("train")) >= 24 and len(events("train")) >= 16


def test_held_out_families_and_events_are_in_no_other_split() -> None:
    assert not {f.name for f in families("held_out")} & {f.name for f in families("train")}
    assert not {e.name for e in events("held_out")} & {e.name for e in events("train")}


def test_no_evaluation_row_is_a_training_row() -> None:
    asked = {word_problem("train", i).question for i in range(20_000)}
    assert not asked & {word_problem("evaluation", i).question for i in range(160)}
    read = {report("train", i).article for i in range(5_000)}
    assert not read & {report("evaluation", i).article for i in range(120)}


def test_highlights_are_sentences_of_the_article_in_its_order() -> None:
    for index in range(120):
        one = report("evaluation", index)
        lines = one.highlights.split("\n")
        places = [one.article.find(line.removesuffix(".")) for line in lines]
        assert len(lines) == 4 and places[0] == 0 and places == sorted(places) and -1 not in places


def test_nothing_of_the_grammar_is_left_in_the_text() -> None:
    for split in SPLITS:
        for index in range(120):
            problem, item = word_problem(split, index), report(split, index)
            text = " ".join([problem.question, problem.answer, item.article, item.highlights])
            assert not re.search(r"[\[\]{}|_]|  | [,.]", text), text


def test_names_are_few_enough_for_a_small_vocabulary() -> None:
    lists = word_lists()
    sizes = {name: len(set(lists[name])) for name in ("surname", "town", "county", "firm")}
    assert sizes == {"surname": 120, "town": 120, "county": 30, "firm": 60}


def test_rows_are_a_function_of_their_address() -> None:
    found = hashlib.sha256()
    for split in SPLITS:
        for index in range(60):
            problem, item = word_problem(split, index, index % 2 == 0), report(split, index)
            row = (problem.question, problem.answer, item.article, item.highlights)
            found.update("\0".join(row).encode())
    assert found.hexdigest() == "72db6f04f4f8e28d2d80cc5779b63af12d3c751924ddbf9536e336162c57e77d"
