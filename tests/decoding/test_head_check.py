"""Wrong readings of a real head are found by name: the embedded pair, broken in every usual way."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("hydra")

from safetensors.torch import save_file  # noqa: E402

from specfit.base.config import from_hydra  # noqa: E402
from specfit.base.types import SpecfitError  # noqa: E402
from specfit.decoding import head_check, live  # noqa: E402
from specfit.decoding.head_check import Reading, answers, changed, measure  # noqa: E402
from specfit.decoding.resolve import resolve  # noqa: E402
from specfit.models.drafter.checkpoint import load_head  # noqa: E402
from specfit.models.drafter.training import TttBatch, ttt_losses  # noqa: E402
from specfit.workflows.hydra_cli import compose  # noqa: E402

EMBEDDED = Path(head_check.__file__).parents[1] / "weights" / "embedded"


def runtime_of(drafter: Path | None, *overrides: str) -> Any:
    named = [] if drafter is None else [f"drafter.path={drafter}"]
    settings = ["cache_slots=all", "selector=eagle3_cache", "gpu.clock=modelled"]
    spec = resolve(from_hydra(compose([*settings, *named, *overrides])))
    return live.build_runtime(spec, spec.slots, drafts=True)


@pytest.fixture(scope="module")
def whole() -> Iterator[Any]:
    """The pair as it is, and its texts, read once for every breakage."""
    runtime = runtime_of(None)
    layers = range(runtime.loaded.geometry.layers)
    texts = answers(runtime, list(layers), head_check.CHECK_QUESTIONS)
    yield runtime, texts


def found(whole: Any, monkeypatch: pytest.MonkeyPatch, head: Any) -> str:
    """What the check says of a runtime with this head."""
    runtime, texts = whole
    monkeypatch.setattr(head_check, "answers", lambda *_: texts)
    return list(head_check.check(replace(runtime, head=head)))[-1]


def test_the_head_as_it_is_drafts_best(whole: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    said = found(whole, monkeypatch, whole[0].head)
    assert said.startswith("the head drafts best as it is read")


def tensors(head: Any, **new: Any) -> Any:
    return head_check.with_tensors(head, head.config, new)


def _layers_off(step: int) -> Callable[[Any], Any]:
    def broken(head: Any) -> Any:
        return changed(head, aux_layer_ids=tuple(i + step for i in head.config.aux_layer_ids))

    return broken


BROKEN: dict[str, tuple[Callable[[Any], Any], str]] = {
    "layers too low": (_layers_off(-1), "auxiliary layers one too low"),
    "norm order": (
        lambda head: changed(head, norm_before_residual=not head.config.norm_before_residual),
        "norm_before_residual is true",
    ),
    "rope": (lambda head: changed(head, rope_theta=1e3), "rope base: rope_theta is 10000"),
    "d2t absolute": (
        lambda head: tensors(head, d2t=head.d2t + torch.arange(len(head.d2t))),
        "d2t is absolute",
    ),
    "embedding": (
        lambda head: tensors(head, **{"embed_tokens.weight": head.embed_tokens.weight.flip(0)}),
        "embedding: the target's is meant",
    ),
    "output head": (
        lambda head: tensors(head, **{"lm_head.weight": head.lm_head.weight.flip(0)}),
        "output head: the target's is meant",
    ),
    "dtype": (lambda head: overflowing(head).half(), "dtype: the head needs float32"),
}


def overflowing(head: Any) -> Any:
    """The same drafts in float32: what `fc` gives is normed before anything else reads it. In
    float16 that is beyond the largest number."""
    assert head.config.norm_before_residual
    scale = 3e4 / float(head.fc.weight.abs().max())
    return tensors(head, **{"fc.weight": head.fc.weight * scale})


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_head_is_named(kind: str, whole: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    breaks, culprit = BROKEN[kind]
    said = found(whole, monkeypatch, breaks(whole[0].head))
    assert said.startswith("likely culprit") and culprit in said


def test_a_head_of_another_token_shift_is_named(
    whole: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours, trained on for a few steps with each feature beside its own token."""
    shifted = trained(whole[0].head, whole[1], steps=60, shifts=True)
    said = found(whole, monkeypatch, shifted)
    assert said.startswith("likely culprit: token shift")


# -- norm_output of a flat file ----------------------------------------------------------------


def with_uneven_norm(head: Any) -> Any:
    """The same head to the last step, with a norm that scales channels unevenly and an output head
    that undoes it: what the next step reads now matters."""
    generator = torch.Generator().manual_seed(0)
    scale = torch.exp(1.5 * torch.randn(head.config.hidden_size, generator=generator))
    norm = head.norm.weight * scale
    return tensors(head, **{"norm.weight": norm, "lm_head.weight": head.lm_head.weight / scale})


