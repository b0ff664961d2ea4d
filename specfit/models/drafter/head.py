"""The EAGLE-3 draft head: one transformer layer over (token embedding, target feature) pairs.

Letters: T rows, S keys (cached and new), H hidden size, DV draft vocabulary, V target vocabulary,
A heads, KV key/value heads, D head dimension. `...` is nothing at inference, the batch in training.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from specfit.models.drafter.kv_cache import HeadCache


@dataclass(frozen=True)
class HeadConfig:
    """Everything a head's file says about its arithmetic. `layer_type` is the HF model type."""

    hidden_size: int
    intermediate_size: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    vocab_size: int
    draft_vocab_size: int
    aux_layer_ids: tuple[int, ...]
    norm_before_residual: bool
    target_hidden_size: int
    layer_type: str = "llama"
    num_hidden_layers: int = 1
    hidden_act: str = "silu"
    rms_norm_eps: float = 1e-6
    rope_theta: float = 10000.0
    max_position_embeddings: int = 4096
    attention_bias: bool = False
    mlp_bias: bool = False
    sliding_window: int | None = None
    norm_before_fc: bool = False
    fc_norm: bool = False
    norm_output: bool = False  # the next step reads the state after the norm
    feedback_unknown: bool = False  # a flat file: trainers differ in what its norm_output means

    def __post_init__(self) -> None:
        assert self.layer_type in ("llama", "qwen3"), f"unknown layer type {self.layer_type!r}"
        assert self.num_hidden_layers == 1, "only heads of one layer are supported"
        assert self.hidden_act == "silu", f"unsupported activation {self.hidden_act!r}"
        assert not (self.norm_before_fc and self.fc_norm), "norm_before_fc excludes fc_norm"
        assert self.num_attention_heads % self.num_key_value_heads == 0, "uneven query groups"
        assert self.draft_vocab_size <= self.vocab_size, "draft vocabulary above the target's"

    @property
    def fused_width(self) -> int:
        """Width of the concatenated target features, [.., this] -> fc -> [.., H]."""
        return len(self.aux_layer_ids) * self.target_hidden_size


