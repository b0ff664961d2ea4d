"""Workloads through the real entry point: what each odd row gets, and rows of the real datasets."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from specfit.base.types import SpecfitError
from specfit.storage.rows import load_run
from tests.fakes.tiny_model import Command, JobResult, Runnable

PROBLEM = {"question": "Tom has 3 apples and buys 4. How many?", "answer": "3 + 4 = 7\n#### 7"}
ARTICLE = {"article": "Rain fell all day.", "highlights": "Rain fell."}

Serve = Callable[..., tuple[JobResult, pd.DataFrame]]


def lines(path: Path, rows: list[Any], end: str = "\n") -> str:
    path.write_bytes("".join(json.dumps(row) + end for row in rows).encode())
    return f"dataset.path={path}"


def folder_of(ended: JobResult) -> Path:
    return Path(ended.out.splitlines()[-1].removeprefix("rows: "))


@pytest.fixture
def serve(command: Command, runnable: Runnable, tmp_path: Path) -> Serve:
    """`ar` over these rows; returns how it ended and the request rows."""

    def run(dataset: str, rows: list[Any], *overrides: str, end: str = "\n"):  # type: ignore[no-untyped-def]
        where = lines(tmp_path / "rows.jsonl", rows, end)
        settings = (f"results_dir={tmp_path}", "selector=ar", "max_new_tokens=4")
        ended = command(*runnable.overrides, *settings, f"dataset={dataset}", where, *overrides)
        folders = [f for f in (tmp_path / "runs").glob("*") if f.is_dir()]
        return ended, load_run(folders[0]).requests if folders else None

    return run


def test_a_wrong_answer_key(serve: Serve) -> None:
    """One that states no number scores nothing and is decoded all the same; that is said."""
    ended, requests = serve("gsm8k", [PROBLEM, PROBLEM | {"answer": "7"}, {**PROBLEM, "answer": 7}])
    assert ended.code == 0 and "failed" not in ended.out
    assert (
        "no score for 2 of 3 requests (row-1: a GSM8K reference needs a final line "
        "'#### <number>'); all are decoded" in ended.out
    )
    assert list(requests["status"]) == ["ok", "ok", "ok"]
    assert list(requests["score"].isna()) == [False, True, True]


def test_an_article_without_highlights(serve: Serve) -> None:
    """A file without the field is refused; a row whose highlights are empty has no score."""
    ended, _ = serve("cnn_dailymail", [{"article": "Rain."}])
    assert ended.code == 2
    assert ended.sentence.endswith("line 1 has no field 'highlights'; it has article")
    rows = [ARTICLE, ARTICLE | {"highlights": " "}, ARTICLE | {"highlights": None}]
    ended, requests = serve("cnn_dailymail", rows)
    assert ended.code == 0
    assert "no score for 2 of 3 requests (row-1: the reference is empty" in ended.out
    assert list(requests["status"]) == ["ok", "ok", "ok"]
    assert list(requests["score"].isna()) == [False, True, True]


def test_text_that_rouge_cannot_see_has_no_score(serve: Serve) -> None:
    russian = {"article": "Кот спал на окне весь день.", "highlights": "Кот спал."}
    ended, requests = serve("cnn_dailymail", [russian, ARTICLE])
    assert ended.code == 0 and "no score for 1 of 2 requests" in ended.out
    assert list(requests["score"].isna()) == [True, False]


def test_a_row_that_asks_in_two_ways_or_for_what_a_row_cannot_set(serve: Serve) -> None:
    turns = [{"role": "user", "content": "Hello"}]
    ended, _ = serve("prompts", [{"prompt": "Hello", "messages": turns}])
    assert ended.code == 2 and "line 1 has both 'prompt' and 'messages'" in ended.sentence
    ended, _ = serve("gsm8k", [PROBLEM | {"messages": turns}])
    assert ended.code == 2 and "line 1 has both 'question' and 'messages'" in ended.sentence
    ended, _ = serve("prompts", [{"prompt": "Hello", "temperature": 0.7}])
    assert ended.code == 2 and "line 1 asks for 'temperature'" in ended.sentence


def test_a_template_is_given_what_the_dataset_says(
    command: Command, runnable: Runnable, tmp_path: Path
) -> None:
    own = runnable.copied_to(tmp_path)
    template = own.target / "chat_template.jinja"
    text = template.read_text()
    template.write_text(text + "{% if enable_thinking is false %}<no>{% endif %}")
    asked = lines(tmp_path / "rows.jsonl", [{"prompt": "Hello"}])
    tokens = []
    for more in ([], ["+dataset.chat_template_kwargs.enable_thinking=false"]):
        settings = (f"results_dir={tmp_path}", "selector=ar", "max_new_tokens=4")
        ended = command(*own.overrides, *settings, "dataset=prompts", asked, *more)
        assert ended.code == 0, ended
        tokens.append(int(load_run(folder_of(ended)).requests["prompt_tokens"][0]))
    assert tokens[1] == tokens[0] + len("<no>")
    template.write_text("{% if false %}x{% endif %}")
    ended = command(*own.overrides, *settings, "dataset=prompts", asked)
    assert ended.code == 3
    rows = load_run(folder_of(ended)).requests
    assert list(rows["status"]) == ["the chat template renders these messages as nothing"]


def test_an_empty_question(serve: Serve) -> None:
    ended, requests = serve("gsm8k", [PROBLEM | {"question": " \n"}, PROBLEM])
    assert ended.code == 0
    assert list(requests["status"]) == ["the field 'question' is empty or not a text", "ok"]


def test_windows_line_ends(serve: Serve) -> None:
    windows = {"question": "One.\r\nHow many?", "answer": "1\r\n#### 1\r\n"}
    ended, requests = serve("gsm8k", [PROBLEM, windows], end="\r\n")
    assert (ended.code, list(requests["status"])) == (0, ["ok", "ok"])


def test_a_long_article_is_cut_and_the_instruction_is_not(serve: Serve) -> None:
    """The tokenizer has a token a byte: 100,000 of them, of which 200 stay."""
    rows = [{"article": "x" * size, "highlights": "x"} for size in (200, 100_000)]
    ended, requests = serve("cnn_dailymail", rows, "dataset.max_document_tokens=200")
    assert ended.code == 0
    assert list(requests["cut_tokens"]) == [0, 99_800]
    assert requests["prompt_tokens"].nunique() == 1
    assert "cut                     99800 tokens (of 1 documents, by the workload's" in ended.out


def test_what_is_asked_and_how_it_is_scored_is_printed(serve: Serve) -> None:
    ended, requests = serve("cnn_dailymail", [ARTICLE] * 3, "limit=2")
    said = ended.out.splitlines()
    top = "rows: rows.jsonl from its top, 2 of 3; dataset.rows goes up to 78 and is left out"
    assert top in said
    assert any(line.startswith("score rouge_l: ") and "stemming on" in line for line in said)
    assert "mean score              " in ended.out and "rougelsum" in ended.out
    assert requests[["score", "rouge1", "rouge2", "rougel", "rougelsum"]].notna().all(axis=None)
    assert (requests["score"] == requests["rougel"]).all()


def test_a_system_message_comes_before_the_question(serve: Serve) -> None:
    _, plain = serve("gsm8k", [PROBLEM])
    ended, _ = serve("gsm8k", [PROBLEM], "dataset.system=Hello")
    assert ended.code == 0
    requests = load_run(folder_of(ended)).requests
    extra = 2 + len("system\nHello\n")  # two special tokens around it
    assert requests["prompt_tokens"][0] == plain["prompt_tokens"][0] + extra


# -- calibration -----------------------------------------------------------------------------------


def test_a_calibration_row_is_never_evaluated(
    command: Command, runnable: Runnable, tmp_path: Path
) -> None:
    asked = lines(tmp_path / "rows.jsonl", [PROBLEM])
    lines(tmp_path / "train.jsonl", [{"question": "Other?"}, {"question": PROBLEM["question"]}])
    ended = command(
        *runnable.overrides,
        *(f"results_dir={tmp_path / 'results'}", "selector=specfit", "cache_slots=4"),
        *("dataset=gsm8k", asked, f"calibration.dataset_path={tmp_path / 'train.jsonl'}"),
    )
    assert ended.code == 2
    assert ended.sentence == (
        f"calibration row row-1 of {tmp_path / 'train.jsonl'} is evaluated too; "
        "set calibration.dataset_path to rows of the train split"
    )
    assert not (tmp_path / "results").exists()


def test_rows_that_cannot_be_fetched_name_the_key_that_helps() -> None:
    from specfit.data.examples import from_hub

    with pytest.raises(SpecfitError, match=r"set calibration\.dataset_path to a local JSON-lines"):
        from_hub("openai/gsm8k/main/train", ["question"], None, "calibration.dataset_path")


# -- real data -------------------------------------------------------------------------------------

REAL = {
    "gsm8k": ("gsm8k/test.jsonl", "row-962", "1 of the 80 that dataset.rows names, of test.jsonl"),
    "cnn_dailymail": ("cnn_dailymail/specbench_cnndm80.jsonl", "specbench-241", "1 of the 40 that"),
}


@pytest.mark.parametrize("dataset", REAL)
def test_a_real_row_through_the_whole_pipeline(
    dataset: str, command: Command, specfit_data: Path, tmp_path: Path
) -> None:
    """The embedded pair answers badly and alike under every selector: ids and scores are equal."""
    name, first, note = REAL[dataset]
    settings = (f"dataset={dataset}", f"dataset.path={specfit_data / name}", "limit=1")
    sizes = ("max_new_tokens=12", "dataset.max_document_tokens=64", f"results_dir={tmp_path}")
    sizes = (*sizes, "compare=false")
    plain = command("selector=ar", *settings, *sizes)
    assert (plain.code, plain.err) == (0, "") and f"rows: {note}" in plain.out
    drafted = command("selector=eagle3_cache", *settings, *sizes)
    assert (drafted.code, drafted.err) == (0, "")
    said = {line.split("  ")[0]: line for line in drafted.out.splitlines()}
    assert said["ids equal to ar"].endswith("yes, 1 requests")
    assert said["scores equal to ar"].endswith("yes, 1 requests")
    assert list(load_run(folder_of(drafted)).requests["request_id"]) == [first]
