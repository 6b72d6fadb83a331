"""A model and an encoder of the library are opened."""

from __future__ import annotations

import ctypes
import functools
import json
import logging
import os
from typing import Any, Mapping, Union

from . import _library as c
from ._calls import Handle
from ._library import NotFound, check, lib
from .run_options import choice

ModelName = Union[str, "os.PathLike[str]"]
_PRECISIONS = {b"float32": b"f32", b"bfloat16": b"bf16"}  # other names


@functools.lru_cache(maxsize=None)
def _note_faster() -> None:
    """Once in a process, for who has chosen no precision."""
    faster = c.info("faster_than_float32")
    if faster:
        logging.getLogger("phasor").info("precision is f32 by default; %s", faster)


class Model:
    """A phasor_model; a call that uses it keeps it, whoever closes the Encoder."""

    def __init__(self, name: ModelName, options: c.LoadOptions) -> None:
        self.handle = ctypes.c_void_p()
        check(lib.model_load(c.path(name), ctypes.byref(options), ctypes.byref(self.handle)))

    def __del__(self, free: Any = lib.model_free) -> None:
        if self.handle:
            free(self.handle)


def opened(name: ModelName, asked: Mapping[str, Any]) -> tuple[Model, dict[str, Any], Handle, dict[str, Any]]:
    """A model, what it is, an encoder of it, and how that runs."""
    choice("names", asked["names"], {"hooked": 0, "bridge": 1})
    precision = c.word(asked["precision"], "precision")
    options = c.EncoderOptions(
        threads=asked["threads"], precision=_PRECISIONS.get(precision or b"", precision),
        kernels=c.c_string(asked["kernels"], "kernels"),
    )
    load = c.LoadOptions(copy=bool(asked["copy"]), follow_links=bool(asked["follow_links"]))
    if asked["language"] is not None:
        load.language = c.c_string(asked["language"])
    model = Model(name, load)
    described = lib.model_info(model.handle)
    if described is None:
        check(c.INTERNAL)
    encoder = ctypes.c_void_p()
    check(lib.encoder_create(model.handle, ctypes.byref(options), ctypes.byref(encoder)))
    handle = Handle(encoder)
    if precision is None and logging.getLogger("phasor").isEnabledFor(logging.INFO):
        _note_faster()
    return model, json.loads(described), handle, json.loads(lib.encoder_info(encoder))


def in_cache(name: str, folder: ModelName) -> str:
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
