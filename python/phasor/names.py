"""Names of hooks in TransformerLens 4 (TransformerBridge), and phasor's hooks of these values."""

from __future__ import annotations

import re
from typing import Any, Callable, Iterable, Mapping, Optional, Sequence, Union

from ._library import InvalidArgument, strs

#: A name, several, or a function of a name that says whether it is meant.
NamesFilter = Union[None, str, Sequence[str], Callable[[str], bool]]

# TransformerBridge's name, without "blocks.N."; the hook in post-norm models; in pre-norm models; "-":
# phasor has none. A name that phasor has, too, has the bridge's meaning only where an Encoder was told so.
_TABLE = """
embed.hook_out             hook_embed                    hook_embed
pos_embed.hook_out         hook_pos_embed                hook_pos_embed
token_type_embed.hook_out  hook_token_type_embed         hook_token_type_embed
embed_ln.hook_out          hook_full_embed               hook_full_embed
hook_embed                 hook_full_embed               hook_full_embed
hook_in                    hook_resid_pre                hook_resid_pre
attn.hook_in               hook_resid_pre                -
attn.q.hook_in             hook_resid_pre                -
attn.k.hook_in             hook_resid_pre                -
attn.v.hook_in             hook_resid_pre                -
attn.q.hook_out            attn.hook_q                   attn.hook_q
attn.k.hook_out            attn.hook_k                   attn.hook_k
attn.v.hook_out            attn.hook_v                   attn.hook_v
attn.o.hook_in             attn.hook_z                   attn.hook_z
attn.o.hook_out            hook_attn_out                 hook_attn_out
attn.hook_out              hook_normalized_resid_mid     hook_attn_out
hook_attn_out              hook_normalized_resid_mid     hook_attn_out
ln1.hook_in                hook_resid_mid                hook_resid_pre
ln1.hook_out               hook_normalized_resid_mid     -
hook_mlp_in                hook_normalized_resid_mid     hook_resid_mid
mlp.hook_in                hook_normalized_resid_mid     -
mlp.in.hook_in             hook_normalized_resid_mid     -
mlp.in.hook_out            mlp.hook_pre                  mlp.hook_pre
mlp.gate.hook_out          mlp.hook_pre                  mlp.hook_pre
mlp.out.hook_in            mlp.hook_post                 mlp.hook_post
mlp.out.hook_out           hook_mlp_out                  hook_mlp_out
hook_mlp_out               hook_mlp_out                  hook_mlp_out
mlp.hook_out               hook_mlp_out                  hook_mlp_out
ln2.hook_in                hook_resid_post               hook_resid_mid
hook_resid_mid             hook_resid_post               hook_resid_mid
ln2.hook_out               hook_normalized_resid_post    -
hook_resid_post            hook_normalized_resid_post    hook_resid_post
hook_out                   hook_normalized_resid_post    hook_resid_post
ln_final.hook_out          ln_final.hook_normalized      ln_final.hook_normalized
ln_final.hook_normalized   -                             -
"""
# These read a part of what phasor's hook passes on: a change there would reach more than they mean.
_READ_ONLY = "attn.q.hook_in attn.k.hook_in attn.v.hook_in hook_mlp_in mlp.hook_in mlp.in.hook_in".split()
_READ_ONLY_PRE = [*_READ_ONLY, "ln1.hook_in", "ln2.hook_in"]
_BLOCK = re.compile(r"blocks\.\d+\.")


class HookNames:
    """What the names of hooks mean in one model."""

    def __init__(self, info: Mapping[str, Any], templates: Iterable[str], bridge: bool) -> None:
        self.info = info
        own = {template.replace("blocks.{}.", ""): template for template in templates}
        post_norm = info["norm"]["order"] == "post"
        self._read_only = _READ_ONLY if post_norm else _READ_ONLY_PRE
        self._aliases: dict[str, str] = {}
        for line in _TABLE.strip().split("\n"):
            name, post, pre = line.split()
            hook = post if post_norm else pre
            if hook == "hook_full_embed" and not info["norm"]["after_embedding"]:
                continue
            if info["attention"]["branch_norms"] and hook in ("hook_attn_out", "hook_mlp_out"):
                hook = "-"  # phasor's are after these norms
            if name == "embed_ln.hook_out" and info["embedding"]["width"] != info["sizes"]["d_model"]:
                hook = "-"  # phasor's is after the map to d_model
            if name == ("mlp.in.hook_out" if info["mlp"]["gated"] else "mlp.gate.hook_out"):
                continue
            if bridge or name not in own:
                self._aliases[name] = hook
        #: phasor's name of the hook for each name that there is; a function of a name sees these.
        self.every: dict[str, str] = {}
        for name, hook in {**dict(zip(own, own)), **(self._aliases if bridge else {})}.items():
            if hook == "-":
                continue
            begin = own[hook][: -len(hook)]
            for layer in range(info["sizes"]["layers"] if begin else 1):
                block = begin.replace("{}", str(layer))
                self.every[block + name] = block + hook

    def state(self, layer: int, mlp_input: bool = False) -> str:
        """phasor's name of what block ``layer`` or its MLP reads, in pre-norm models through a norm;
        or of the last state."""
        last, post = layer == self.info["sizes"]["layers"], self.info["norm"]["order"] == "post"
        begin = "normalized_" if post and (last or mlp_input) else ""
        name = f"{begin}resid_{'post' if last else 'mid' if mlp_input else 'pre'}"
        return f"blocks.{layer - last}.hook_{name}"

    def own(self, name: str) -> str:
        """phasor's name of a hook, or of the hooks of all blocks."""
        begin, rest, alias = self._parts(name)
        own = rest if alias is None else self._aliases[alias]
        return f"{name} (TransformerBridge)" if own == "-" else begin + own

    def _parts(self, name: str) -> tuple[str, str, Optional[str]]:
        """"blocks.N.", what follows, and the name of the table that this stands for."""
        block = _BLOCK.match(name)
        begin = name[: block.end()] if block else ""
        rest = name[len(begin) :]
        return begin, rest, next((a for a in (rest, f"hook_{rest}") if a in self._aliases), None)

    def pick(self, names: NamesFilter) -> list[str]:
        """What a filter picks of all hooks. ``attn.hook_pattern`` and ``pattern`` stand for those of all blocks."""
        return ["all"] if names is None else list(dict.fromkeys(map(self.own, self._named(names))))

    def points(self, names: NamesFilter) -> list[tuple[str, Optional[str]]]:
        """phasor's hooks for functions that change values, and the name of the table, without
        "blocks.N.", by which each was asked for."""
        picked: dict[str, Optional[str]] = {}
        for name in ["all"] if names is None else self._named(names):
            alias = self._parts(name)[2]
            if alias in self._read_only:
                raise InvalidArgument(f"{name} can be read, not changed: phasor has no hook that reaches this alone")
            picked.setdefault(self.own(name), alias)
        return list(picked.items())

    def _named(self, names: NamesFilter) -> list[str]:
        if isinstance(names, str):
            return [names]
        if not callable(names):
            return strs(names, "names_filter")
        picked = [name for name in self.every if names(name)]
        if not picked:
            raise InvalidArgument("the function of names picks no hook of the model")
        return picked


def told(path: str, alias: Optional[str]) -> str:
    """The name of a hook that a function is told: that by which it was asked for."""
    block = _BLOCK.match(path)
    return path if alias is None else (block.group() if block else "") + alias
