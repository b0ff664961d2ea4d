"""The two text generators: pure functions of their address, correct, varied, disjoint."""

from __future__ import annotations

import hashlib
import re

import pytest

from specfit.data.corpus import news, word_problems
from specfit.data.corpus.grammar import SPLITS
from specfit.data.corpus.news import report
from specfit.data.corpus.word_problems import word_problem

ANNOTATION = re.compile(r"<<([-+*/().0-9]+)=(\d+)>>(\d+)")
NUMBER = re.compile(r"\d+(?:,\d{3})*")


def test_rows_are_pure_functions_of_their_address():
    later = [(word_problem("train", row), report("train", row)) for row in (7, 3)]
    assert later == [(word_problem("train", row), report("train", row)) for row in (7, 3)]
    assert word_problem("train", 7) != word_problem("evaluation", 7)


def test_a_known_row_never_changes_shape():
    row = word_problem("train", 0)
    assert row.answer.splitlines()[-1].startswith("#### ")


@pytest.mark.parametrize("split", SPLITS)
def test_every_annotation_is_correct_and_the_last_is_the_answer(split):
    for index in range(500):
        lines = word_problem(split, index).answer.splitlines()
        notes = [ANNOTATION.search(line) for line in lines[:-1]]
        assert 2 <= len(notes) <= 6
        for note in notes:
            assert note and eval(note[1]) == int(note[2]) == int(note[3]) > 0
        assert lines[-1] == f"#### {notes[-1][2]}"


@pytest.mark.parametrize("table", [word_problems.TEMPLATES, news.EVENTS])
def test_structures_are_disjoint_between_splits(table):
    names = [item.name for split in SPLITS for item in table[split]]
    assert len(names) == len(set(names))
    assert len(names) >= 42 and all(len(table[split]) >= 4 for split in SPLITS)


@pytest.mark.parametrize("split", SPLITS)
def test_more_than_a_billion_distinct_texts(split):
    assert word_problems.distinct_texts(split) > 1e9
    assert news.distinct_texts(split) > 1e9


@pytest.mark.parametrize("split", SPLITS)
def test_highlights_restate_the_article(split):
    for index in range(300):
        row = report(split, index)
        assert set(NUMBER.findall(row.highlights)) <= set(NUMBER.findall(row.article))
        assert 2 <= len(row.highlights.splitlines()) <= 4
        assert 110 <= len(f"{row.article} {row.highlights}".split()) <= 330


def test_nothing_of_the_grammar_is_left_in_the_text():
    for split in SPLITS:
        for index in range(200):
            problem, row = word_problem(split, index), report(split, index)
            text = " ".join([problem.question, problem.answer, row.article, row.highlights])
            assert not re.search(r"[\[\]{}|_]|  | [,.]", text)


def test_five_thousand_draws_have_no_duplicate():
    assert len({word_problem("train", row).question for row in range(5000)}) == 5000
    assert len({report("train", row).article for row in range(5000)}) == 5000


def test_rows_are_what_they_were() -> None:
    """Text moved out of the code changes no row: 300 of each split and generator, by hash."""
    found = hashlib.sha256()
    for split in SPLITS:
        for index in range(300):
            item, problem = report(split, index), word_problem(split, index)
            row = (item.article, item.highlights, problem.question, problem.answer)
            found.update(("\0".join(row) + "\1").encode())
    assert found.hexdigest() == "4eb6d9dc96278b3eca77c0cc5b7009a54713d27e924e531ce7cc32383f44b28a"
