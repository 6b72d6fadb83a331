"""Tokens, and what happens inside a run."""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import types
import weakref
from typing import Any, Callable, Iterable, Iterator, Optional, Sequence, Union, cast, overload

import numpy as np
import numpy.typing as npt

from . import _library as c
from ._base import Base, Self
from ._calls import Call, HookUser, call_hook, hooks_around
from ._library import InvalidArgument, address, check, floats, integer, lib
from .cache import Encoding, FwdHooks, hook_caller, is_called
from .names import HookNames, NamesFilter
from .residual import ActivationCache
from .run_options import Cut, PositionsLike, RunOptions, RunPositions, choice
from .run_options import int32, residual_cuts
from .weights import Blocks, FloatArray, Weights

#: Texts, or token ids of one sequence or of several.
TextsOrIds = Union[
    str,
    Sequence[str],
    Sequence[int],
    Sequence[Sequence[int]],
    Sequence[npt.NDArray[Any]],
    npt.NDArray[Any],
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


def _ids(texts: TextsOrIds) -> Optional[list[npt.NDArray[Any]]]:
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
            raise TypeError(
                "texts are str or sequences of str; token ids are sequences of 32-bit int, or several"
            )
        sequences.append(int32(array, "token ids"))
    return sequences


class Inside(Base):
    """See :class:`phasor.Encoder`."""

    __slots__ = ()

    @overload  # type: ignore
    def tokenize(  # type: ignore
        self, texts: str, text_pairs: Optional[str] = ..., *,
        parse_special: bool = ..., max_tokens: int = ...,
    ) -> Tokens: ...

    @overload
    def tokenize(
        self, texts: Sequence[str], text_pairs: Optional[Sequence[str]] = ..., *,
        parse_special: bool = ..., max_tokens: int = ...,
    ) -> list[Tokens]: ...

    def tokenize(
        self,
        texts: Union[str, Sequence[str]],
        text_pairs: Union[None, str, Sequence[str]] = None,
        *,
        parse_special: bool = False,
        max_tokens: int = 0,
    ) -> Union[Tokens, list[Tokens]]:
        """Ids and pieces of a text, or of each of several, or of pairs. ``parse_special`` reads
        special tokens in the text ("[MASK]") as such; ``max_tokens`` cuts."""
        self._open()
        one = isinstance(texts, str)
        pairs = None
        if text_pairs is not None:
            pairs = [text_pairs] if one else c.strs(text_pairs, "text_pairs")
        tokens = self._tokenize(
            [cast(str, texts)] if one else c.strs(texts, "texts"),
            cast(Optional[list[str]], pairs),
            c.TokenizeOptions(parse_special=bool(parse_special), max_tokens=max_tokens),
        )
        return tokens[0] if one else tokens

    def _tokenize(
        self, texts: Sequence[str], pairs: Optional[list[str]], options: c.TokenizeOptions
    ) -> list[Tokens]:
        model = self._model  # kept by this call
        first = c.BorrowedTexts(texts)
        second = None if pairs is None else c.BorrowedTexts(pairs)
        seconds = None if second is None else second.pointer
        result = c.Result()
        options.offset_unit = b"characters"
        check(
            lib.tokenize(
                model.handle, first.pointer, seconds, ctypes.byref(options), result.pointer()
            )
        )
        ids, offsets, pieces = result.array("token_ids"), result.array("offsets"), result.strings("pieces")
        types = None if second is None else result.array("token_types")
        spans = result.array("spans")
        counts = result.numbers("dropped_tokens"), result.numbers("invalid_bytes")
        rows = map(slice, offsets, offsets[1:])
        return [
            Tokens(
                ids[at], pieces[at], None if types is None else types[at], dropped, invalid, spans[at]
            )
            for at, dropped, invalid in zip(rows, *counts)
        ]

    @property
    def cfg(self) -> types.SimpleNamespace:
        """The model's sizes under TransformerLens' names; :attr:`info` has more."""
        sizes, position = self.info["sizes"], self.info["position"]
        return types.SimpleNamespace(
            model_name=self.name,
            n_layers=sizes["layers"],
            n_heads=sizes["heads"],
            d_model=sizes["d_model"],
            d_head=sizes["head_dim"],
            d_mlp=sizes["d_ff"],
            d_vocab=sizes["vocabulary"],
            n_ctx=position.get("usable_positions", position.get("trained_length")),
        )

    @property
    def weights(self) -> Weights:
        """Every tensor that the model uses, by phasor's name, read-only, as the run uses them,
        whatever the precision of the Encoder."""
        if self._weights is None:
            self._open()
            self._weights = Weights(self._model)
        return self._weights

    @property
    def blocks(self) -> Blocks:
        """TransformerLens' weights of each block, read-only: ``blocks[0].attn.W_Q`` [H, C, D] (W_K
        and W_V have the heads of keys), ``attn.W_O`` [H, D, C], ``attn.b_Q`` [H, D], ``attn.b_O``,
        ``mlp.W_in`` and ``W_gate`` [C, F], ``mlp.W_out`` [F, C], ``mlp.b_in``, ``mlp.b_out``, ``ln1.w``,
        ``ln1.b``, ``ln2.w``. ``b_Q`` and others are absent where the model lacks them."""
        return Blocks(self.weights, self.info["sizes"])

    @property
    def W_E(self) -> FloatArray:
        """The embedding of each token, [V, E], before any scale."""
        return self.weights["token_embedding.weight"]

    @property
    def W_pos(self) -> FloatArray:
        """The stored table of positions as the file has it, [rows, E]; position_vectors() gives what
        is added, also where that is a formula."""
        if "position_embedding.weight" not in self.weights:
            raise AttributeError("the model stores no table of positions; see position_vectors()")
        return self.weights["position_embedding.weight"]

    def to_tokens(self, texts: Union[str, Sequence[str]]) -> npt.NDArray[np.int32]:
        """Ids, special tokens included, [B, T]; texts of several lengths have to go one by one."""
        tokens = self.tokenize([texts] if isinstance(texts, str) else texts)
        if len({len(each.ids) for each in tokens}) > 1:
            raise InvalidArgument("the texts have different lengths, and phasor does not pad")
        return np.array([each.ids for each in tokens], np.int32)

    def to_str_tokens(self, text: Union[str, Sequence[str]]) -> Any:
        """The pieces of a text, special tokens included, or those of each of several."""
        if isinstance(text, str):
            return self.tokenize(text).pieces
        return [each.pieces for each in self.tokenize(text)]

    @property
    def hook_names(self) -> list[str]:
        """Every hook of the model, as TransformerLens names them; some exist only in models of a
        kind (``hook_rot_q`` where positions are rotary)."""
        return list(self._hook_names().every)

    def _hook_names(self) -> HookNames:
        if self._names is None:
            bridge = self._options["names"] == "bridge"
            self._names = HookNames(self.info, c.info("hooks").split("\n"), bridge)
        return self._names

    def forward(
        self,
        texts: TextsOrIds,
        *,
        fwd_hooks: FwdHooks = (),
        positions: PositionsLike = None,
        edit: Union[str, Sequence[str]] = (),
        cut_residual: Union[Cut, Iterable[Cut]] = (),
        overflow: str = "error",
    ) -> Encoding:
        """The hidden states of texts as they are, without a prompt, or of token ids, to which
        nothing is added. Options as in :meth:`run_with_cache`."""
        options = RunOptions(positions, edit, residual_cuts(cut_residual), overflow)
        return Encoding(self._run(texts, [], fwd_hooks, options)[0])

    def run_with_hooks(
        self,
        texts: TextsOrIds,
        fwd_hooks: FwdHooks = (),
        *,
        reset_hooks_end: bool = True,
        return_type: Optional[str] = "states",
        **options: Any,
    ) -> Any:
        """:meth:`forward`, as TransformerLens calls it. The hooks end with the run."""
        if not reset_hooks_end:
            raise InvalidArgument("hooks end with the run; see hooks() for several runs")
        return _returned(return_type, self.forward(texts, fwd_hooks=fwd_hooks, **options))

    @contextlib.contextmanager
    def hooks(self: Self, fwd_hooks: FwdHooks = ()) -> Iterator[Self]:
        """Within ``with``, runs of this Encoder in this context (``contextvars``: this thread, this
        task) have these hooks, before their own. What hooks do not reach, such as :meth:`encode`, is
        an error there."""
        owner, around, within = weakref.ref(self._open()), hooks_around.get(), [True]
        hooks = [(owner, within, pair) for pair in _pairs(fwd_hooks)]
        token = hooks_around.set((*around, *hooks))
        try:
            yield self
        finally:
            within.clear()  # also in tasks that were begun here
            hooks_around.reset(token)

    def run_with_cache(
        self,
        texts: TextsOrIds,
        names_filter: NamesFilter = None,
        *,
        fwd_hooks: FwdHooks = (),
        positions: PositionsLike = None,
        edit: Union[str, Sequence[str]] = (),
        cut_residual: Union[Cut, Iterable[Cut]] = (),
        overflow: str = "error",
        remove_batch_dim: bool = False,
        return_type: Optional[str] = "states",
        stop_at_layer: Optional[int] = None,
    ) -> tuple[Any, ActivationCache]:
        """Runs texts, and keeps what passes the hooks that ``names_filter`` picks: a name, several,
        a function of a name, or None for all. Without a filter a text of T tokens takes
        4·(11·T·C + 2·T·F + 2·H·T²) bytes a layer, or a little more.

        ``fwd_hooks`` are pairs of such a filter and a function ``f(value, hook)``, which gets a
        value with a leading batch dimension of 1, for one text after the other, and may change it
        in place or return another: to set a head to zero, or to patch in a value of another run.
        The run goes on with what it leaves, and the cache holds that. Functions may be called on
        another thread than the caller's, one at a time. To look only, use the cache: a function at
        a pattern or at scores changes the results by rounding even if it changes nothing.

        ``positions`` replaces the model's: a name ("none", "sinusoidal:paper", "learned", "rotary",
        "alibi"), a table [rows, E] or one int for each token. ``edit`` changes them: "zero", "mean",
        "scale=0.5", "shift=3", "swap=2,5", "reverse", "shuffle=7", "repeat", or several in order.
        ``cut_residual`` leaves out residual connections: layers from 0, "blocks.0.attn" or
        "blocks.0.mlp". ``overflow`` says what to do with a text longer than the positions.
        With ``return_type`` None the first of the two is None, otherwise an :class:`Encoding`.
        With ``stop_at_layer`` it is the state that this block reads, [B, T, C], and the cache has no
        more of this block and later ones; phasor runs whole, which saves no time.
        """
        names, layers = self._hook_names(), self.info["sizes"]["layers"]
        stop = None if stop_at_layer is None else integer("stop_at_layer", stop_at_layer)
        if stop is not None and not -layers <= stop <= layers:
            raise InvalidArgument(f"stop_at_layer is {stop}; there are the blocks 0 to {layers - 1}")
        stop = stop if stop is None or stop >= 0 else stop + layers
        record = names.pick(names_filter) + ([] if stop is None else [names.state(stop)])
        options = RunOptions(positions, edit, residual_cuts(cut_residual), overflow)
        result, texts_run = self._run(texts, record, fwd_hooks, options)
        cache = ActivationCache(result, texts_run, names, self.blocks, not remove_batch_dim)
        output = Encoding(result) if stop is None else cache._stopped(stop)
        return _returned(return_type, output), cache

    def _run(
        self,
        texts: TextsOrIds,
        record: list[str],
        fwd_hooks: FwdHooks,
        run: RunOptions,
    ) -> tuple[c.Result, range]:
        handle, options, result = self._open(), run.options, c.Result()
        recorded = c.BorrowedNames(record)
        options.record, options.num_record = recorded.pointer, recorded.count
        points: list[tuple[bytes, int]] = []  # name, index of the function
        functions: list[Callable[[Any], None]] = []
        called: set[str] = set()  # hooks at which functions were
        around = [pair for owner, within, pair in hooks_around.get() if owner() is handle and within]
        for filter, function in [*around, *_pairs(fwd_hooks)]:
            for name, alias in self._hook_names().points(filter):
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
        sequences = _ids(texts)
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
        call.run(
            lambda encoder: int(function(encoder, *inputs[1:], *rest)),
            long=num_texts > 1 or bool(functions),
        )
        for names, reached in ((record, result.names()), ([n.decode() for n, _ in points], called)):
            for name in names:
                if name != "all" and not any(is_called(path, name) for path in reached):
                    raise InvalidArgument(f"nothing passed {name}: this model has no such hook")
        return result, range(num_texts)

    def pieces(self, token_ids: npt.ArrayLike) -> list[str]:
        """The string of each token id."""
        self._open()
        model = self._model  # kept by this call
        ids = int32(np.atleast_1d(np.asarray(token_ids)), "token ids")
        result = c.Result()
        check(lib.pieces(model.handle, address(ids), ids.size, result.pointer()))
        return result.strings("pieces")

    def mlm_logits(self, hidden: npt.ArrayLike) -> FloatArray:
        """Scores over the vocabulary for states [n, C], before the softmax: [n, V]."""
        states = np.ascontiguousarray(floats("hidden", hidden))
        width = self.info["sizes"]["d_model"]
        if states.ndim != 2 or states.shape[1] != width:
            raise InvalidArgument(f"hidden has shape {states.shape}; it must be [n, {width}]")
        logits = np.empty((len(states), self.info["sizes"]["vocabulary"]), np.float32)
        with self._encoder(hooked=True) as encoder:  # there are no hooks in the head
            check(
                lib.mlm_logits(encoder, address(states), len(states), address(logits), logits.size)
            )
        return logits

    def position_vectors(
        self,
        num_tokens: int,
        positions: PositionsLike = None,
        edit: Union[str, Sequence[str]] = (),
        overflow: str = "error",
    ) -> FloatArray:
        """The vectors that a run adds to the tokens of a text of this length, [num_tokens, E]."""
        self._open()
        model = self._model  # kept by this call
        held = RunPositions(positions, edit)
        result = c.Result()
        check(
            lib.position_vectors(
                model.handle,
                integer("num_tokens", num_tokens),
                held.pointer,
                c.word(overflow, "overflow"),
                result.pointer(),
            )
        )
        return result.array("vectors")


def _pairs(fwd_hooks: FwdHooks) -> list[tuple[NamesFilter, Any]]:
    """The pairs; a filter that can be read once is a list."""
    pairs: list[tuple[NamesFilter, Any]] = []
    for pair in c.ordered(fwd_hooks, "fwd_hooks", "pairs of a name and a function", once=True):
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise TypeError("fwd_hooks is a list of pairs, like [(name, function)]")
        names = pair[0]
        kept = names is None or isinstance(names, str) or callable(names)
        pairs.append((names if kept else c.strs(names, "names_filter", once=True), pair[1]))
    return pairs


def _returned(return_type: Optional[str], output: Any) -> Any:
    return None if choice("return_type", return_type, {"states": 0, None: 1}) else output
