"""The C interface of libphasor_c.so (include/phasor/phasor_c.h), for ctypes."""

from __future__ import annotations

import codecs
import collections.abc
import ctypes
import functools
import itertools
import operator
import os
import pathlib
import types
from ctypes import POINTER, Structure, c_char_p, c_int32, c_int64, c_size_t, c_uint64, c_void_p
from typing import Any, Iterable, Iterator, Optional, Sequence, Union, cast

import numpy as np

INTERFACE_VERSION = 1

_WHEEL = pathlib.Path(__file__).parent / "_install"
#: Where the program is. The wheel has it with the library and the models; otherwise they are the system's.
PREFIX = _WHEEL if _WHEEL.is_dir() else pathlib.Path("/usr")


class Error(Exception):
    """What phasor raises. The message says what is wrong, the value, and what to do."""


class InvalidArgument(Error, ValueError):
    """The caller's input."""


class Cancelled(Error):
    """The call was ended by the caller, or by the end of the interpreter."""


class ModelError(Error):
    """The checkpoint's files: missing, damaged, or of a kind that phasor does not implement."""


class NotFound(ModelError, FileNotFoundError):
    """No such model."""


class BackendError(Error, RuntimeError):
    """oneDNN, or a defect of phasor."""


_ERRORS: dict[int, type[Exception]] = {
    1: InvalidArgument, 2: InvalidArgument, 3: InvalidArgument, 4: Cancelled, 5: NotFound, 6: ModelError,
    7: ModelError, 9: MemoryError,
}
INTERNAL = 10