def flat(folder: Path, head: Any, **fields: Any) -> Path:
    """A flat file with norm_output: which form it is of, the file does not say."""
    config = json.loads((EMBEDDED / "drafter" / "config.json").read_text())
    layer = config["transformer_layer_config"]
    folder.mkdir()
    own = head.config
    outputs = [layer_id - 1 for layer_id in own.aux_layer_ids]
    (folder / "config.json").write_text(
        json.dumps(
            {
                **layer,
                "draft_vocab_size": own.draft_vocab_size,
                "norm_before_residual": own.norm_before_residual,
                "norm_output": True,
                "eagle_config": {"eagle_aux_hidden_state_layer_ids": outputs},
                **fields,
            }
        )
    )
    save_file(
        {name: t.detach().clone().contiguous() for name, t in head.state_dict().items()},
        folder / "model.safetensors",
    )
    return folder


def test_a_head_that_reads_the_state_before_its_norm_is_found(
    whole: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = flat(tmp_path / "head", with_uneven_norm(whole[0].head))
    runtime = runtime_of(folder)
    assert not runtime.head.config.norm_output and not runtime.head.config.feedback_unknown
    said = capsys.readouterr().err
    assert "drafter.norm_feedback is before" in said and said.count("norm_output") == 1


def test_a_head_that_reads_the_state_after_its_norm_is_found(whole: Any, tmp_path: Path) -> None:
    """Ours, trained on in that form for a few steps on the target's own answers."""
    runtime, texts = runtime_of(None), whole[1][: head_check.QUESTIONS]
    head = trained(changed(with_uneven_norm(runtime.head), norm_output=True), texts)
    folder = flat(tmp_path / "head", head)
    made, said = head_check.settle_feedback(
        replace(runtime, head=load_head(folder, runtime.loaded.model.config))
    )
    assert made.config.norm_output and "drafter.norm_feedback is after" in said


def trained(head: Any, texts: Any, steps: int = 40, shifts: bool = False) -> Any:
    """A copy, trained on as it is read, or with each feature beside its own token (`shifts`)."""
    made = changed(head)
    for name in list(made.state_dict()):
        if name not in ("d2t", "t2d"):
            parent, _, leaf = name.rpartition(".")
            tensor = getattr(made.get_submodule(parent), leaf).detach().clone()
            setattr(made.get_submodule(parent), leaf, torch.nn.Parameter(tensor))
    inner = [p for name, p in made.named_parameters() if name.startswith(("layers", "norm"))]
    optimizer = torch.optim.Adam(inner, lr=2e-3)
    for step in range(steps):
        text = texts[step % len(texts)]
        aux = torch.cat([text.hidden[i] for i in made.config.aux_layer_ids], dim=-1)[None].clone()
        logits = torch.full((1, len(text.tokens), made.config.vocab_size), -10.0)
        logits[0, torch.arange(len(text.tokens) - 1), text.tokens[1:]] = 10.0
        scored = torch.ones(1, len(text.tokens))
        scored[:, : text.prompt_tokens] = 0.0
        seen = text.tokens.roll(1) if shifts else text.tokens.clone()
        batch = TttBatch(seen[None], aux, logits, scored)
        loss = sum(ttt_losses(made, batch, 4).losses)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return made.requires_grad_(False).eval()


def test_where_both_readings_draft_alike_the_key_is_asked_for(whole: Any, tmp_path: Path) -> None:
    head = whole[0].head
    even = tensors(
        head,
        **{
            "norm.weight": torch.ones_like(head.norm.weight),
            "lm_head.weight": head.lm_head.weight * head.norm.weight,
        },
    )
    folder = flat(tmp_path / "head", even)
    with pytest.raises(
        SpecfitError, match=r"decides nothing\. Set drafter.norm_feedback=before or"
    ):
        runtime_of(folder)
    for key in ("before", "after"):
        runtime = runtime_of(folder, f"drafter.norm_feedback={key}")
        assert runtime.head.config.norm_output == (key == "after")


def test_a_random_target_cannot_tell(whole: Any, tmp_path: Path) -> None:
    runtime, _ = whole
    spec = runtime.spec
    model = replace(spec.config.model, source="random")
    random = replace(spec, config=replace(spec.config, model=model))
    with pytest.raises(SpecfitError, match="random target cannot tell"):
        head_check.settle_feedback(replace(runtime, spec=random))


def test_speculators_files_say_what_they_mean(whole: Any, tmp_path: Path) -> None:
    shutil.copytree(EMBEDDED / "drafter", tmp_path / "head")
    path = tmp_path / "head" / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"norm_output": True}))
    head = load_head(tmp_path / "head", whole[0].loaded.model.config)
    assert head.config.norm_output and not head.config.feedback_unknown


def test_measuring_leaves_the_target_as_it_was(whole: Any) -> None:
    runtime = runtime_of(None)
    texts = whole[1][: head_check.QUESTIONS]
    before = {k: v.copy() for k, v in runtime.target.residency().items()}
    again = answers(runtime, runtime.head.config.aux_layer_ids)
    assert all((before[k] == v).all() for k, v in runtime.target.residency().items())
    assert [t.tokens.tolist() for t in again] == [t.tokens.tolist() for t in texts]
    assert runtime.target.aux_layers == list(runtime.head.config.aux_layer_ids)
    reading = Reading("", runtime.head, runtime.head.config.aux_layer_ids)
    assert measure(reading, again).per_step > 1.5
