"""Training-time test: the unrolled forward is the inference forward, and targets line up."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from specfit.models.drafter.kv_cache import HeadCache  # noqa: E402
from specfit.models.drafter.training import DraftTargets, TttBatch, ttt_losses, unroll  # noqa: E402
from tests.models.drafter.test_head import TINY, make_head  # noqa: E402

STEPS, LENGTH = 5, 12


def make_batch(seed: int = 3, texts: int = 2) -> TttBatch:
    generator = torch.Generator().manual_seed(seed)
    return TttBatch(
        tokens=torch.randint(0, TINY.vocab_size, (texts, LENGTH), generator=generator),
        aux=torch.randn(texts, LENGTH, TINY.fused_width, generator=generator),
        target_logits=torch.randn(texts, LENGTH, TINY.vocab_size, generator=generator),
        scored=torch.ones(texts, LENGTH, dtype=torch.bool),
    )


@torch.no_grad()
def test_unrolled_equals_cached_inference() -> None:
    """For every row: extend the cache over true features, then draft along the given tokens.

    Error bound 1e-5: the same sums in another order.
    """
    head, batch = make_head(), make_batch()
    every = unroll(head, batch.tokens, batch.aux, STEPS)
    for text in range(2):
        tokens, fused = batch.tokens[text], head.fuse(batch.aux[text])
        for row in range(LENGTH - STEPS):
            cache = HeadCache()
            stable = row + 1
            out, logits = head(tokens[1 : stable + 1], fused[:stable], torch.arange(stable), cache)
            feature = out[-1:]
            torch.testing.assert_close(logits[-1], every[0][text, row], atol=1e-5, rtol=1e-5)
            for step in range(1, STEPS):
                token = tokens[row + 1 + step : row + 2 + step]
                feature, logits = head(token, feature, torch.tensor([row + step]), cache)
                expected = every[step][text, row]
                torch.testing.assert_close(logits[0], expected, atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_targets_and_mask_sit_at_the_predicted_token() -> None:
    """A head whose logits are the target's own has the target's entropy as its loss; only the
    scored token counts."""
    head, batch = make_head(), make_batch(texts=1)
    batch.scored[:] = False
    batch.scored[0, 7] = True
    result = ttt_losses(head, batch, STEPS)
    assert result.counted == [1] * STEPS
    logits = unroll(head, batch.tokens, batch.aux, STEPS)
    ids = head.t2d.nonzero().flatten()
    at = batch.target_logits[0, 6]  # the target's opinion of token 7
    probs = at[ids].softmax(-1)
    reachable = bool(head.t2d[at.argmax()])
    for step in range(STEPS):
        row = logits[step][0, 7 - 2 - step]  # row t of step i predicts token t + 2 + i
        expected = -(probs * row.log_softmax(-1)).sum() if reachable else torch.tensor(0.0)
        torch.testing.assert_close(result.losses[step], expected)


@torch.no_grad()
def test_targets_are_restricted_to_the_draft_vocabulary() -> None:
    head, batch = make_head(), make_batch()
    head.t2d.zero_()
    head.t2d[::2] = True
    targets = DraftTargets.of(head, batch)
    expected = batch.target_logits[..., ::2].softmax(-1)
    torch.testing.assert_close(targets.probs, expected)
    assert torch.equal(targets.reachable, batch.target_logits.argmax(-1) % 2 == 0)


def test_training_reduces_the_loss_of_every_step() -> None:
    head, batch = make_head(), make_batch()
    head.embed_tokens.weight.requires_grad_(False)
    trained = [p for p in head.parameters() if p.requires_grad]
    optim = torch.optim.Adam(trained, lr=1e-2)
    history = []
    for _ in range(30):
        losses = ttt_losses(head, batch, STEPS).losses
        history.append([loss.item() for loss in losses])
        optim.zero_grad()
        torch.stack(losses).sum().backward()
        optim.step()
    assert all(last < first for first, last in zip(history[0], history[-1], strict=True))