def integer(what: str, value: Any) -> int:
    """An int that fits into 64 bits; ctypes would keep the low bits of others."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{what} must be an int, not {type(value).__name__}") from None
    if not -(2**63) <= number < 2**63:
        raise InvalidArgument(f"{what} is {number}, which is out of range")
    return number


class _Checked(Structure):
    """Refuses what a field cannot hold."""

    def __setattr__(self, name: str, value: Any) -> None:
        try:
            super().__setattr__(name, value)
        except TypeError:
            raise TypeError(f"{name} must be an int, not {type(value).__name__}") from None
        kept = getattr(self, name)
        if isinstance(kept, int) and kept != value and not isinstance(value, c_void_p):
            raise InvalidArgument(f"{name} is {value}, which is out of range")


class _Options(_Checked):
    """Options begin with their size, which is set here."""

    def __init__(self, **fields: Any) -> None:
        super().__init__(size=ctypes.sizeof(self), **fields)


_KINDS: dict[str, Any] = {
    "int32": c_int32, "int64": c_int64, "uint64": c_uint64, "size_t": c_size_t, "string": c_char_p,
    "pointer": c_void_p, "shape": c_int64 * 4,
}


def _fields(declarations: str) -> list[tuple[str, Any]]:
    """Of a struct, from "int64 size; int32 copy, reserved"."""
    found = [each.split(None, 1) for each in declarations.split(";")]
    return [(name.strip(), _KINDS[kind]) for kind, names in found for name in names.split(",")]


class Texts(Structure):
    _fields_ = _fields("pointer data, sizes; int64 count")


class Array(Structure):
    _fields_ = _fields("pointer data; int32 type, num_dims; shape shape")


_KINDS["array"] = Array


class HookEvent(Structure):
    _fields_ = _fields("""
        size_t size; string name; int64 text, first_token; array array; pointer changeable
    """)


HookFunction = ctypes.CFUNCTYPE(c_int32, c_void_p, POINTER(HookEvent))
ProgressFunction = ctypes.CFUNCTYPE(c_int32, c_void_p, c_int64, c_int64)
StageFunction = ctypes.CFUNCTYPE(c_int32, c_void_p, c_char_p, c_int64, c_int64)
_KINDS.update(hook=HookFunction, progress=ProgressFunction, stages=StageFunction)


class Hook(Structure):
    _fields_ = _fields("string name; hook function; pointer user; int32 change")


class LoadOptions(_Options):
    _fields_ = _fields("size_t size; string language; int32 copy, follow_links")


class EncoderOptions(_Options):
    _fields_ = _fields("size_t size; string precision, kernels; int32 threads, reserved")


class TokenizeOptions(_Options):
    _fields_ = _fields("""
        size_t size; int32 parse_special, no_special_tokens; int64 max_tokens, prompt_bytes;
        string offset_unit, truncation_side
    """)


class Positions(_Options):
    _fields_ = _fields("""
        size_t size; string kind; pointer table; int64 table_rows, table_width; pointer ids;
        int64 num_ids; pointer edits; int64 num_edits
    """)


class ResidualCut(_Checked):
    _fields_ = _fields("int64 layer; string site")


class RunOptions(_Options):
    _fields_ = _fields("""
        size_t size; pointer positions; string overflow; pointer cut_residuals;
        int64 num_cut_residuals; pointer record; int64 num_record; pointer hooks; int64 num_hooks;
        pointer hidden; int64 hidden_size; pointer token_types; int64 num_token_types; pointer stop;
        int32 parse_special, reserved
    """)


class TextOptions(Structure):  # which hold no number of the caller's
    _fields_ = _fields("""
        size_t size; pointer settings, positions, output; int64 output_size; progress progress;
        pointer user, stop
    """)

    def __init__(self, settings: Optional[Settings] = None, **fields: Any) -> None:
        super().__init__(ctypes.sizeof(self), settings and settings.pointer, **fields)
        self.held = settings


class ObserveOptions(_Options):
    _fields_ = _fields("""
        size_t size; pointer run, second, views; int64 num_views; string without; uint64 seed;
        int64 top_k, max_tokens; pointer masked; string name, second_name, label, second_label,
        baseline; int32 means, figures, allowed_only, reserved; stages progress; pointer user, stop
    """)


# What each function takes and returns; "long" functions may run for a while, without the GIL.
_P, _I32, _I64, _S = c_void_p, c_int32, c_int64, c_char_p
FUNCTIONS: dict[str, tuple[Any, list[Any], bool]] = {
    "phasor_error_message": (_S, [], False),
    "phasor_interface_version": (_I32, [], False),
    "phasor_info": (_S, [_S], True),
    "phasor_model_load": (_I32, [_S, _P, _P], True),
    "phasor_model_free": (None, [_P], True),
    "phasor_model_info": (_S, [_P], True),
    "phasor_model_tensors": (_I32, [_P, _P], False),
    "phasor_tokenize": (_I32, [_P, _P, _P, _P, _P], True),
    "phasor_pieces": (_I32, [_P, _P, _I64, _P], True),
    "phasor_result_array": (_I32, [_P, _S, _I64, _P], False),
    "phasor_result_array_name": (_S, [_P, _I64], False),
    "phasor_result_string": (_P, [_P, _S, _I64, _P], False),
    "phasor_result_free": (None, [_P], False),
    "phasor_stop_create": (_I32, [_P], False),
    "phasor_stop_request": (None, [_P], False),
    "phasor_stop_free": (None, [_P], False),
    "phasor_encoder_create": (_I32, [_P, _P, _P], True),
    "phasor_encoder_info": (_S, [_P], False),
    "phasor_encoder_free": (None, [_P], True),
    "phasor_encode": (_I32, [_P, _P, _P, _P], True),
    "phasor_encode_ids": (_I32, [_P, _P, _P, _I64, _P, _P], True),
    "phasor_embed": (_I32, [_P, _P, _P, _P], True),
    "phasor_quantize": (_I32, [_P, _I64, _I64, _S, _P, _P, _P, _I64], True),
    "phasor_classify": (_I32, [_P, _P, _P, _P, _P], True),
    "phasor_label": (_I32, [_P, _P, _P, _P], True),
    "phasor_rank": (_I32, [_P, _P, _P, _P, _P], True),
    "phasor_mlm_logits": (_I32, [_P, _P, _I64, _P, _I64], True),
    "phasor_position_vectors": (_I32, [_P, _I64, _P, _S, _P], True),
    "phasor_observe": (_I32, [_P, _P, _P, _P], True),
    "phasor_compare": (_I32, [_P, _P, _P, _P, _P], True),
}


def _load() -> Any:
    """The library's functions, with their types."""
    file = str(_WHEEL / "lib" / "libphasor_c.so.2") if _WHEEL.is_dir() else "libphasor_c.so.2"
    with_gil, without = ctypes.PyDLL(file), ctypes.CDLL(file)

    found = with_gil.phasor_interface_version()
    if found < INTERFACE_VERSION:
        raise ImportError(f"{file} has version {found} of the C interface; this package needs {INTERFACE_VERSION}")
    functions = types.SimpleNamespace()
    for name, (result, arguments, long) in FUNCTIONS.items():
        function = getattr(without if long else with_gil, name)
        function.restype, function.argtypes = result, arguments
        setattr(functions, name[len("phasor_") :], function)
    return functions


