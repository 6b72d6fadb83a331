"""The encoder of the twins, which differ in how they learn the tokens' places alone."""

import dataclasses
import math

import torch
import torch.nn.functional as F
from torch import nn

POSITIONS = ("sinusoidal", "learned", "none", "rotary", "relative", "alibi")
NORM_ORDERS = ("post", "pre")
BASE = 10000  # of the sinusoids' and the rotations' frequencies
NUM_BUCKETS, MAX_DISTANCE = 32, 128  # T5's


@dataclasses.dataclass(frozen=True)
class Config:
    position: str
    d_model: int = 128
    d_ff: int = 512
    num_layers: int = 6
    num_heads: int = 4
    vocab_size: int = 8192
    max_positions: int = 128
    layer_norm_eps: float = 1e-5
    learned_std: float = 0.2  # of the learned table before training
    norm_order: str = "post"
    added_before: tuple = (1,)  # the blocks before which position vectors are added
    embedding_norm: bool = False  # a LayerNorm of the sum of both embeddings, as in BERT

    @property
    def embedding_scale(self):
        return math.sqrt(self.d_model)

    @property
    def head_dim(self):
        return self.d_model // self.num_heads


def angles(num_positions, width):
    """p·base^(-2i/width) of positions p and pairs of columns i, in double: [T, width/2]."""
    position = torch.arange(num_positions, dtype=torch.float64)[:, None]  # [T, 1]
    pair = torch.arange(0, width, 2, dtype=torch.float64)  # [width/2]
    return position * BASE ** (-pair / width)


def sinusoidal_table(num_positions, d_model):
    """The paper's table [T, C]: column 2i is sin(p·base^(-2i/d)), column 2i+1 its cosine."""
    angle = angles(num_positions, d_model)
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1).float()


def rotation_table(num_positions, head_dim):
    """[2, T, D]: what a head's columns, and the others of their pairs, are multiplied by.

    Su et al. 2021, over the whole head, where the pair of column i is column i + D/2.
    """
    angle = angles(num_positions, head_dim)
    cos, sin = angle.cos(), angle.sin()
    return torch.stack([torch.cat([cos, cos], 1), torch.cat([-sin, sin], 1)]).float()


def rotate(x, table):  # [B, H, T, D], [2, T, D] -> [B, H, T, D]
    a, b = x.chunk(2, dim=-1)
    return x * table[0] + torch.cat([b, a], dim=-1) * table[1]


def offsets(num_positions):
    """j - i of query i and key j: [T, T]."""
    position = torch.arange(num_positions)
    return position - position[:, None]


def bucket_table(num_positions):
    """T5's bucket of query i and key j [T, T], where both directions have half of the buckets.

    Raffel et al. 2020; of a half, the first half hold one distance each, and the others grow
    logarithmically up to MAX_DISTANCE.
    """
    offset = offsets(num_positions)
    side = NUM_BUCKETS // 2
    exact = side // 2
    distance = offset.abs()
    far = torch.log(distance.clamp_min(1).float() / exact) / math.log(MAX_DISTANCE / exact)
    far = (exact + (far * (side - exact)).long()).clamp_max(side - 1)
    return torch.where(distance < exact, distance, far) + side * (offset > 0)


def alibi_table(num_positions, num_heads):
    """-slope·|j - i| [H, T, T], with slopes 2^(-8/H), 2^(-16/H), … (Press et al. 2022)."""
    slope = 2.0 ** (-8 * torch.arange(1, num_heads + 1) / num_heads)
    return -slope[:, None, None] * offsets(num_positions).abs()


def attend(q, k, v, bias, trace):  # [..., H, T, D] -> [..., H, T, D]
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])  # [..., H, T, T]
    pattern = torch.softmax(scores if bias is None else scores + bias, dim=-1)
    if trace is not None:
        trace["attentions"].append(pattern)
    return pattern @ v


class Attention(nn.Module):
    attend = staticmethod(attend)  # stacked.py sets another

    def __init__(self, config):
        super().__init__()
        self.num_heads = config.num_heads
        self.q, self.k, self.v, self.out = (
            nn.Linear(config.d_model, config.d_model) for _ in range(4)
        )

    def forward(self, x, bias, rotation, trace):  # [..., T, C]
        def heads(linear):  # [..., H, T, D]
            return linear(x).unflatten(-1, (self.num_heads, -1)).transpose(-3, -2)

        q, k, v = heads(self.q), heads(self.k), heads(self.v)
        if rotation is not None:
            q, k = rotate(q, rotation), rotate(k, rotation)
        return self.out(self.attend(q, k, v, bias, trace).transpose(-3, -2).flatten(-2))


