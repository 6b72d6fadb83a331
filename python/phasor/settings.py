"""What an Encoder can be told after it was made, under the names of sentence-transformers."""

from __future__ import annotations

import ctypes
import dataclasses
import os
from typing import Any, Mapping, Optional

import numpy as np
import numpy.typing as npt

from . import _library as c
from ._library import InvalidArgument, NotFound, check, integer, lib
from .inside import Inside
from .run_options import choice

SIMILARITIES = {"cosine": 0, "dot": 1, "euclidean": 2, "manhattan": 3}


@dataclasses.dataclass
class Settings:
    """What is used in place of what the model's files say; None, or 0 tokens, leaves that."""

    prompts: dict[str, str]
    default_prompt_name: Optional[str] = None
    truncate_dim: Optional[int] = None
    max_tokens: int = 0
    similarity: Optional[str] = None


class Settable(Inside):
    """See :class:`phasor.Encoder`."""

    __slots__ = ("_settings",)

    _settings: Settings

    @property
    def prompts(self) -> dict[str, str]:
        """The prompts by name; "query" and "document" are empty where the model has none."""
        return self._settings.prompts

    @prompts.setter
    def prompts(self, prompts: Mapping[str, str]) -> None:
        if not isinstance(prompts, Mapping):
            raise TypeError(f"prompts is a dict of texts by name, not {type(prompts).__name__}")
        for name, prompt in prompts.items():
            c.utf8(prompt), c.utf8(name)
        self._settings.prompts = dict(prompts)

    @property
    def default_prompt_name(self) -> Optional[str]:
        """The prompt of texts for which none is named; None for no prompt."""
        return self._settings.default_prompt_name

    @default_prompt_name.setter
    def default_prompt_name(self, name: Optional[str]) -> None:
        if not isinstance(name, (str, type(None))):
            raise TypeError(f"default_prompt_name is a str, not {type(name).__name__}")
        self._prompt(name, None)
        self._settings.default_prompt_name = name

    @property
    def truncate_dim(self) -> Optional[int]:
        """How many numbers of a vector :meth:`encode` keeps; None for all."""
        return self._settings.truncate_dim

    @truncate_dim.setter
    def truncate_dim(self, numbers: Optional[int]) -> None:
        if numbers is not None and not 0 < integer("truncate_dim", numbers) <= self._width():
            raise InvalidArgument(
                f"truncate_dim is {numbers}; the vectors have {self._width()} numbers"
            )
        self._settings.truncate_dim = numbers

    @property
    def max_seq_length(self) -> int:
        """How many tokens of a text :meth:`encode` reads, special tokens included."""
        self._open()
        return self._longest()

    @max_seq_length.setter
    def max_seq_length(self, tokens: int) -> None:
        if integer("max_seq_length", tokens) < 1:
            raise InvalidArgument(f"max_seq_length is {tokens}; it must be 1 or more")
        self._settings.max_tokens = tokens

    @property
    def similarity_fn_name(self) -> str:
        """What :meth:`similarity` computes: "cosine", "dot", "euclidean" or "manhattan"."""
        files = self.info.get("sentence", {}).get("similarity", "cosine")
        return str(self._settings.similarity or files)

    @similarity_fn_name.setter
    def similarity_fn_name(self, name: str) -> None:
        choice("similarity", name, SIMILARITIES)
        self._settings.similarity = name

    @property
    def device(self) -> str:
        """Always "cpu"."""
        return "cpu"

    def to(self, device: Any) -> "Settable":
        """This Encoder, if the device is the CPU."""
        on_cpu(device)
        return self

    def eval(self) -> "Settable":
        """This Encoder, which is never trained."""
        return self

    def get_max_seq_length(self) -> int:
        """:attr:`max_seq_length`."""
        return self.max_seq_length

    def get_embedding_dimension(self) -> int:
        """W."""
        self._open()
        return self._settings.truncate_dim or self._width()

    get_sentence_embedding_dimension = get_embedding_dimension  # its name before version 6

    def _width(self, pooling: Optional[str] = None) -> int:
        """Of the vectors of a pooling, or of the model's own."""
        if pooling not in self._widths:
            settings, nothing, result = c.Settings(pooling=pooling), c.BorrowedTexts([]), c.Result()
            options = c.TextOptions(settings=settings.pointer)
            how = (nothing.pointer, ctypes.byref(options), result.pointer())
            check(lib.embed(self._open().encoder, *how))
            self._widths[pooling] = result.array("dense").shape[1]
        return self._widths[pooling]

    def _prompt(self, name: Optional[str], prompt: Optional[str]) -> str:
        if prompt is not None:
            return prompt
        if name is None:
            return self.prompts.get(self.default_prompt_name or "", "")
        if name not in self.prompts:
            raise InvalidArgument(
                f"there is no prompt {name!r}; there are: {', '.join(self.prompts) or 'none'}"
            )
        return self.prompts[name]

    def _longest(self, max_tokens: int = 0) -> int:
        """The length of phasor_embed(), which the C interface does not tell."""
        position = self.info["position"]
        longest = max_tokens or self._settings.max_tokens or self._text().get("max_tokens", 0)
        longest = longest or position.get("trained_length", 2048)
        return int(min(longest, position.get("usable_positions", longest)))


