"""What an Encoder is made of: a model and an encoder of the library."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import json
import logging
import os
from typing import Any, Optional, TypeVar, Union, cast

from . import _library as c
from ._calls import Handle
from ._library import check, lib
from .names import HookNames
from .run_options import choice
from .weights import Weights

_PRECISIONS = {b"float32": b"f32", b"bfloat16": b"bf16"}  # other names
_DEFAULTS: dict[str, Any] = {
    "threads": 0, "precision": None, "kernels": "auto", "language": None, "copy": False,
    "follow_links": False, "names": "hooked",
}


@functools.lru_cache(maxsize=None)
def _note_faster() -> None:
    """Once in a process, for who has chosen no precision."""
    faster = c.info("faster_than_float32")
    if faster:
        logging.getLogger("phasor").info("precision is f32 by default; %s", faster)


Self = TypeVar("Self", bound="Base")


class Model:
    """A phasor_model; a call that uses it keeps it, whoever closes the Encoder."""

    def __init__(self, folder_or_name: Union[str, "os.PathLike[str]"], options: c.LoadOptions):
        self.handle = ctypes.c_void_p()
        name = c.path(folder_or_name)
        check(lib.model_load(name, ctypes.byref(options), ctypes.byref(self.handle)))

    def __del__(self, free: Any = lib.model_free) -> None:
        if self.handle:
            free(self.handle)


class Base:
    """See :class:`phasor.Encoder`."""

    # Nothing else may be set: a setting that phasor does not have would have no effect.
    __slots__ = (
        "_handle", "_model", "_info", "_name", "_place", "_threads", "_precision", "_kernels",
        "_options", "_widths", "_names", "_weights", "__weakref__",
    )

    @property
    def name(self) -> str:
        """The model's name, or its folder."""
        return self._name

    @property
    def info(self) -> dict[str, Any]:
        """What ``infer info --json`` prints."""
        return self._info

    @property
    def threads(self) -> int:
        """How many threads share a run."""
        return self._threads

    @property
    def precision(self) -> str:
        """One of "f32", "bf16" and "int8"."""
        return self._precision

    @property
    def kernels(self) -> str:
        """Either "own" or "onednn"."""
        return self._kernels

    def __init__(
        self,
        folder_or_name: Union[str, "os.PathLike[str]"] = "sinusoidal",
        **given: Any,
    ) -> None:
        """With :class:`phasor.Encoder`'s options up to ``names``."""
        self._handle: Optional[Handle] = None
        # To make another one of the same model.
        asked = self._options = {**_DEFAULTS, **given}
        choice("names", asked["names"], {"hooked": 0, "bridge": 1})
        precision = c.word(asked["precision"], "precision")
        options = c.EncoderOptions(
            threads=asked["threads"],
            precision=_PRECISIONS.get(precision or b"", precision),
            kernels=c.c_string(asked["kernels"], "kernels"),
        )
        load = c.LoadOptions(copy=bool(asked["copy"]), follow_links=bool(asked["follow_links"]))
        if asked["language"] is not None:
            load.language = c.c_string(asked["language"])
        model = self._model = Model(folder_or_name, load)
        described = lib.model_info(model.handle)
        if described is None:
            check(c.INTERNAL)
        self._info: dict[str, Any] = json.loads(described)
        encoder = ctypes.c_void_p()
        check(lib.encoder_create(model.handle, ctypes.byref(options), ctypes.byref(encoder)))
        self._handle = Handle(encoder)
        runs = json.loads(lib.encoder_info(encoder))
        self._threads: int = runs["threads"]
        self._precision: str = runs["precision"]
        self._kernels: str = runs["kernels"]
        if asked["precision"] is None and logging.getLogger("phasor").isEnabledFor(logging.INFO):
            _note_faster()
        self._name: str = os.fsdecode(folder_or_name)
        # What loads the model, in any folder and process.
        self._place = os.path.abspath(self._name) if os.path.isdir(self._name) else self._name
        self._options = {**asked, "precision": self._precision, "kernels": self._kernels}
        # Once they are asked for.
        self._names: Optional[HookNames] = None
        self._weights: Optional[Weights] = None
        self._widths: dict[Optional[str], int] = {}

    def close(self) -> None:
        """Frees the packed weights and ends the threads, once calls that run have ended. Arrays
        that were returned stay valid."""
        self._handle = None

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):  # the interpreter may be ending
            self.close()

    def _in(self, precision: str) -> "Base":
        """The same model in another precision."""
        return Base(self._place, **dict(self._options, precision=precision))

    def _open(self) -> Handle:
        handle = self._handle
        if handle is None:
            raise c.Error("this Encoder is closed")
        return handle

    def _encoder(self, hooked: bool = False) -> contextlib.AbstractContextManager[ctypes.c_void_p]:
        return self._open().ask(hooked)

    def _text(self) -> dict[str, Any]:
        """How texts are prepared: length, prompts."""
        return cast(dict[str, Any], self.info.get("text", {}))