class Mlp(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.up = nn.Linear(config.d_model, config.d_ff)
        self.down = nn.Linear(config.d_ff, config.d_model)

    def forward(self, x):
        return self.down(F.gelu(self.up(x)))


class Block(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.pre_norm = config.norm_order == "pre"
        self.attn = Attention(config)
        self.attn_norm = nn.LayerNorm(config.d_model, config.layer_norm_eps)
        self.mlp = Mlp(config)
        self.mlp_norm = nn.LayerNorm(config.d_model, config.layer_norm_eps)

    def forward(self, x, *attention):
        if self.pre_norm:
            x = x + self.attn(self.attn_norm(x), *attention)
            return x + self.mlp(self.mlp_norm(x))
        x = self.attn_norm(x + self.attn(x, *attention))
        return self.mlp_norm(x + self.mlp(x))


class MlmHead(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.dense = nn.Linear(config.d_model, config.d_model)
        self.norm = nn.LayerNorm(config.d_model, config.layer_norm_eps)
        self.bias = nn.Parameter(torch.zeros(config.vocab_size))

    def forward(self, h, embedding):  # [..., N, C], [..., V, C] -> [..., N, V]
        return self.norm(F.gelu(self.dense(h))) @ embedding.mT + self.bias.unsqueeze(-2)


class Encoder(nn.Module):
    """Parameters are named as in model.safetensors, so the state dict is the file."""

    def __init__(self, config, seed):
        super().__init__()
        self.config = config
        self.token_embedding = nn.Embedding(config.vocab_size, config.d_model)
        if config.position == "learned":
            self.position_embedding = nn.Embedding(config.max_positions, config.d_model)
        elif config.position == "relative":
            self.relative_bias = nn.Embedding(NUM_BUCKETS, config.num_heads)  # of all layers
        elif config.position not in POSITIONS:
            raise ValueError(f"position is {config.position!r}, not one of {POSITIONS}")
        T = config.max_positions
        tables = {
            "sinusoidal": lambda: sinusoidal_table(T, config.d_model),
            "rotary": lambda: rotation_table(T, config.head_dim),
            "relative": lambda: bucket_table(T),
            "alibi": lambda: alibi_table(T, config.num_heads),
        }
        if config.position in tables:
            self.register_buffer("table", tables[config.position](), persistent=False)
        if config.embedding_norm:
            self.embedding_norm = nn.LayerNorm(config.d_model, config.layer_norm_eps)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.num_layers))
        if config.norm_order == "pre":
            self.final_norm = nn.LayerNorm(config.d_model, config.layer_norm_eps)
        elif config.norm_order != "post":
            raise ValueError(f"norm_order is {config.norm_order!r}, not one of {NORM_ORDERS}")
        self.mlm = MlmHead(config)
        self._initialise(seed)

    @torch.no_grad()
    def _initialise(self, seed):
        """Two generators, which no two seeds share: what a twin has alone must not disturb the rest."""
        shared = torch.Generator().manual_seed(2 * seed - 1)
        own = torch.Generator().manual_seed(2 * seed)
        for name, parameter in self.named_parameters():
            if name == "token_embedding.weight":
                parameter.normal_(0, self.config.d_model**-0.5, generator=shared)
            elif name == "position_embedding.weight":
                parameter.normal_(0, self.config.learned_std, generator=own)
            elif name == "relative_bias.weight":  # as in Transformers' T5
                parameter.normal_(0, self.config.d_model**-0.5, generator=own)
            elif parameter.dim() == 2:  # Xavier, as in the paper's own code
                bound = math.sqrt(6 / sum(parameter.shape))
                parameter.uniform_(-bound, bound, generator=shared)
            elif name.endswith("norm.weight"):
                parameter.fill_(1)
            else:
                parameter.zero_()

    def positions(self, position_ids):  # [..., T] -> [..., T, C]
        if self.config.position == "sinusoidal":
            return self.table[position_ids]
        if self.config.position == "learned":
            return self.position_embedding(position_ids)
        return 0

    def score_bias(self, T):  # [H, T, T]
        if self.config.position == "alibi":
            return self.table[:, :T, :T]
        if self.config.position == "relative":
            return self.relative_bias(self.table[:T, :T]).permute(2, 0, 1)
        return None

    def forward(self, token_ids, padding=None, trace=None):
        """[B, T] ids, [B, T] bool where padding -> [B, T, C]; a `trace` dict of lists is filled."""
        T = token_ids.shape[1]
        bias = self.score_bias(T)
        if padding is not None and padding.any():
            masked = torch.zeros(padding.shape).masked_fill(padding, -torch.inf)[:, None, None, :]
            bias = masked if bias is None else bias + masked
        return self.run(token_ids, torch.arange(T), bias, trace)

    def run(self, token_ids, position_ids, bias, trace=None):
        """[..., T] ids, [..., T] or [T] positions, what is added to scores -> [..., T, C]."""
        T = token_ids.shape[-1]
        rotation = self.table[:, :T] if self.config.position == "rotary" else None
        positions = self.positions(position_ids)
        x = self.config.embedding_scale * self.token_embedding(token_ids)  # [..., T, C]
        for number, block in enumerate(self.blocks, 1):
            if number in self.config.added_before:
                x = x + positions
            if number == 1 and self.config.embedding_norm:
                x = self.embedding_norm(x)
            if trace is not None:
                trace["hidden_states"].append(x)
            x = block(x, bias, rotation, trace)
        if self.config.norm_order == "pre":
            x = self.final_norm(x)
        if trace is not None:
            trace["hidden_states"].append(x)
        return x

    def mlm_logits(self, h):  # [..., N, C] -> [..., N, V]
        return self.mlm(h, self.token_embedding.weight)
