"""A run's id goes by content: a change of any input in place asks for another id."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from specfit.base.config import from_hydra  # noqa: E402
from specfit.base.types import SpecfitError  # noqa: E402
from specfit.decoding.resolve import LiveRunSpec, resolve  # noqa: E402
from specfit.decoding.spec import SHIPPED_TOKENIZERS, locate  # noqa: E402
from specfit.models.target.checkpoint import INDEX, tokenizer_digest  # noqa: E402
from specfit.storage import identity  # noqa: E402
from specfit.workflows.hydra_cli import compose  # noqa: E402
from specfit.workflows.recording.recorder import recording_identity  # noqa: E402
from tests.fakes.tiny_model import Runnable  # noqa: E402

ROW = {"question": "How many?", "answer": "#### 7"}


class Inputs:
    """Every file that a run reads, in one folder."""

    def __init__(self, folder: Path, runnable: Runnable) -> None:
        self.folder, self.pair = folder, runnable.copied_to(folder)
        for name in ("rows", "train"):
            rows = [ROW | {"question": f"{name} {i}?"} for i in range(3)]
            (folder / f"{name}.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
        self.tokenizer = folder / "tokenizer"
        self.tokenizer.mkdir()
        for file in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
            shutil.copy(self.pair.target / file, self.tokenizer / file)

    def spec(self, *more: str) -> LiveRunSpec:
        overrides = [
            *self.pair.overrides,
            *("selector=eagle3_cache", "cache_slots=4", "dataset=gsm8k"),
            f"dataset.path={self.folder / 'rows.jsonl'}",
            f"calibration.dataset_path={self.folder / 'train.jsonl'}",
            f"model.tokenizer={self.tokenizer}",
        ]
        return resolve(from_hydra(compose([*overrides, *more])))

    def ids(self) -> tuple[str, str]:
        """Of the run, and of its recording."""
        spec = self.spec()
        return identity.run_id(spec.identity(None)), identity.digest(recording_identity(spec))


@pytest.fixture
def inputs(tmp_path: Path, runnable: Runnable) -> Inputs:
    return Inputs(tmp_path, runnable)


def last_byte(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(bytes(content))


def a_space(path: Path) -> None:
    path.write_text(path.read_text() + " ")


def another_word(path: Path) -> None:
    path.write_text(path.read_text().replace("1?", "1, really?"))


CHANGES: list[tuple[str, Callable[[Path], None]]] = [
    ("target/config.json", a_space),
    ("target/generation_config.json", a_space),
    ("target/model-00001-of-00002.safetensors", last_byte),
    ("drafter/config.json", a_space),
    ("drafter/model.safetensors", last_byte),
    ("tokenizer/tokenizer.json", a_space),
    ("tokenizer/tokenizer_config.json", a_space),
    ("tokenizer/chat_template.jinja", a_space),
    ("rows.jsonl", another_word),
]


def test_every_input_changed_in_place_is_another_run(inputs: Inputs) -> None:
    """Also the property that a change undone is the old run again."""
    first = inputs.ids()
    assert inputs.ids() == first
    folder = inputs.folder
    shards = sorted(path.name for path in inputs.pair.target.glob("model-*.safetensors"))
    for name, change in CHANGES:
        path = folder / (name if "/model-" not in name else f"target/{shards[0]}")
        before = path.read_bytes()
        change(path)
        changed = inputs.ids()
        assert changed[0] != first[0] and changed[1] != first[1], name
        path.write_bytes(before)
        assert inputs.ids() == first, name


@pytest.mark.parametrize(
    "file", ["added_tokens.json", "vocab.txt", "merges.txt", "tokenizer.model"]
)
def test_a_file_that_a_tokenizer_would_read_is_part_of_it(inputs: Inputs, file: str) -> None:
    folder = inputs.tokenizer
    before = tokenizer_digest(folder)
    (folder / file).write_text("{}")
    assert tokenizer_digest(folder) != before


def test_a_template_in_its_own_folder_is_part_of_the_tokenizer(inputs: Inputs) -> None:
    for folder in (inputs.tokenizer, inputs.pair.target):
        before, target = tokenizer_digest(folder), inputs.ids()
        (folder / "additional_chat_templates").mkdir()
        (folder / "additional_chat_templates/tool.jinja").write_text("x")
        assert tokenizer_digest(folder) != before and inputs.ids() != target


def test_the_same_tokenizer_elsewhere_is_the_same_run(inputs: Inputs) -> None:
    elsewhere = inputs.folder / "elsewhere"
    shutil.copytree(inputs.tokenizer, elsewhere)
    there = inputs.spec(f"model.tokenizer={elsewhere}")
    assert identity.run_id(there.identity(None)) == inputs.ids()[0]


def test_the_shipped_tokenizer_keeps_the_name_that_ids_know() -> None:
    for digest, name in SHIPPED_TOKENIZERS.items():
        assert tokenizer_digest(locate(name)) == digest


def test_a_shard_outside_its_folder_is_refused(inputs: Inputs) -> None:
    index = inputs.pair.target / INDEX
    fields = json.loads(index.read_text())
    name = next(iter(fields["weight_map"]))
    shutil.copy(inputs.pair.target / fields["weight_map"][name], inputs.folder / "x.safetensors")
    fields["weight_map"][name] = "../x.safetensors"
    index.write_text(json.dumps(fields))
    with pytest.raises(SpecfitError, match="beside it"):
        inputs.spec()
