"""The EAGLE-3 head: pairing, norms, RoPE and the caller's cache. Tiny shapes, fp32."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

torch = pytest.importorskip("torch")

from specfit.base.types import DraftTree  # noqa: E402
from specfit.models.drafter import eagle  # noqa: E402
from specfit.models.drafter.head import EagleHead, HeadConfig, rotate  # noqa: E402
from specfit.models.drafter.kv_cache import HeadCache  # noqa: E402

TINY = HeadConfig(
    hidden_size=16,
    intermediate_size=24,
    num_attention_heads=4,
    num_key_value_heads=2,
    head_dim=8,
    vocab_size=40,
    draft_vocab_size=20,
    aux_layer_ids=(2, 4, 5),
    norm_before_residual=True,
    target_hidden_size=16,
)
ROWS = 9


def make_head(config: HeadConfig = TINY, seed: int = 0) -> EagleHead:
    """Random weights, norm weights included, so that a skipped norm shows."""
    torch.manual_seed(seed)
    head = EagleHead(config)
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.4)
    return head.eval()


def inputs(seed: int = 1) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randint(0, TINY.vocab_size, (ROWS,), generator=generator)
    return tokens, torch.randn(ROWS, TINY.fused_width, generator=generator), torch.arange(ROWS)


def close(a: torch.Tensor, b: torch.Tensor) -> None:
    torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    "config",
    [
        TINY,
        replace(TINY, norm_before_residual=False),
        replace(TINY, layer_type="qwen3"),
        replace(TINY, norm_output=True),
        replace(TINY, norm_before_fc=True),
        replace(TINY, fc_norm=True),
        replace(TINY, sliding_window=3),
    ],
    ids=["plain", "residual", "qwen3", "norm_output", "norm_before_fc", "fc_norm", "window"],
)
@torch.no_grad()
def test_cached_steps_equal_one_causal_forward(config: HeadConfig) -> None:
    head = make_head(config)
    tokens, aux, positions = inputs()
    fused = head.fuse(aux)
    out, logits = head(tokens, fused, positions)
    cache = HeadCache()
    for t in range(ROWS):
        row = slice(t, t + 1)
        step_out, step_logits = head(tokens[row], fused[row], positions[row], cache)
        close(step_out[0], out[t])
        close(step_logits[0], logits[t])
    assert len(cache) == ROWS


@torch.no_grad()
def test_written_out_formula() -> None:
    """Section 2.3 of the specification once more, for one row, without the modules."""
    head = make_head()
    tokens, aux, positions = inputs()

    def norm(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return x / (x.pow(2).mean(-1, keepdim=True) + TINY.rms_norm_eps).sqrt() * weight

    w = dict(head.named_parameters())
    g = aux[:1] @ w["fc.weight"].T
    e = norm(w["embed_tokens.weight"][tokens[:1]], w["layers.0.input_layernorm.weight"])
    h = norm(g, w["layers.0.hidden_norm.weight"])
    value = torch.cat([e, h], -1) @ w["layers.0.self_attn.v_proj.weight"].T  # attends to itself
    heads = value.view(2, 8).repeat_interleave(2, dim=0).view(1, 32)
    r = h + heads @ w["layers.0.self_attn.o_proj.weight"].T
    m = norm(r, w["layers.0.post_attention_layernorm.weight"])
    gate, up = (m @ w[f"layers.0.mlp.{n}_proj.weight"].T for n in ("gate", "up"))
    expected = r + (torch.nn.functional.silu(gate) * up) @ w["layers.0.mlp.down_proj.weight"].T
    out, logits = head(tokens[:1], head.fuse(aux[:1]), positions[:1])
    close(out, expected)
    close(logits, norm(expected, w["norm.weight"]) @ w["lm_head.weight"].T)


@torch.no_grad()
def test_norm_before_residual_values_differ() -> None:
    before, after = make_head(), make_head(replace(TINY, norm_before_residual=False))
    after.load_state_dict(before.state_dict())
    tokens, aux, positions = inputs()
    first = before(tokens, before.fuse(aux), positions)[1]
    second = after(tokens, after.fuse(aux), positions)[1]
    assert (first - second).abs().max() > 0.1


@torch.no_grad()
def test_norm_output_hands_on_what_the_logits_saw() -> None:
    plain, normed = make_head(), make_head(replace(TINY, norm_output=True))
    tokens, aux, positions = inputs()
    fused = plain.fuse(aux)
    out, logits = plain(tokens, fused, positions)
    feature, same_logits = normed(tokens, fused, positions)
    close(logits, same_logits)
    close(feature, plain.norm(out))


@torch.no_grad()
def test_constant_position_shift_changes_nothing() -> None:
    head = make_head()
    tokens, aux, positions = inputs()
    fused = head.fuse(aux)
    close(head(tokens, fused, positions)[1], head(tokens, fused, positions + 57)[1])


@torch.no_grad()
def test_positions_and_theta_matter() -> None:
    head, other = make_head(), make_head(replace(TINY, rope_theta=1e6))
    tokens, aux, positions = inputs()
    fused = head.fuse(aux)
    logits = head(tokens, fused, positions)[1]
    assert (logits - head(tokens, fused, positions * 2)[1]).abs().max() > 1e-3
    assert (logits - other(tokens, fused, positions)[1]).abs().max() > 1e-3


def test_rope_beyond_the_files_limit() -> None:
    """Positions above max_position_embeddings still rotate, by angles of their own."""
    x = torch.ones(1, 2, 8)
    far = torch.tensor([TINY.max_position_embeddings + 5, 3 * TINY.max_position_embeddings])
    rotated = rotate(x, far, 1e4)
    assert not torch.equal(rotated[:, 0], rotated[:, 1])
    torch.testing.assert_close(rotated.norm(dim=-1), x.norm(dim=-1))


@torch.no_grad()
def test_pairing_with_the_wrong_token_shows() -> None:
    """Rows pair feature t with token t + 1; shifting the tokens by one must change the output."""
    head = make_head()
    tokens, aux, positions = inputs()
    fused = head.fuse(aux)
    shifted = head(tokens.roll(1), fused, positions)[1]
    assert (head(tokens, fused, positions)[1] - shifted).abs().max() > 1e-2


@torch.no_grad()
def test_crop_and_extend_equals_a_fresh_extend() -> None:
    """Draft entries are dropped and replaced by true features: no trace of them stays."""
    head = make_head()
    tokens, aux, positions = inputs()
    fused = head.fuse(aux)
    cache = HeadCache()
    out, _ = head(tokens[:5], fused[:5], positions[:5], cache)
    head(tokens[5:7], out[3:5], positions[5:7], cache)  # two draft rows on their own features
    cache.crop(5)
    head(tokens[5:], fused[5:], positions[5:], cache)
    fresh = HeadCache()
    head(tokens, fused, positions, fresh)
    close(cache.keys, fresh.keys)
    close(cache.values, fresh.values)
    assert torch.equal(cache.positions, fresh.positions)


@torch.no_grad()
def test_tree_mask_equals_separate_branches() -> None:
    """Two siblings in one call, hidden from each other, equal two calls with a child each."""
    head = make_head()
    tokens, aux, positions = inputs()
    fused = head.fuse(aux)
    cache = HeadCache()
    out, _ = head(tokens[:5], fused[:5], positions[:5], cache)
    mask = torch.ones(2, 7, dtype=torch.bool)
    mask[0, 6] = mask[1, 5] = False
    children, parent = tokens[5:7], out[4:5]
    both, _ = head(children, parent.expand(2, -1), torch.tensor([5, 5]), cache, mask)
    for i in range(2):
        cache.crop(5)
        alone, _ = head(children[i : i + 1], parent, torch.tensor([5]), cache)
        close(both[i], alone[0])


@torch.no_grad()
def test_batch_dimension_equals_rows_one_by_one() -> None:
    head = make_head()
    first, second = inputs(1), inputs(2)
    tokens = torch.stack([first[0], second[0]])
    fused = head.fuse(torch.stack([first[1], second[1]]))
    logits = head(tokens, fused, first[2])[1]
    close(logits[1], head(second[0], head.fuse(second[1]), second[2])[1])


def test_cache_grows_and_refuses_a_longer_crop() -> None:
    cache = HeadCache()
    for t in range(200):
        block = torch.full((2, 1, 8), float(t))
        cache.append(block, -block, torch.tensor([t]))
    assert cache.keys.shape == (2, 200, 8)
    assert torch.equal(cache.keys[0, :, 0], torch.arange(200.0))
    assert torch.equal(cache.values[1, :, 3], -torch.arange(200.0))
    with pytest.raises(AssertionError, match="cannot crop"):
        cache.crop(201)


# -- the form a GPU uses ---------------------------------------------------------------------------


def test_the_fused_form_is_the_plain_one() -> None:
    """A batch dimension and the last row alone; a CPU may round the last bit otherwise."""
    head = make_head()
    tokens, aux, positions = inputs()
    after, logits = head(tokens, head.fuse(aux), positions)
    fused = head(tokens, head.fuse(aux), positions, fused=True)
    close(fused[0], after)
    close(fused[1], logits)
    last = head(tokens, head.fuse(aux), positions, fused=True, last_only=True)
    assert last[0].shape == (1, 16) and last[1].shape == (1, 20)
    close(last[1], logits[-1:])


def test_a_fused_drafter_grows_the_same_tree_from_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(eagle, "HEAD_CHUNK", 4)
    head = make_head()
    tokens, aux, _ = inputs()
    trees = []
    for fused in (False, True):
        drafter = eagle.EagleDrafter(head, 3, 2, torch.device("cpu"))
        drafter._is_fused = fused
        drafter.extend(tokens.numpy(), aux)
        tree = DraftTree.empty()
        for _ in range(3):
            tree = drafter.grow(tree)
        trees.append((tree.tokens.tolist(), tree.parents.tolist(), drafter.length))
    assert trees[0] == trees[1]


def test_the_memory_of_2048_tokens_is_bounded_by_what_is_counted() -> None:
    """Allocations of a head of the real proportions, at a quarter of the real width."""
    config = replace(
        TINY,
        hidden_size=512,
        target_hidden_size=512,
        intermediate_size=1536,
        num_attention_heads=8,
        num_key_value_heads=1,
        head_dim=128,
        vocab_size=4000,
        draft_vocab_size=4000,
    )
    head, rows = make_head(config), 2048
    aux, tokens = torch.randn(rows, config.fused_width), torch.zeros(rows, dtype=torch.long)
    peaks = []
    for fused in (True, False):
        drafter = eagle.EagleDrafter(head, 3, 2, torch.device("cpu"))
        drafter._is_fused = fused
        peaks.append(peak_bytes(lambda: drafter.extend(tokens.numpy(), aux)))  # noqa: B023
    assert peaks[0] <= head.working_bytes(rows, eagle.HEAD_CHUNK, 4) < peaks[1]
    assert peaks[0] * 4 < peaks[1]


def peak_bytes(work: Callable[[], None]) -> int:
    """Most bytes that torch held at once, as its allocator reports them."""
    with torch.profiler.profile(profile_memory=True) as profile:
        work()
    held = most = 0
    for event in profile.profiler.kineto_results.events():  # type: ignore[union-attr]
        if event.name() == "[memory]":
            held += event.nbytes()
            most = max(most, held)
    return most
