"""TransformerLens' functions of a cache that take the residual stream apart."""

from __future__ import annotations

from typing import List, Optional, Tuple, Union

import numpy as np

from ._library import InvalidArgument
from .cache import Cache
from .weights import FloatArray

Stack = Union[FloatArray, Tuple[FloatArray, List[str]]]


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
        self,
        layer: Optional[int] = None,
        incl_mid: bool = False,
        *,
        mlp_input: bool = False,
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
        self,
        layer: Optional[int] = None,
        mlp_input: bool = False,
        mode: str = "all",
        *,
        incl_embeds: bool = True,
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
        self,
        layer: Optional[int] = None,
        mlp_input: bool = False,
        expand_neurons: bool = True,
        *,
        return_labels: bool = False,
    ) -> Stack:
        """The same by head ("L0H1"), neuron ("L0N5") or MLP, embedding, and "bias" for all biases.
        Neurons take 4·F·T·C bytes a block."""
        parts, labels = self._parts(layer, mlp_input, heads=True, neurons=expand_neurons)
        kinds = ["attn", "mlp", "embed", "bias"]
        order = sorted(range(len(labels)), key=lambda i: kinds.index(labels[i][0]))
        return (parts[order], [labels[i][1] for i in order]) if return_labels else parts[order]

    def _layer(self, layer: Optional[int], mlp_input: bool = False) -> int:
        layers = int(self._info["sizes"]["layers"])
        number = layers if layer is None or layer == -1 else layer
        if not 0 <= number <= layers - bool(mlp_input):
            raise InvalidArgument(f"layer is {layer}; there are the blocks 0 to {layers - 1}")
        return number

    def _state(self, layer: int, mlp_input: bool) -> FloatArray:
        """What block ``layer`` or its MLP reads, in pre-norm models through a norm; or the last state."""
        last, post = layer == self._layer(None), self._info["norm"]["order"] == "post"
        begin = "normalized_" if post and (last or mlp_input) else ""
        name = f"{begin}resid_{'post' if last else 'mid' if mlp_input else 'pre'}"
        return self._value(f"blocks.{layer - last}.hook_{name}")

    # Below, the last row of parts is the bias.

    def _normed(self, name: str, parts: FloatArray) -> FloatArray:
        """Parts after the norm of their sum, if there is one."""
        weights, norm = self._blocks.weights, self._info["norm"]
        if f"{name}.weight" not in weights:
            return parts
        whole = parts.sum(0, np.float64)
        if norm["kind"] == "layer_norm":
            parts, whole = (x - x.mean(-1, keepdims=True) for x in (parts, whole))
        scale = np.sqrt((whole * whole).mean(-1, keepdims=True) + norm["eps"])
        parts = parts * (weights[f"{name}.weight"] / scale).astype(np.float32)
        parts[-1] += weights.get(f"{name}.bias", 0)
        return parts

    def _branch(self, layer: int, kind: str, split: bool) -> Tuple[FloatArray, List[str]]:
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
    ) -> Tuple[FloatArray, List[Tuple[str, str]]]:
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
        state = self._state(layer, mlp_input)
        if not np.abs(parts.sum(0) - state).max() <= 1e-4 * np.abs(state).max():
            raise InvalidArgument(
                "the parts do not add up to the state: not all embeddings were recorded, hooks or cut "
                "residual connections changed the run, or its precision rounds what heads and neurons "
                "add; take a plain run in f32 without a names_filter"
            )
        return parts, [*labels, ("bias", "bias")]