lib = _load()


def info(what: str) -> str:
    """What the library says of itself; see phasor_info()."""
    said = lib.info(what.encode())
    if said is None:
        raise MemoryError
    return cast(str, said.decode())


def check(status: int) -> None:
    """Raises what a status stands for."""
    if status != 0:
        message = lib.error_message().decode("utf-8", "replace")
        raise _ERRORS.get(status, BackendError)(message)


def _surrogates(error: UnicodeError) -> tuple[bytes, int]:
    found = cast(UnicodeEncodeError, error)
    return b"\xff" * (found.end - found.start), found.end


codecs.register_error("phasor.surrogates", _surrogates)


def utf8(text: str, what: str = "a text") -> bytes:
    """A lone surrogate becomes a byte that is not UTF-8, which phasor reads as U+FFFD and counts."""
    if not isinstance(text, str):
        raise TypeError(f"{what} is a str, not {type(text).__name__}")
    return text.encode("utf-8", "phasor.surrogates")


def ordered(given: Any, what: str, of: str = "str", once: bool = False) -> Iterator[Any]:
    """Goes over a list, a tuple, an array or the column of a table; if ``once``, also over an
    iterator. What has no items by number is a mistake, and a table would give its columns' names."""
    kind, instead = type(given), None
    if any(hasattr(kind, names) for names in ("columns", "column_names")):
        instead = 'give one of its columns, like table["text"]'
    elif isinstance(given, collections.abc.Mapping):
        instead = f"give its keys or values, like list({what}.values())"
    elif isinstance(given, collections.abc.Set):
        instead = f"give a list, such as sorted({what})"
    elif isinstance(given, collections.abc.Iterator) and not once:
        instead = f"give list({what})"
    elif isinstance(given, np.ndarray) and given.ndim == 0:
        instead = f"give {what}.item(), or an array of 1 dimension"
    elif isinstance(given, (bytes, bytearray)):
        instead = f"give str, such as {what}.decode()"
    elif isinstance(given, str) or not hasattr(kind, "__iter__"):
        instead = f"give [{what}]" if isinstance(given, str) else "give a list"
    if instead is not None:
        raise TypeError(f"{what} must be a sequence of {of}, not {kind.__name__}; {instead}")
    # A pyarrow column's items are no str.
    return iter(given.to_pylist() if hasattr(kind, "to_pylist") else given)


def strs(given: Any, what: str, once: bool = False) -> list[str]:
    """A list of str from what ordered() goes over."""
    texts = list(ordered(given, what, once=once))
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"{what}[{i}] is of type {type(text).__name__}, not str")
    return texts


def path(name: "Union[str, bytes, os.PathLike[Any]]") -> bytes:
    """A file's or model's name for the system."""
    try:
        encoded = os.fsencode(name)
    except UnicodeEncodeError:
        raise InvalidArgument(f"{name!r} holds characters that no file name has") from None
    if b"\0" in encoded:
        raise InvalidArgument(f"{name!r} holds a NUL character")
    return encoded


def address(array: "np.ndarray[Any, Any]") -> int:
    """Of an array's first element; faster than array.ctypes.data."""
    data: int = array.__array_interface__["data"][0]
    return data