class RMSNorm(nn.Module):
    """Plain weight (not 1 + w), statistics in fp32."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        wide = x.float()
        scale = torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps)
        return self.weight * (wide * scale).to(x.dtype)


def rotate(x: Tensor, position_ids: Tensor, theta: float) -> Tensor:
    """Rotate-half RoPE of x [..., A, T, D] at position_ids [..., T].

    Cosines are computed for the positions asked for: a table cut at the head file's
    max_position_embeddings (often 2048) would silently ruin longer contexts.
    """
    half = x.shape[-1] // 2
    steps = torch.arange(half, dtype=torch.float32, device=x.device)
    frequencies = theta ** (-steps / half)
    angles = position_ids.to(torch.float32)[..., None] * frequencies  # [..., T, D/2]
    cos, sin = angles.cos().unsqueeze(-3), angles.sin().unsqueeze(-3)  # [..., 1, T, D/2]
    low, high = x[..., :half].float(), x[..., half:].float()
    return torch.cat((low * cos - high * sin, high * cos + low * sin), dim=-1).to(x.dtype)


class Attention(nn.Module):
    """Projections only: who attends to whom differs between inference and training."""

    def __init__(self, config: HeadConfig) -> None:
        super().__init__()
        self.config = config
        wide, d = 2 * config.hidden_size, config.head_dim
        heads, kv_heads, bias = (
            config.num_attention_heads,
            config.num_key_value_heads,
            config.attention_bias,
        )
        self.q_proj = nn.Linear(wide, heads * d, bias=bias)
        self.k_proj = nn.Linear(wide, kv_heads * d, bias=bias)
        self.v_proj = nn.Linear(wide, kv_heads * d, bias=bias)
        self.o_proj = nn.Linear(heads * d, config.hidden_size, bias=bias)
        if config.layer_type == "qwen3":
            self.q_norm = RMSNorm(d, config.rms_norm_eps)
            self.k_norm = RMSNorm(d, config.rms_norm_eps)

    def project(self, z: Tensor, position_ids: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """z [..., T, 2H] -> rotated q [..., A, T, D], rotated k and v [..., KV, T, D]."""
        d, theta = self.config.head_dim, self.config.rope_theta
        q, k, v = (
            projection(z).unflatten(-1, (-1, d))
            for projection in (self.q_proj, self.k_proj, self.v_proj)
        )
        if self.config.layer_type == "qwen3":
            q, k = self.q_norm(q), self.k_norm(k)
        q, k, v = (x.transpose(-2, -3) for x in (q, k, v))
        return rotate(q, position_ids, theta), rotate(k, position_ids, theta), v

    def widen(self, x: Tensor) -> Tensor:
        """[..., KV, S, D] -> [..., A, S, D]: each key/value head serves its query group."""
        group = self.config.num_attention_heads // self.config.num_key_value_heads
        return x.repeat_interleave(group, dim=-3)

    def output(self, mixed: Tensor) -> Tensor:
        """[..., A, T, D] -> [..., T, H]."""
        return self.o_proj(mixed.transpose(-2, -3).flatten(-2))


class MLP(nn.Module):
    def __init__(self, config: HeadConfig) -> None:
        super().__init__()
        h, i, bias = config.hidden_size, config.intermediate_size, config.mlp_bias
        self.gate_proj = nn.Linear(h, i, bias=bias)
        self.up_proj = nn.Linear(h, i, bias=bias)
        self.down_proj = nn.Linear(i, h, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class HeadLayer(nn.Module):
    def __init__(self, config: HeadConfig) -> None:
        super().__init__()
        h, eps = config.hidden_size, config.rms_norm_eps
        self.norm_before_residual = config.norm_before_residual
        self.input_layernorm = RMSNorm(h, eps)  # of the token embedding
        self.hidden_norm = RMSNorm(h, eps)  # of the feature
        self.self_attn = Attention(config)
        self.post_attention_layernorm = RMSNorm(h, eps)
        self.mlp = MLP(config)

    def enter(self, embeddings: Tensor, features: Tensor) -> tuple[Tensor, Tensor]:
        """Two [..., T, H] -> attention input [..., T, 2H], embedding first, and residual."""
        normed = self.hidden_norm(features)
        z = torch.cat((self.input_layernorm(embeddings), normed), dim=-1)
        return z, normed if self.norm_before_residual else features

    def leave(self, residual: Tensor, mixed: Tensor) -> Tensor:
        """Residual [..., T, H] and attention result [..., A, T, D] -> out [..., T, H]."""
        r = residual + self.self_attn.output(mixed)
        return r + self.mlp(self.post_attention_layernorm(r))


class EagleHead(nn.Module):
    """Row t holds the embedding of token x_{t+1} and the feature of x_t; it predicts x_{t+2}."""

    d2t: Tensor
    t2d: Tensor

    def __init__(self, config: HeadConfig) -> None:
        super().__init__()
        self.config = config
        h, eps = config.hidden_size, config.rms_norm_eps
        self.embed_tokens = nn.Embedding(config.vocab_size, h)
        self.fc = nn.Linear(config.fused_width, h, bias=False)
        if config.norm_before_fc:
            self.input_norm = RMSNorm(config.fused_width, eps)
        if config.fc_norm:
            self.fc_norm = nn.ModuleList(
                RMSNorm(config.target_hidden_size, eps) for _ in config.aux_layer_ids
            )
        self.layers = nn.ModuleList([HeadLayer(config)])
        self.norm = RMSNorm(h, eps)
        self.lm_head = nn.Linear(h, config.draft_vocab_size, bias=False)
        # target id = draft id + d2t[draft id]; t2d marks the target ids the draft can say
        self.register_buffer("d2t", torch.zeros(config.draft_vocab_size, dtype=torch.int64))
        t2d = torch.zeros(config.vocab_size, dtype=torch.bool)
        t2d[: config.draft_vocab_size] = True
        self.register_buffer("t2d", t2d)

    @property
    def layer(self) -> HeadLayer:
        layer = self.layers[0]
        assert isinstance(layer, HeadLayer)
        return layer

    def fuse(self, aux: Tensor) -> Tensor:
        """Concatenated target features [..., T, 3H], low|mid|high -> [..., T, H].

        Only for target features: the head's own output enters the next step as it is.
        """
        if self.config.norm_before_fc:
            aux = self.input_norm(aux)
        if self.config.fc_norm:
            parts = aux.split(self.config.target_hidden_size, dim=-1)
            normed = [n(p) for n, p in zip(self.fc_norm, parts, strict=True)]
            aux = torch.cat(normed, dim=-1)
        return self.fc(aux)

    def target_ids(self, draft_ids: Tensor) -> Tensor:
        """Draft vocabulary ids -> target token ids, same shape."""
        return draft_ids + self.d2t[draft_ids]

    def read_out(self, out: Tensor) -> tuple[Tensor, Tensor]:
        """Layer output [..., T, H] -> (next step's feature [..., T, H], logits [..., T, DV])."""
        normed = self.norm(out)
        return normed if self.config.norm_output else out, self.lm_head(normed)

    def working_bytes(self, context: int, chunk: int, itemsize: int) -> int:
        """Most bytes beside the weights while `context` rows are run, `chunk` at a time and fused.

        Keys and values as they grow (old and new), widened to every query head, the mask as the
        kernel takes it, and a chunk's activations, norms in float32.
        """
        c, rows = self.config, min(chunk, context)
        heads = c.num_attention_heads * c.head_dim
        kv_heads = c.num_key_value_heads * c.head_dim
        cached = (3 + 1) * 2 * context * kv_heads * itemsize
        widened = 2 * context * heads * itemsize
        mask = rows * context * (2 + itemsize)
        wide = 3 * c.fused_width + 12 * c.hidden_size + 6 * heads + 4 * c.intermediate_size
        logits = 4 * c.draft_vocab_size * 4 * 16
        return cached + widened + mask + rows * wide * 4 + logits

    def forward(
        self,
        tokens: Tensor,
        features: Tensor,
        position_ids: Tensor,
        cache: HeadCache | None = None,
        attention_mask: Tensor | None = None,
        fused: bool = False,
        last_only: bool = False,
    ) -> tuple[Tensor, Tensor]:
        """Run T rows; their keys and values are appended to `cache`.

        tokens: ids [..., T] or embeddings [..., T, H]; features: fused or the head's own
        [..., T, H]; position_ids [T]; attention_mask: bool [T, S] over cached then new rows, True =
        attend, None = causal. fused: with a batch dimension, which fused kernels need and which a
        CPU rounds otherwise; last_only: only the last row is read out. Returns (feature for the
        next step [..., T, H], logits [..., T, DV]).
        """
        embeddings = tokens if tokens.is_floating_point() else self.embed_tokens(tokens)
        z, residual = self.layer.enter(embeddings, features)
        attention = self.layer.self_attn
        q, k, v = attention.project(z, position_ids)
        cache = HeadCache() if cache is None else cache
        cache.append(k, v, position_ids)
        mask = self._mask(position_ids, cache, attention_mask)
        keys, values = attention.widen(cache.keys), attention.widen(cache.values)
        if last_only:
            q, residual, mask = q[..., -1:, :], residual[..., -1:, :], mask[..., -1:, :]
        if fused:
            mixed = F.scaled_dot_product_attention(
                q[None], keys[None], values[None], attn_mask=mask[None, None]
            )[0]
        else:
            mixed = F.scaled_dot_product_attention(q, keys, values, attn_mask=mask)
        return self.read_out(self.layer.leave(residual, mixed))

    def _mask(self, position_ids: Tensor, cache: HeadCache, mask: Tensor | None) -> Tensor:
        """Bool [T, S]: the caller's or causal, cut to the sliding window where the head has one."""
        rows, keys = position_ids.shape[-1], len(cache)
        if mask is None:
            mask = torch.ones(rows, keys, dtype=torch.bool, device=position_ids.device)
            mask = mask.tril(keys - rows)
        assert mask.shape[-2:] == (rows, keys), f"mask {tuple(mask.shape)} for {rows} x {keys}"
        if self.config.sliding_window is not None:
            age = position_ids[:, None] - cache.positions[None, :]
            mask = mask & (age < self.config.sliding_window)
        return mask
