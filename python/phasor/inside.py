"""Tokens, and runs that are recorded and changed."""

from __future__ import annotations

import ctypes
import dataclasses
from typing import TYPE_CHECKING, Any, Callable, Optional, Sequence, Union

import numpy as np
import numpy.typing as npt

from . import _library as c
from ._base import Model
from ._calls import Call, HookUser, call_hook, hooks_around
from ._library import InvalidArgument, address, check, lib
from .cache import FwdHooks, hook_caller, is_called
from .names import NamesFilter
from .run_options import RunOptions, int32

if TYPE_CHECKING:
    from .encoder import Encoder

#: Texts, or token ids of one sequence or of several.
TextsOrIds = Union[
    str, Sequence[str], Sequence[int], Sequence[Sequence[int]], Sequence[npt.NDArray[Any]], npt.NDArray[Any],
]


@dataclasses.dataclass(frozen=True)
class Tokens:
    """How one text was tokenized."""

    #: The ids, special tokens included, [T].
    ids: npt.NDArray[np.int32]
    #: A string for each id.
    pieces: list[str]
    #: Of a pair: the token type of each id, [T]; otherwise None.
    token_types: Optional[npt.NDArray[np.int32]]
    #: How many text tokens were cut off.
    dropped: int
    #: How many lone surrogates the text had, each read as U+FFFD.
    invalid_bytes: int
    #: Where each token stands in the text: from which character to before which, [T, 2]; zeros for
    #: what is added round the text. Of a pair in its own text.
    offset_mapping: npt.NDArray[np.int64]


def ids_of(texts: TextsOrIds) -> Optional[list[npt.NDArray[Any]]]:
    """The sequences, if these are ids; None if they are texts."""
    if isinstance(texts, str):
        return None
    given = list(c.ordered(texts, "texts"))
    if given and isinstance(given[0], str):
        return None
    several = not given or not isinstance(given[0], (int, np.integer))
    sequences = []
    for sequence in given if several else [given]:
        try:
            array = np.asarray(sequence)
        except ValueError:  # ragged
            array = np.empty(())
        if array.ndim != 1 or array.dtype.kind not in "iu" and array.size:
            raise TypeError("texts are str or sequences of str; token ids are sequences of 32-bit int, or several")
        sequences.append(int32(array, "token ids"))
    return sequences


def tokenized(
    model: Model, texts: Sequence[str], pairs: Optional[Sequence[str]], parse_special: bool, max_tokens: int
) -> list[Tokens]:
    options = c.TokenizeOptions(parse_special=bool(parse_special), max_tokens=max_tokens, offset_unit=b"characters")
    first = c.BorrowedTexts(texts)
    second = None if pairs is None else c.BorrowedTexts(pairs)
    pointers = first.pointer, None if second is None else second.pointer
    result = c.Result()
    check(lib.tokenize(model.handle, *pointers, ctypes.byref(options), result.pointer()))
    ids, offsets, pieces = result.array("token_ids"), result.array("offsets"), result.strings("pieces")
    types = None if second is None else result.array("token_types")
    spans = result.array("spans")
    counts = result.numbers("dropped_tokens"), result.numbers("invalid_bytes")
    return [
        Tokens(ids[at], pieces[at], None if types is None else types[at], dropped, invalid, spans[at])
        for at, dropped, invalid in zip(map(slice, offsets, offsets[1:]), *counts)
    ]


def recorded_run(
    encoder: Encoder, texts: TextsOrIds, record: list[str], fwd_hooks: FwdHooks, run: RunOptions
) -> tuple[c.Result, range]:
    """What a run recorded, and the numbers of its texts."""
    handle, options, result = encoder._open(), run.options, c.Result()
    recorded = c.BorrowedNames(record)
    options.record, options.num_record = recorded.pointer, recorded.count
    points: list[tuple[bytes, int]] = []  # name, index of the function
    functions: list[Callable[[Any], None]] = []
    called: set[str] = set()  # hooks at which functions were
    around = [pair for owner, within, pair in hooks_around.get() if owner() is handle and within]
    for filter, function in [*around, *hook_pairs(fwd_hooks)]:
        for name, alias in encoder._hook_names().points(filter):
            points.append((c.c_string(name), len(functions)))
            functions.append(hook_caller(function, called, alias))
    call = Call(handle, hooks=functions)
    del handle  # a traceback may hold what is here
    users = [HookUser(id(call), index) for _, index in points]
    hooks = (c.Hook * len(points))()
    for i, ((point, _), user) in enumerate(zip(points, users)):
        hooks[i] = c.Hook(point, call_hook, ctypes.addressof(user), 1)
    options.hooks, options.num_hooks = ctypes.addressof(hooks), len(points)
    options.stop = call.stop
    sequences = ids_of(texts)
    if sequences is None:
        given = [texts] if isinstance(texts, str) else c.strs(texts, "texts")
        num_texts, borrowed = len(given), c.BorrowedTexts(given)
        inputs: tuple[Any, ...] = (borrowed, borrowed.pointer)
        function = lib.encode
    else:
        num_texts, function = len(sequences), lib.encode_ids
        ids = np.concatenate([np.empty(0, np.int32), *sequences])
        offsets = np.cumsum([0, *map(len, sequences)], dtype=np.int64)
        inputs = ((ids, offsets), address(ids), address(offsets), num_texts)
    call.keep = (recorded, run, users, hooks, result, inputs)
    rest = (ctypes.byref(options), result.pointer())
    call.run(lambda encoder: int(function(encoder, *inputs[1:], *rest)), long=num_texts > 1 or bool(functions))
    for names, reached in ((record, result.names()), ([n.decode() for n, _ in points], called)):
        for name in names:
            if name != "all" and not any(is_called(path, name) for path in reached):
                raise InvalidArgument(f"nothing passed {name}: this model has no such hook")
    return result, range(num_texts)


def hook_pairs(fwd_hooks: FwdHooks) -> list[tuple[NamesFilter, Any]]:
    """The pairs; a filter that can be read once is a list."""
    pairs: list[tuple[NamesFilter, Any]] = []
    for pair in c.ordered(fwd_hooks, "fwd_hooks", "pairs of a name and a function", once=True):
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise TypeError("fwd_hooks is a list of pairs, like [(name, function)]")
        names = pair[0]
        kept = names is None or isinstance(names, str) or callable(names)
        pairs.append((names if kept else c.strs(names, "names_filter", once=True), pair[1]))
    return pairs
