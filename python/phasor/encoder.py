"""The encoder: texts in, vectors, hidden states and everything between out."""

from __future__ import annotations

import os
from typing import Any, Sequence, Union

from .observed import Observed, compare, observe
from .vectors import Vectors


class Encoder(Vectors):
    """Runs a model.

    ``folder_or_name`` is a model folder (``config.json``, weights, tokenizer files), the name of a
    bundled model, such as ``sinusoidal`` or ``rotary``, or ``OWNER/MODEL`` for a model in the hub's
    local cache; nothing is downloaded. ``threads`` share each
    run; 0 stands for all available cores. ``precision`` is ``f32``, ``bf16``, ``int8`` or ``auto``;
    where none is given it is ``f32``, and the logger ``phasor`` says once what others would give here.
    ``kernels`` is ``own``, ``onednn`` (primitives of oneDNN alone) or ``auto``, the faster one.
    ``language`` is for tokenizers whose texts carry one. ``copy`` reads the weights into memory
    instead of mapping their files. ``follow_links`` follows links that lead out of the folder, which
    are refused otherwise: whoever made the folder could have any file read.

    Any number of Python threads may use one Encoder: as many calls run at once as their threads fit
    on the cores, and others wait. It works in a child after ``os.fork()``, unless another thread
    ran phasor at that moment; then calls raise :class:`phasor.Busy`.

    Shape letters: B texts, N tokens of all texts, T tokens of one text, C width of the states, H
    heads, D width of a head, V vocabulary, W width of the vectors.
    """

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
