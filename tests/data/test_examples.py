"""Which rows a run asks: named rows of a split, the rows of a shorter file, and their identity."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scripts.check.dataset_rows import rows_of, text_of
from specfit.base.config import DatasetConfig, RunConfig, from_hydra
from specfit.base.types import SpecfitError
from specfit.data.examples import Example, picked
from specfit.decoding.workload import calibration_dataset, calibration_rows, evaluated_rows
from specfit.workflows.hydra_cli import compose


def examples(count: int) -> list[Example]:
    return [Example(f"row-{i}", {"question": f"question {i}"}) for i in range(count)]


def names(found: list[Example]) -> list[str]:
    return [example.example_id for example in found]


def test_named_rows_are_asked_in_their_order_and_the_sentence_says_so() -> None:
    rows = picked(examples(10), [7, 0, 9], None, "test.jsonl")
    assert names(list(rows.examples)) == ["row-7", "row-0", "row-9"]
    assert rows.note == "rows: 3 of the 3 that dataset.rows names, of test.jsonl (10 rows)"
    assert names(list(picked(examples(10), [7, 0, 9], 2, "").examples)) == ["row-7", "row-0"]


def test_a_file_too_short_for_them_is_asked_from_its_top() -> None:
    rows = picked(examples(9), [7, 0, 9], 4, "mine.jsonl")
    assert names(list(rows.examples)) == ["row-0", "row-1", "row-2", "row-3"]
    assert rows.note == (
        "rows: mine.jsonl from its top, 4 of 9; dataset.rows goes up to 9 and is left out"
    )


@given(st.lists(st.integers(0, 30), min_size=1, unique=True), st.integers(1, 40), st.integers(1, 9))
def test_never_a_row_that_is_not_there(rows: list[int], count: int, limit: int) -> None:
    found = examples(count)
    chosen = list(picked(found, rows, limit, "").examples)
    whole = [f"row-{i}" for i in rows] if max(rows) < count else names(found)
    assert names(chosen) == whole[:limit]


def test_a_dataset_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "test.jsonl"
    path.write_text("".join(json.dumps({"question": str(i)}) + "\n" for i in range(5)))
    dataset = DatasetConfig("gsm8k", "jsonl", document="question", path=str(path), rows=[4, 1])
    rows = evaluated_rows(dataset, 80)
    assert [example.fields["question"] for example in rows.examples] == ["4", "1"]
    assert names(list(rows.examples)) == ["row-4", "row-1"], "named by their place in the split"
    dataset.rows = []
    assert len(evaluated_rows(dataset, 3).examples) == 3 and evaluated_rows(dataset, 3).note is None
    with pytest.raises(SpecfitError, match=r"record\.split=train is for embedded datasets"):
        evaluated_rows(dataset, 3, "train")


def test_the_hub_gives_the_named_rows_of_the_test_split(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def load(repository: str, configuration: str, split: str) -> list[dict[str, str]]:
        asked.append((repository, configuration, split))
        return [{"question": f"{split} {i}", "answer": "#### 1"} for i in range(1319)]

    monkeypatch.setattr("datasets.load_dataset", load)
    dataset = shipped("gsm8k")
    rows = evaluated_rows(dataset, 2)
    assert [example.fields["question"] for example in rows.examples] == ["test 962", "test 372"]
    assert rows.note is not None and "2 of the 80" in rows.note
    config = compose_config("model.calibration_dataset=gsm8k")
    chosen = calibration_rows(config, rows.examples)
    assert [one.fields["question"] for one in chosen] == [f"train {i}" for i in range(1119, 1159)]
    assert asked == [("openai/gsm8k", "main", "test"), ("openai/gsm8k", "main", "train")]


def compose_config(*overrides: str) -> RunConfig:
    return from_hydra(compose(list(overrides)))


# -- the rows that are shipped ---------------------------------------------------------------------


def shipped(name: str) -> DatasetConfig:
    return calibration_dataset(compose_config(f"model.calibration_dataset={name}"))


@pytest.mark.parametrize(("name", "rows"), [("gsm8k", 1319), ("cnn_dailymail", 11490)])
def test_shipped_rows_are_rows_of_the_split(name: str, rows: int) -> None:
    dataset = shipped(name)
    assert len(set(dataset.rows)) == len(dataset.rows) == dataset.limit
    assert all(0 <= row < rows for row in dataset.rows)


def test_summaries_are_the_even_numbered_of_the_first_eighty() -> None:
    assert shipped("cnn_dailymail").rows == list(range(0, 80, 2))


def test_gsm8k_rows_are_spec_benchs(specfit_data: Path) -> None:
    dataset = shipped("gsm8k")
    dataset.path = str(specfit_data / "gsm8k" / "test.jsonl")
    rows = evaluated_rows(dataset, None)
    theirs = (specfit_data / "gsm8k" / "specbench_gsm8k80.jsonl").read_text("utf-8").split("\n")
    questions = [json.loads(line)["question"] for line in theirs if line]
    assert [example.fields["question"] for example in rows.examples] == questions
    dataset.path = str(specfit_data / "gsm8k" / "specbench_gsm8k80.jsonl")
    same = evaluated_rows(dataset, 80)
    assert [example.fields["question"] for example in same.examples] == questions
    assert "goes up to 1302 and is left out" in str(same.note)


# -- how they were found ---------------------------------------------------------------------------


def test_rows_are_found_by_letters_and_digits() -> None:
    split = ["It\u2019s 3 o'clock.", "Two?", "Three!"]
    assert rows_of(split, ["three", "not there", "Its 3 o'clock"]) == [2, 0]
    with pytest.raises(SpecfitError, match=r"one text in rows \[0, 1\]"):
        rows_of(["a b", "a-b"], ["ab"])


def test_both_formats_of_a_subset_are_read() -> None:
    assert text_of({"question": "Why?"}, "question") == "Why?"
    assert text_of({"turns": ["Summarize: News."]}, "article") == "News."