def on_cpu(device: Any) -> None:
    """Refuses other devices."""
    if device is not None and str(device) != "cpu":
        raise InvalidArgument(f"device is {device}; phasor runs on the CPU alone")


def in_cache(name: str, folder: "os.PathLike[str] | str") -> str:
    """The folder of OWNER/MODEL in the hub's cache at ``folder``."""
    repository = os.path.join(os.fspath(folder), "models--" + name.replace("/", "--"))
    ref = os.path.join(repository, "refs", "main")
    try:
        with open(ref, encoding="latin-1") as file:
            revision = file.read().strip()
    except OSError:
        missing = ref if os.path.isdir(repository) else repository
        raise NotFound(f"{name} is not in the cache {os.fspath(folder)}: {missing} is not there") from None
    snapshot = os.path.join(repository, "snapshots", revision)
    if not (revision.isalnum() and os.path.isdir(snapshot)):
        raise NotFound(f"{ref} names the snapshot {revision!r}, which is not there")
    return snapshot


def tensor(values: Any) -> Any:
    """A tensor of torch, over the same memory where that may be written."""
    try:
        import torch
    except ImportError:
        raise InvalidArgument("convert_to_tensor needs torch, which is not installed") from None
    return torch.from_numpy(values if values.flags.writeable else values.copy())


#: The precisions of vectors that are not float32.
SMALLER = {"float32": 0, "int8": 1, "uint8": 1, "binary": 1, "ubinary": 1}


def smaller_vectors(vectors: npt.NDArray[np.float32], precision: str) -> npt.NDArray[Any]:
    """As ``sentence_transformers.quantize_embeddings`` makes them, without further vectors to
    calibrate: a bit for each number that says whether it is above 0, eight in a byte; or one of
    256 steps from the least of a column's numbers to its largest."""
    count, width = vectors.shape
    are_bits = precision.endswith("binary")
    if count == 1 and not are_bits:
        raise InvalidArgument(f"{precision} takes its steps from several vectors, and there is one")
    columns = (width + 7) // 8 if are_bits else width
    made = np.empty((count, columns), np.uint8 if precision.startswith("u") else np.int8)
    if count > 0:
        vectors = np.ascontiguousarray(vectors)
        ranges = [vectors.min(axis=0), vectors.max(axis=0)]  # of bits they have no effect
        given = (c.address(vectors), count, width, precision.encode(), *map(c.address, ranges))
        check(lib.quantize(*given, c.address(made), made.nbytes))
    return made
