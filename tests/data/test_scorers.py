"""Scores by hand: exact match of final numbers, the four ROUGE, and what can score nothing."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specfit.base.types import RequestError, Score, SpecfitError
from specfit.data.answers import marked_number, stated_number
from specfit.data.scorers import MEASURES, SCORERS, scorer_named

needs_evaluate = pytest.mark.skipif(
    importlib.util.find_spec("evaluate") is None, reason="evaluate is not installed"
)

# -- numbers ---------------------------------------------------------------------------------------

ANSWERS = {
    "so 3 + 4 = 7\n#### 7": (7, 7),
    "#### 1,234.50": (1234.5, 1234.5),
    "#### 3\n#### -4": (-4, -4),
    "#### seven, or 8": (None, 8),
    "She makes **$18** a day": (None, 18),
    "It is $\\boxed{42}$, not 41": (None, 42),
    "\\boxed{1} and then \\boxed{\\text{about } 2{,}500}": (None, 2500),
    "that is 1\\,000 dollars": (None, 1000),
    "12 eggs, half of them: .5": (None, 0.5),
    "\\boxed{x} of 3": (None, None),
    "She makes 18 a day.\n\n": (None, 18),
    "3 + 3 = 6\nOn Wednesday she": (None, None),
    "none": (None, None),
    "": (None, None),
    "#### 7\r\n": (7, 7),
    "#### 7/2": (3.5, 3.5),
    "#### 1 1/2 cups": (1.5, 1.5),
    "#### -3/4.": (-0.75, -0.75),
    "#### \u22125": (-5, -5),
    "#### \u2013 5": (-5, -5),
    "#### -$5": (-5, -5),
    "#### 1,2": (None, None),
    "#### 12,34": (None, None),
    "#### 1.2.3": (None, None),
    "#### 1/0": (None, None),
    "#### 2.5e3": (2500, 2500),
    "it is 1/2": (None, 0.5),
    "it is \u00bd": (None, 0.5),
    "it is 2\u00bd": (None, 2.5),
    "so \\boxed{-\\frac{7}{2}}": (None, -3.5),
    "so \\boxed{1\\frac{1}{2}}": (None, 1.5),
    "it is 1,2": (None, None),
    "at 12:30": (None, None),
    "in 3\u20134 days": (None, None),
    "10-4 = 6": (None, 6),
    "it is 12 / 4": (None, 3),
    "it is 1\u202f000 or 1 000": (None, 1000),
    "it is 2^10": (None, None),
    "it is 1e999999": (None, None),
}


@pytest.mark.parametrize("text", ANSWERS)
def test_final_numbers(text: str) -> None:
    assert (marked_number(text), stated_number(text)) == ANSWERS[text]


@given(st.integers(-(10**9), 10**9), st.text(alphabet="ab .\n", max_size=20))
def test_a_marked_number_is_read_back_however_it_is_written(number: int, before: str) -> None:
    for shown in (str(number), f"{number:,}"):
        assert marked_number(f"{before}#### {shown}") == number
        assert stated_number(f"{before}#### {shown}") == number
        assert stated_number(f"{before} {shown}") == number


# -- through evaluate ------------------------------------------------------------------------------


@needs_evaluate
def test_exact_match() -> None:
    strict, stated = (scorer_named(f"gsm8k_{name}") for name in ("exact_match", "stated_answer"))
    assert strict is not None and stated is not None
    key = "2 + 5 = <<2+5=7>>7\n#### 7"
    assert strict("I say\n#### 7.0", key) == Score(1.0)
    assert strict("the answer is 7", key) == Score(0.0)
    assert stated("the answer is 7", key) == Score(1.0)
    assert stated("the answer is 8", key) == Score(0.0)
    assert stated("", key) == Score(0.0)
    half = "#### 7/2"
    assert strict("#### 3.5", half) == Score(1.0) and strict("#### 7", half) == Score(0.0)


@needs_evaluate
def test_an_answer_cut_at_its_cap_is_none() -> None:
    strict, rouge = scorer_named("gsm8k_exact_match"), scorer_named("rouge_l")
    assert strict is not None and rouge is not None
    assert strict("#### 7", "#### 7", "eos") == Score(1.0)
    assert strict("#### 7", "#### 7", "length") == Score(0.0), "it might have gone on as 75"
    assert rouge("the cat", "the cat", "length").value == 1.0, "a summary may be cut"


@needs_evaluate
@pytest.mark.parametrize("text", ["Кот спал.", "猫が寝た", "نام القط", "!!!", "Кот и dog спал"])
def test_text_outside_rouges_tokeniser_has_no_score(text: str) -> None:
    rouge = scorer_named("rouge_l")
    assert rouge is not None and rouge(text, text) == Score()
    with pytest.raises(RequestError):
        rouge.check(text)


@needs_evaluate
def test_a_few_accents_are_within_rouge() -> None:
    rouge = scorer_named("rouge_l")
    assert rouge is not None
    text = "she opened a café in Zürich last spring"
    assert rouge(text, text).value == 1.0


@needs_evaluate
def test_rouge_by_hand() -> None:
    rouge = scorer_named("rouge_l")
    assert rouge is not None
    # Six words each; "cats"/"cat" and "sat"/"sitting" meet as stems or not: porter keeps sat, sit.
    found = rouge("the cats sat on a mat", "the cat sat under the mat")
    # Shared words: the, cat, sat, mat: 4 of 6; pairs: "the cat", "cat sat": 2 of 5; in order: 4.
    assert found.rouge1 == pytest.approx(4 / 6)
    assert found.rouge2 == pytest.approx(2 / 5)
    assert found.rougel == found.value == pytest.approx(4 / 6)
    assert found.rougelsum == pytest.approx(4 / 6)
    assert rouge("", "the cat") == Score(0.0, 0.0, 0.0, 0.0, 0.0)


@needs_evaluate
def test_rouge_lsum_reads_one_line_and_one_highlight_a_line_alike() -> None:
    rouge = scorer_named("rouge_l")
    assert rouge is not None
    output = "A dog barked. Nobody came! Then it slept."
    one_line = rouge(output, "The dog slept. Nobody came.")
    many = rouge(output, "The dog slept.\nNobody came.")
    windows = rouge(output.replace(". ", ".\r\n"), "The dog slept.\r\nNobody came.")
    assert one_line == many == windows
    assert one_line.rougelsum is not None and one_line.rougel is not None
    # Sentence by sentence "nobody came" and, with "dog", "slept" count: 4 of 5 and of 8 words;
    # over the whole text only three words keep their order.
    assert one_line.rougelsum == pytest.approx(2 * (4 / 8) * (4 / 5) / (4 / 8 + 4 / 5))
    assert one_line.rougel == pytest.approx(2 * (3 / 8) * (3 / 5) / (3 / 8 + 3 / 5))


@needs_evaluate
def test_modules_load_by_path_for_anybody() -> None:
    import evaluate

    rouge = evaluate.load(str(MEASURES / "rouge"))
    pairs = {"predictions": ["a b", "c d"], "references": ["a b", "x y"]}
    assert rouge.compute(**pairs) == dict.fromkeys(("rouge1", "rouge2", "rougeL", "rougeLsum"), 0.5)
    exact = evaluate.load(str(MEASURES / "gsm8k_answer"))
    keys = {"predictions": ["#### 1", "2"], "references": ["#### 1", "#### 2"]}
    assert exact.compute(**keys) == {"exact_match": 0.5}
    assert exact.compute(**keys, anywhere=True) == {"exact_match": 1.0}


@pytest.mark.parametrize("file", sorted(MEASURES.glob("*/*.py")), ids=lambda path: path.stem)
def test_modules_import_as_evaluate_reads_them(file: Path) -> None:
    lines = file.read_text(encoding="utf-8").splitlines()
    imports = [line for line in lines if re.match(r"\s*(import|from)\s", line)]
    assert not [line for line in imports if re.match(r"import .*,", line)]
    assert not [line for line in imports if line.startswith("from evaluate")]


# -- what cannot score -----------------------------------------------------------------------------


def test_references_that_can_score_nothing() -> None:
    for name in ("gsm8k_exact_match", "gsm8k_stated_answer"):
        with pytest.raises(RequestError, match="needs a final line '#### <number>'"):
            SCORERS[name].check("seven")
    with pytest.raises(RequestError, match="the reference is empty"):
        SCORERS["rouge_l"].check(" \n")
    SCORERS["rouge_l"].check("words")


def test_unknown_scorers() -> None:
    assert scorer_named(None) is None
    with pytest.raises(SpecfitError, match=r"dataset\.scorer is 'f1'; use one of gsm8k_"):
        scorer_named("f1")


def test_every_note_says_what_is_fixed() -> None:
    assert all(scorer.note for scorer in SCORERS.values())
    assert "stemming on" in SCORERS["rouge_l"].note
