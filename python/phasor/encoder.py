"""The encoder: texts in, vectors, hidden states and everything between out."""

from __future__ import annotations

import contextvars
import dataclasses
import os
from typing import Any, Callable, Mapping, Optional, Sequence, Union, cast

from . import _library as c
from .observed import Observed, compare, observe
from .settings import Settings, in_cache, on_cpu
from .heads import Heads


class Encoder(Heads):
    """Runs a model.

    ``folder_or_name`` is a model folder (``config.json``, weights, tokenizer files), the name of a
    bundled model, such as ``sinusoidal`` or ``rotary``, or ``OWNER/MODEL`` for a model in the hub's
    local cache; nothing is downloaded. ``threads`` share each
    run; 0 stands for all available cores. ``precision`` is ``f32``, ``bf16``, ``int8`` or ``auto``;
    where none is given it is ``f32``, and the logger ``phasor`` says once what others would give here.
    ``kernels`` is ``own``, ``onednn`` (primitives of oneDNN alone) or ``auto``, the faster one.
    ``language`` is for tokenizers whose texts carry one. ``copy`` reads the weights into memory
    instead of mapping their files. ``follow_links`` follows links that lead out of the folder, which
    are refused otherwise: whoever made the folder could have any file read. ``names`` chooses what
    four names of hooks mean: ``hook_embed``, ``hook_attn_out``, ``hook_resid_mid`` and
    ``hook_resid_post``. "hooked" gives them the values of TransformerLens' HookedEncoder (before
    version 4), "bridge" those of its TransformerBridge, which differ in models like BERT. Names that
    only the bridge has, such as ``blocks.0.ln1.hook_out``, can be used with both. A hook function is
    told the name that it was given with.

    The other arguments are those of ``SentenceTransformer``. ``prompts``, ``default_prompt_name``,
    ``similarity_fn_name`` and ``truncate_dim`` replace what the model's files say, and can be set
    later, as ``max_seq_length`` can. ``cache_folder`` is a hub cache in which the model lies.
    ``device`` may be "cpu". ``backend``, ``trust_remote_code`` and ``local_files_only`` have no
    effect: phasor computes itself, runs no code of models, and loads nothing. To set anything that
    an Encoder does not have is an AttributeError.

    Any number of Python threads may use one Encoder. A copy, and one that was pickled, loads the
    model again, whose weights processes share.

    Shape letters: B texts, N tokens of all texts, T tokens of one text, C width of the states, F
    width of the MLP, H heads, D width of a head, V vocabulary, W width of the vectors.
    """

    __slots__ = ()

    def __init__(
        self,
        folder_or_name: Union[str, "os.PathLike[str]"] = "sinusoidal",
        *,
        threads: int = 0,
        precision: Optional[str] = None,
        kernels: str = "auto",
        language: Optional[str] = None,
        copy: bool = False,
        follow_links: bool = False,
        names: str = "hooked",
        model_name_or_path: Union[None, str, "os.PathLike[str]"] = None,
        device: Any = None,
        prompts: Optional[Mapping[str, str]] = None,
        default_prompt_name: Optional[str] = None,
        similarity_fn_name: Optional[str] = None,
        truncate_dim: Optional[int] = None,
        cache_folder: Union[None, str, "os.PathLike[str]"] = None,
        backend: str = "torch",
        trust_remote_code: bool = False,
        local_files_only: bool = True,
    ) -> None:
        self._handle = None
        on_cpu(device)
        if model_name_or_path is not None and folder_or_name != "sinusoidal":
            raise TypeError("the model was named twice: the first argument is model_name_or_path")
        model = folder_or_name if model_name_or_path is None else model_name_or_path
        if cache_folder is not None and "/" in os.fsdecode(model) and not os.path.isdir(model):
            model = in_cache(os.fsdecode(model), cache_folder)
        super().__init__(
            model, threads=threads, precision=precision, kernels=kernels, language=language,
            copy=copy, follow_links=follow_links, names=names,
        )
        files = self._text()
        self._settings = Settings({"query": "", "document": "", **files.get("prompts", {})})
        named = [name for name, text in self.prompts.items() if text and text == files.get("prompt")]
        self._settings.default_prompt_name = named[0] if named else None
        if prompts is not None:
            self.prompts = {**self.prompts, **prompts}
        if default_prompt_name is not None:
            self.default_prompt_name = default_prompt_name
        self.truncate_dim = truncate_dim
        if similarity_fn_name is not None:
            self.similarity_fn_name = similarity_fn_name

    def __reduce__(self) -> tuple[Any, ...]:
        settings = dataclasses.replace(self._settings, prompts=dict(self.prompts))
        state = (getattr(self, "__dict__", None), {"_settings": settings})
        return _made, (type(self), self._place, self._options), state

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Vectors of documents, with the model's prompt for them, as LangChain wants them."""
        vectors = self.encode_document(c.strs(texts, "texts"))
        return cast(list[list[float]], vectors.tolist())

    def embed_query(self, text: str) -> list[float]:
        """The vector of a query, with the model's prompt for queries, as LangChain wants it."""
        return cast(list[float], self.encode_query([text])[0].tolist())

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        """:meth:`embed_documents` on another thread."""
        return cast(list[list[float]], await _elsewhere(self.embed_documents, texts))

    async def aembed_query(self, text: str) -> list[float]:
        """:meth:`embed_query` on another thread."""
        return cast(list[float], await _elsewhere(self.embed_query, text))

    def observe(self, texts: Union[str, Sequence[str]] = (), **options: Any) -> Observed:
        """:func:`phasor.observe` of this Encoder."""
        return observe(texts, model=self, **options)

    def compare(
        self,
        other: Union[None, str, "os.PathLike[str]", "Encoder"] = None,
        texts: Union[str, Sequence[str]] = (),
        **options: Any,
    ) -> Observed:
        """:func:`phasor.compare` of this Encoder and another or a model, which then runs in the same
        precision where none is given, or of this one run in two ways."""
        if other is not None and not isinstance(other, Encoder):
            other = Encoder(
                other, threads=self.threads, precision=self.precision, kernels=self.kernels
            )
        return compare(self, other, texts, **options)

    def __repr__(self) -> str:
        sizes = self.info["sizes"]
        return (
            f"<phasor.Encoder {self.name!r}: {self.info['family']}, {sizes['layers']} layers, "
            f"d_model {sizes['d_model']}, positions {self.info['position']['kind']}, "
            f"{self.precision}, {self.threads} threads>"
        )


async def _elsewhere(function: Callable[[Any], Any], value: Any) -> Any:
    """On another thread, in this context."""
    import asyncio  # here, because it takes as long as the rest of the package

    run = contextvars.copy_context().run
    return await asyncio.get_running_loop().run_in_executor(None, run, function, value)


def _made(kind: Any, place: str, options: dict[str, Any]) -> Any:
    """A copy, or what was pickled, before its settings."""
    made = kind.__new__(kind)
    Encoder.__init__(made, place, **options)
    return made
