"""The post-norm encoder of the three twins, which differ in the position source alone."""

import dataclasses
import math

import torch
import torch.nn.functional as F
from torch import nn

POSITIONS = ("sinusoidal", "learned", "none")


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

    @property
    def embedding_scale(self):
        return math.sqrt(self.d_model)

    @property
    def head_dim(self):
        return self.d_model // self.num_heads


def sinusoidal_table(num_positions, d_model, base=10000.0):
    """The paper's table [T, C]: column 2i is sin(p·base^(-2i/d)), column 2i+1 its cosine."""
    position = torch.arange(num_positions, dtype=torch.float64)[:, None]  # [T, 1]
    pair = torch.arange(0, d_model, 2, dtype=torch.float64)  # [C/2]
    angle = position * base ** (-pair / d_model)  # [T, C/2]
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1).float()


class Attention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.num_heads = config.num_heads
        self.q, self.k, self.v, self.out = (
            nn.Linear(config.d_model, config.d_model) for _ in range(4)
        )

    def forward(self, x, bias, trace):
        B, T, C = x.shape

        def heads(linear):  # [B, H, T, D]
            return linear(x).view(B, T, self.num_heads, -1).transpose(1, 2)

        q, k, v = heads(self.q), heads(self.k), heads(self.v)
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])  # [B, H, T, T]
        pattern = torch.softmax(scores if bias is None else scores + bias, dim=-1)
        if trace is not None:
            trace["attentions"].append(pattern)
        return self.out((pattern @ v).transpose(1, 2).reshape(B, T, C))


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
        self.attn = Attention(config)
        self.attn_norm = nn.LayerNorm(config.d_model, config.layer_norm_eps)
        self.mlp = Mlp(config)
        self.mlp_norm = nn.LayerNorm(config.d_model, config.layer_norm_eps)

    def forward(self, x, bias, trace):
        x = self.attn_norm(x + self.attn(x, bias, trace))
        return self.mlp_norm(x + self.mlp(x))


class MlmHead(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.dense = nn.Linear(config.d_model, config.d_model)
        self.norm = nn.LayerNorm(config.d_model, config.layer_norm_eps)
        self.bias = nn.Parameter(torch.zeros(config.vocab_size))

    def forward(self, h, embedding):  # [N, C], [V, C] -> [N, V]
        return F.linear(self.norm(F.gelu(self.dense(h))), embedding, self.bias)


class Encoder(nn.Module):
    """Parameters are named as in model.safetensors, so the state dict is the file."""

    def __init__(self, config, seed):
        super().__init__()
        self.config = config
        self.token_embedding = nn.Embedding(config.vocab_size, config.d_model)
        if config.position == "learned":
            self.position_embedding = nn.Embedding(config.max_positions, config.d_model)
        elif config.position == "sinusoidal":
            table = sinusoidal_table(config.max_positions, config.d_model)
            self.register_buffer("sinusoidal", table, persistent=False)
        elif config.position != "none":
            raise ValueError(f"position is {config.position!r}, not one of {POSITIONS}")
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.num_layers))
        self.mlm = MlmHead(config)
        self._initialise(seed)

    @torch.no_grad()
    def _initialise(self, seed):
        """Two generators: the position table must not disturb what the twins share."""
        shared = torch.Generator().manual_seed(seed)
        own = torch.Generator().manual_seed(seed + 1)
        for name, parameter in self.named_parameters():
            if name == "token_embedding.weight":
                parameter.normal_(0, self.config.d_model**-0.5, generator=shared)
            elif name == "position_embedding.weight":
                parameter.normal_(0, self.config.learned_std, generator=own)
            elif parameter.dim() == 2:  # Xavier, as in the paper's own code
                bound = math.sqrt(6 / sum(parameter.shape))
                parameter.uniform_(-bound, bound, generator=shared)
            elif name.endswith("norm.weight"):
                parameter.fill_(1)
            else:
                parameter.zero_()

    def positions(self, T):  # [T, C]
        if self.config.position == "sinusoidal":
            return self.sinusoidal[:T]
        if self.config.position == "learned":
            return self.position_embedding.weight[:T]
        return 0

    def forward(self, token_ids, padding=None, trace=None):
        """[B, T] ids, [B, T] bool where padding -> [B, T, C]; a `trace` dict of lists is filled."""
        x = self.config.embedding_scale * self.token_embedding(token_ids)  # [B, T, C]
        x = x + self.positions(token_ids.shape[1])
        bias = None
        if padding is not None and padding.any():
            bias = torch.zeros(padding.shape).masked_fill(padding, -torch.inf)[:, None, None, :]
        for block in self.blocks:
            if trace is not None:
                trace["hidden_states"].append(x)
            x = block(x, bias, trace)
        if trace is not None:
            trace["hidden_states"].append(x)
        return x

    def mlm_logits(self, h):  # [N, C] -> [N, V]
        return self.mlm(h, self.token_embedding.weight)
