"""TransformerLens' functions of a cache that take the residual stream apart."""

from __future__ import annotations

from typing import Any, Optional, Union

import numpy as np
import numpy.typing as npt

from ._library import InvalidArgument
from .cache import Cache
from .weights import FloatArray

Stack = Union[FloatArray, tuple[FloatArray, list[str]]]


class ActivationCache(Cache):
    __doc__ = Cache.__doc__

    # Of states, "layer" None, -1 and the number of blocks stand for the last one.

    def stack_activation(
        self, activation_name: str, layer: Optional[int] = None, sublayer_type: Optional[str] = None
    ) -> FloatArray:
        """A value of all blocks, or of those before ``layer``: [layer, …]."""
        part = () if sublayer_type is None else (sublayer_type,)
        return np.stack([self[(activation_name, l, *part)] for l in range(self._layer(layer))])

    def accumulated_resid(
        self, layer: Optional[int] = None, incl_mid: bool = False, *, mlp_input: bool = False,
        return_labels: bool = False,
    ) -> Stack:
        """``resid_pre`` of the blocks up to ``layer``, with ``incl_mid`` ``resid_mid`` of those before
        it, with ``mlp_input`` its own; and ``resid_post`` as the last state: [states, …, C]."""
        layer, last = self._layer(layer, mlp_input), self._layer(None)
        keys = []
        for l in range(min(layer + 1, last)):
            mid = mlp_input if l == layer else incl_mid
            keys += [("resid_pre", l), ("resid_mid", l)][: 1 + bool(mid)]
        labels = [f"{l}_{name[6:]}" for name, l in keys] + ["final_post"] * (layer == last)
        stack = np.stack([self[key] for key in keys + [("resid_post", last - 1)] * (layer == last)])
        return (stack, labels) if return_labels else stack

    def decompose_resid(
        self, layer: Optional[int] = None, mlp_input: bool = False, mode: str = "all", *, incl_embeds: bool = True,
        return_labels: bool = False,
    ) -> Stack:
        """What embeddings, attention and MLPs contribute to the state that block ``layer`` reads, or
        with ``mlp_input`` its MLP (in pre-norm models, before the norm), or to the last state:
        [parts, …, C], whose sum is the state. With ``mode`` "attn" or "mlp" only these.

        The norms between the blocks of a post-norm model, and after the embedding, are taken as the
        linear maps that they were in this run: all parts are divided by the whole state's scale.
        What their β add is the part "bias". ``stack_activation("attn_out")`` has what was added."""
        if mode not in ("all", "mlp", "attn"):
            raise InvalidArgument(f"mode is {mode!r}; there are: all, mlp, attn")
        parts, labels = self._parts(layer, mlp_input, heads=False, neurons=False)
        kinds = {"embed": incl_embeds, "bias": mode == "all" and parts[-1].any()}
        kept = [i for i, (kind, _) in enumerate(labels) if kinds.get(kind, mode in ("all", kind))]
        return (parts[kept], [labels[i][1] for i in kept]) if return_labels else parts[kept]

    def get_full_resid_decomposition(
        self, layer: Optional[int] = None, mlp_input: bool = False, expand_neurons: bool = True, *,
        return_labels: bool = False,
    ) -> Stack:
        """The same by head ("L0H1"), neuron ("L0N5") or MLP, embedding, and "bias" for all biases.
        Neurons take 4·F·T·C bytes a block."""
        parts, labels = self._parts(layer, mlp_input, heads=True, neurons=expand_neurons)
        kinds = ["attn", "mlp", "embed", "bias"]
        order = sorted(range(len(labels)), key=lambda i: kinds.index(labels[i][0]))
        return (parts[order], [labels[i][1] for i in order]) if return_labels else parts[order]

    def apply_ln_to_stack(
        self, residual_stack: FloatArray, layer: Optional[int] = None, mlp_input: bool = False, pos_slice: Any = None,
        batch_slice: Any = None, has_batch_dim: bool = True, recompute_ln: bool = False,
    ) -> FloatArray:
        """A stack [parts, …, C] through a norm as it was in this run, without its weights: centred if it is a
        LayerNorm, and divided by the scale of the whole state. It is the norm before the attention of block
        ``layer``, with ``mlp_input`` before its MLP, or the last one; in post-norm models, as in TransformerLens 4.3,
        that after them, and there is no last one. Where a block has no such norm the stack stays as it is.

        ``pos_slice``, the tokens of the stack, and ``batch_slice``, of its texts, are an int, a list or the arguments
        of ``slice()`` as a tuple. With ``recompute_ln`` each part passes the last norm by itself, with its weights:
        :meth:`Encoder.mlm_logits` of that is the logit lens."""
        layer, post = self._layer(layer, mlp_input), self._info["norm"]["order"] == "post"
        last = layer == self._layer(None)
        if last and post:
            raise InvalidArgument(
                "a post-norm model has no last norm; take that after its last MLP: layer "
                f"{layer - 1} and mlp_input=True"
            )
        name = "final_norm" if last else self._blocks.name(layer, f"{'mlp' if mlp_input else 'attn'}_norm")
        if has_batch_dim:
            residual_stack = _sliced(residual_stack, 1, batch_slice)
        if f"{name}.weight" not in self._blocks.weights:
            return residual_stack
        if recompute_ln and last:
            gamma, beta = (self._blocks.weights.get(f"{name}.{part}", 0) for part in ("weight", "bias"))
            scaled: Any = self._scaled(residual_stack, residual_stack)
            normalized: FloatArray = scaled * gamma + beta
            return normalized
        read = ["pre", "mid", "post"][bool(mlp_input) + post]
        state = self._value(f"blocks.{layer - last}.hook_resid_{'post' if last else read}")
        state = _sliced(state, 0, batch_slice) if self._batch_dim else state
        return self._scaled(residual_stack, _sliced(state, -2, pos_slice))

    def logit_attrs(
        self, residual_stack: FloatArray, tokens: npt.ArrayLike, incorrect_tokens: Optional[npt.ArrayLike] = None,
        pos_slice: Any = None, batch_slice: Any = None, has_batch_dim: bool = True,
    ) -> FloatArray:
        """What each part of the last state adds to the logits of ``tokens`` (ids [], [B], [T] or
        [B, T]), or to their difference from those of ``incorrect_tokens``: [parts, …]. All parts of
        :meth:`decompose_resid` add up to what :meth:`Encoder.mlm_logits` gives. Other arguments are those
        of :meth:`apply_ln_to_stack`. Only EuroBERT's head is linear; others are an error."""
        weights = self._blocks.weights
        if not self._info["mlm_head"] or "mlm.dense.weight" in weights:
            why = "is not linear: a dense layer, an activation and a norm come before its decoder"
            raise NotImplementedError(
                f"the model's masked-LM head {why if self._info['mlm_head'] else 'is missing'}; what parts "
                "do to its logits is seen by changing them: fwd_hooks and mlm_logits()"
            )
        tied = "mlm.decoder.weight" not in weights
        decoder = weights["token_embedding.weight" if tied else "mlm.decoder.weight"]
        toward = decoder[np.asarray(tokens)]
        if incorrect_tokens is not None:
            toward = toward - decoder[np.asarray(incorrect_tokens)]
        stack = self.apply_ln_to_stack(residual_stack, None, False, pos_slice, batch_slice, has_batch_dim)
        if toward.ndim == 2 and stack.ndim == 4 and len(toward) == stack.shape[1]:
            toward = toward[:, None]  # one token for each text
        attrs: FloatArray = (stack * (toward * weights["final_norm.weight"])).sum(-1)
        return attrs

    def _stopped(self, layer: int) -> FloatArray:
        """What block ``layer`` reads, or the last state. What passed from there on is left out."""
        state = self._value(self._all_names.state(layer))
        later = ("ln_final.", *(f"blocks.{l}." for l in range(layer, self._layer(None))))
        self._names = {name: own for name, own in self._names.items() if not name.startswith(later)}
        return state

    def _layer(self, layer: Optional[int], mlp_input: bool = False) -> int:
        layers = int(self._info["sizes"]["layers"])
        number = layers if layer is None or layer == -1 else layer
        if not 0 <= number <= layers - bool(mlp_input):
            raise InvalidArgument(f"layer is {layer}; there are the blocks 0 to {layers - 1}")
        return number

    # Below, the last row of parts is the bias.

    def _normed(self, name: str, parts: FloatArray) -> FloatArray:
        """Parts after the norm of their sum, if there is one."""
        weights = self._blocks.weights
        if f"{name}.weight" not in weights:
            return parts
        parts = self._scaled(parts, parts.sum(0, np.float64)) * weights[f"{name}.weight"]
        parts[-1] += weights.get(f"{name}.bias", 0)
        return parts

    def _scaled(self, rows: FloatArray, state: npt.NDArray[Any]) -> FloatArray:
        """Rows as a norm that reads the state scales them, without its weights."""
        norm, state = self._info["norm"], state.astype(np.float64)
        if norm["kind"] == "layer_norm":
            rows, state = (x - x.mean(-1, keepdims=True) for x in (rows, state))
        scale = np.sqrt((state * state).mean(-1, keepdims=True) + norm["eps"])
        scaled: FloatArray = rows / scale.astype(np.float32)
        return scaled

    def _branch(self, layer: int, kind: str, split: bool) -> tuple[FloatArray, list[str]]:
        """What attention or the MLP of a block adds, by head or neuron."""
        if not split:
            out = self._value(f"blocks.{layer}.hook_{kind}_out")
            return np.stack([out, np.zeros_like(out)]), [f"{layer}_{kind}_out"]
        block = self._blocks[layer]
        if kind == "attn":
            z = self._value(f"blocks.{layer}.attn.hook_z")
            rows, bias = np.einsum("...thd,hdc->h...tc", z, block.attn.W_O), vars(block.attn).get("b_O", 0)
        else:
            post = self._value(f"blocks.{layer}.mlp.hook_post")
            rows = np.moveaxis(post[..., None] * block.mlp.W_out, -2, 0)
            bias = vars(block.mlp).get("b_out", 0)
        rows = np.concatenate([rows, (np.zeros_like(rows[0]) + bias)[None]])
        labels = [f"L{layer}{'H' if kind == 'attn' else 'N'}{i}" for i in range(len(rows) - 1)]
        return self._normed(self._blocks.name(layer, f"{kind}_branch_norm"), rows), labels

    def _parts(
        self, layer: Optional[int], mlp_input: bool, heads: bool, neurons: bool
    ) -> tuple[FloatArray, list[tuple[str, str]]]:
        """[parts, …, C] of a state, and the kind and the label of each."""
        layer, weights = self._layer(layer, mlp_input), self._blocks.weights
        embeds = ["embed", *(name for name in ("pos_embed", "token_type_embed") if name in self)]
        labels = [("embed", name) for name in embeds]
        rows = [self._value(f"hook_{name}") for name in embeds]
        parts = self._normed("embedding_norm", np.stack([*rows, np.zeros_like(rows[0])]))
        if "embedding_map.weight" in weights:
            parts = parts @ weights["embedding_map.weight"].T
            parts[-1] += weights.get("embedding_map.bias", 0)
        for l in range(layer + bool(mlp_input)):
            for kind, split in [("attn", heads), ("mlp", neurons)][: 1 if l == layer else 2]:
                added, names = self._branch(l, kind, split)
                parts = np.concatenate([parts[:-1], added[:-1], parts[-1:] + added[-1:]])
                labels += [(kind, name) for name in names]
                if self._info["norm"]["order"] == "post":
                    parts = self._normed(self._blocks.name(l, f"{kind}_norm"), parts)
        state = self._value(self._all_names.state(layer, mlp_input))
        if not np.abs(parts.sum(0) - state).max() <= 1e-4 * np.abs(state).max():
            raise InvalidArgument(
                "the parts do not add up to the state: not all embeddings were recorded, hooks or cut "
                "residual connections changed the run, or its precision rounds what heads and neurons "
                "add; take a plain run in f32 without a names_filter"
            )
        return parts, [*labels, ("bias", "bias")]


def _sliced(values: FloatArray, axis: int, part: Any) -> FloatArray:
    """An axis as TransformerLens slices it."""
    if part is None:
        return values
    part = slice(*part) if isinstance(part, tuple) else part
    return values[(*[slice(None)] * (axis % values.ndim), part)]