def floats(what: str, value: Any) -> "np.ndarray[Any, np.dtype[np.float32]]":
    """An array of float32 from numbers; NumPy would make NaN of None, and numbers of strings."""
    try:
        array = np.asarray(value)
    except ValueError:  # ragged
        raise InvalidArgument(f"{what} must be an array of numbers") from None
    if array.dtype.kind not in "fiu" and array.size > 0:
        raise TypeError(f"{what} must be numbers, not {array.dtype}")
    return array.astype(np.float32, copy=False)


@functools.lru_cache(maxsize=256)
def _array_type(kind: Any, count: int) -> Any:
    """A type that ctypes would make anew for each array."""
    return kind * count


class BorrowedTexts:
    """Texts as the C interface reads them. Keep it while the call runs."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._bytes = [utf8(text) for text in texts]
        count = len(self._bytes)
        self._sizes = _array_type(c_int64, count)(*map(len, self._bytes))
        self._data = _array_type(c_char_p, count)(*self._bytes)
        self._texts = Texts(ctypes.addressof(self._data), ctypes.addressof(self._sizes), count)
        self.pointer = ctypes.addressof(self._texts)


class BorrowedNames:
    """An array of strings that end with a NUL."""

    def __init__(self, names: Iterable[str]) -> None:
        encoded = [c_string(name) for name in names]
        self.count = len(encoded)
        self._data = _array_type(c_char_p, self.count)(*encoded)
        self.pointer = ctypes.addressof(self._data) if encoded else None


def c_string(text: str, what: str = "a name") -> bytes:
    """A string for the C interface, where a NUL would end it early."""
    encoded = utf8(text, what)
    if b"\0" in encoded:
        raise InvalidArgument(f"{what} must not hold a NUL character, as {text[:100]!r} does")
    return encoded


def word(name: Optional[str], what: str) -> Optional[bytes]:
    """A word for the C interface, which refuses those that it does not know; None for its default."""
    return None if name is None else c_string(name, what)


class Settings:
    """The names and values of phasor_text_options, and a NULL; those that are None are left out."""

    def __init__(self, **values: Optional[str]) -> None:
        given = {k.encode(): c_string(v, k) for k, v in values.items() if v is not None}
        self._data = (c_char_p * (2 * len(given) + 1))(*itertools.chain(*given.items()))
        self.pointer = ctypes.addressof(self._data)


_TYPES = {0: "<f4", 1: "<i4", 2: "<i8", 3: "<f2", 4: "<u2", 5: "<f8"}  # NumPy has no bfloat16


class _Memory:
    """Hands memory to NumPy; the array keeps this, and this keeps its owner."""

    __slots__ = ("__array_interface__", "owner")

    def __init__(self, pointer: int, type: int, shape: tuple[int, ...], owner: object) -> None:
        self.__array_interface__ = {
            "data": (pointer, True),  # read-only
            "typestr": _TYPES[type],
            "shape": shape,
            "version": 3,
        }
        self.owner = owner


class Result:
    """A phasor_result: arrays by name, without copies. They keep it alive."""

    def __init__(self) -> None:
        self.handle = c_void_p()

    def pointer(self) -> Any:
        return ctypes.byref(self.handle)

    def numbers(self, name: str) -> Any:
        """An array as lists of int or float."""
        return self.array(name).tolist()

    def array(self, name: str, text: int = -1) -> "np.ndarray[Any, Any]":
        found = Array()
        check(lib.result_array(self.handle, name.encode(), text, ctypes.byref(found)))
        shape = tuple(found.shape[: found.num_dims])
        if 0 in shape or not found.data:
            return np.empty(shape, _TYPES[found.type])
        return np.asarray(_Memory(found.data, found.type, shape, self))

    def names(self) -> list[str]:
        found = (lib.result_array_name(self.handle, i) for i in itertools.count())
        return [name.decode() for name in itertools.takewhile(bool, found)]

    def strings(self, name: str) -> list[str]:
        found: list[str] = []
        size = c_int64()
        while True:
            at = lib.result_string(self.handle, name.encode(), len(found), ctypes.byref(size))
            if not at:
                return found
            found.append(ctypes.string_at(at, size.value).decode("utf-8", "replace"))

    # Bound here: when the interpreter ends, `lib` may be gone before the last array.
    def __del__(self, free: Any = lib.result_free) -> None:
        if self.handle:
            free(self.handle)
