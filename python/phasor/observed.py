"""The numbers of ``infer observe`` and ``infer compare`` as tables, and their page in a notebook."""

from __future__ import annotations

import base64
import ctypes
import html
import json
import os
import pathlib
import re
from typing import TYPE_CHECKING, Any, Callable, Iterable, Iterator, Mapping
from typing import NamedTuple, Optional, Sequence, Union

import numpy as np
import numpy.typing as npt

from . import _library as c
from ._base import ModelName
from ._calls import Call, call_stages
from ._library import InvalidArgument, lib, path, strs
from .run_options import Cut, PositionsLike, RunOptions, residual_cuts

if TYPE_CHECKING:
    from .encoder import Encoder

Strings = Union[str, Sequence[str]]
Model = Union[ModelName, "Encoder"]
StageProgress = Callable[[str, int, int], None]
_FIGURE_TEXTS = 16  # on the page
_FIGURES = {  # those that are no view's, with the view that they need beside the page's own numbers
    "turns": "effect", "links": "heads", "pattern": "heads", "profile": "heads", "overview": "heads",
    "clocks": "pattern", "vectors": "pattern", "distances": "pattern",
}
_SLICE = 64  # texts of a call, whose JSON is in memory at once


class Table(dict[str, "npt.NDArray[Any]"]):
    """Columns of equal length by name, such as ``layer`` and ``position``. Layers and heads count
    from 1, layer 0 is the embedding. A cell without a number is NaN."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        names = {name: None for row in rows for name in row}  # in their order, once
        super().__init__({name: _column([row.get(name) for row in rows]) for name in names})

    def to_pandas(self) -> Any:
        """A ``pandas.DataFrame``."""
        import pandas

        return pandas.DataFrame(self)

    def __repr__(self) -> str:
        shown = [[name, *map(_shown, column[:20])] for name, column in self.items()]
        widths = [max(map(len, column)) for column in shown]
        lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths)) for row in zip(*shown)]
        length = len(next(iter(self.values())))
        if length > 20:
            lines.append(f"… ({length} rows)")
        return "\n".join(lines)


def _column(cells: list[Any]) -> "npt.NDArray[Any]":
    if all(isinstance(cell, int) and not isinstance(cell, bool) for cell in cells):
        return np.array(cells, np.int64)
    if any(isinstance(cell, str) for cell in cells):
        return np.array(["" if cell is None else cell for cell in cells], object)
    return np.array([np.nan if cell is None else cell for cell in cells], np.float64)


def _shown(cell: Any) -> str:
    return f"{cell:.3f}" if isinstance(cell, float) else str(cell)


class Observed(Mapping[str, Table]):
    """What :func:`observe` and :func:`compare` found, by the names of views.

    ``observed["split"]`` is the table of a view. Where there are several texts or two runs (with
    interventions, or of two models) the table has the columns ``text`` and ``run``, too. In a
    notebook an Observed is shown as the page of figures, for which the texts are run once more.
    """

    _height = "60em"  # in a notebook
    _chosen: Mapping[str, Any] = {}  # what the page begins with

    def __init__(self, json: list[dict[str, Any]], figures: Callable[..., list[dict[str, Any]]]) -> None:
        #: The JSON of each text: one run, or {"runs": [run, run]}; see docs/reading-in-python.md.
        self.json = json
        self._figures = figures
        self._page: Optional[str] = None

    def _runs(self) -> Iterator[Any]:
        """(number of the text, run) of all."""
        for i, line in enumerate(self.json):
            for run in line.get("runs", [line]):
                yield i, run

    def __iter__(self) -> Iterator[str]:
        return iter({view: None for _, run in self._runs() for view in run["views"]})

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __getitem__(self, view: str) -> Table:
        rows = []
        several, two = len(self.json) > 1, any("runs" in line for line in self.json)
        for i, run in self._runs():
            for row in run["views"].get(view, []):
                place: dict[str, Any] = {"text": i} if several else {}
                if two:
                    place["run"] = run["label"]
                rows.append({**place, **row})
        if not rows:
            why = [run["missing"][view] for _, run in self._runs() if view in run["missing"]]
            if view == "pattern":
                why = ["patterns are in the cache of run_with_cache(), and on the page"]
            raise KeyError(f"{view}: {why[0]}" if why else f"{view}; there are: {', '.join(self)}")
        return Table(rows)

    def html(self) -> str:
        """The page of figures, for a browser; it needs no network."""
        if self._page is None:
            template = (c.PREFIX / "share" / "phasor" / "page.html").read_text("utf-8")
            views = json.loads(c.info("views"))
            data = {"version": c.info("version"), "views": views, **self._chosen, "texts": self._figures()}
            self._page = template.replace("REPORT_DATA", json.dumps(data).replace("<", "\\u003c"), 1)
        return self._page

    def _repr_html_(self) -> str:
        return (
            f'<iframe style="width: 100%; height: {self._height}; border: 0" '
            f'srcdoc="{html.escape(self.html())}"></iframe>'
        )

    def _pair(self) -> list[str]:
        """The sentence on two texts with the same words, if they are that."""
        return [run["pair"] for i, run in self._runs() if i == 1 and "pair" in run]

    def __repr__(self) -> str:
        return "\n\n".join([*self._pair(), *(f"{view}\n{self[view]!r}" for view in self)])


class Figure(Observed):
    """One figure of the page, which :meth:`Encoder.show` returns: a notebook draws it, a terminal prints its
    numbers, and :meth:`html` is a page of it alone."""

    _height = "30em"  # until the figure has been drawn, which knows its own

    def __init__(self, observed: Observed, name: str, opens_on: Optional[Mapping[str, int]]) -> None:
        super().__init__(observed._figures([_FIGURES.get(name, name)]), lambda: self.json)
        self.name = name
        self._chosen = {"figure": name, "opens_on": opens_on} if opens_on else {"figure": name}

    def __repr__(self) -> str:
        if self.name in self:
            return repr(self[self.name])
        if self.name != "turns" or not any("turns" in run for _, run in self._runs()):
            return f"the figure {self.name}; a notebook draws it, and html() is its page"
        said = [f"“{line.get('runs', [line])[0].get('text', '')}”: {line['conclusions'][0]['sentence']}"
                for line in self.json if line.get("conclusions")]
        return "\n".join([*(self._pair() or said), "", "degrees by which positions turn the states", repr(self._degrees())])

    def _degrees(self) -> Table:
        """Means by layer, and how far the same tokens of two texts are apart."""
        columns = {}
        for i, run in self._runs():
            name = f"text {i} " * (len(self.json) > 1) + run.get("label", "")
            if "turns" in run:
                columns[name.strip() or "degrees"] = _decoded(run["turns"], run["num_layers"] + 1).mean(1)
            if "apart" in run and len(self.json) == 2:
                columns["apart"], columns["apart without positions"] = _decoded(run["apart"], 2)
        layers = len(next(iter(columns.values())))
        return Table([{"layer": i, **{name: float(column[i]) for name, column in columns.items()}} for i in range(layers)])


def _decoded(numbers: Mapping[str, Any], rows: int) -> "npt.NDArray[np.float32]":
    return np.frombuffer(base64.b64decode(numbers["values"]), "<f4").reshape(rows, -1)


def figure_of(
    encoder: Encoder, texts: list[str], name: str, layer: Optional[int], head: Optional[int], options: dict[str, Any]
) -> Figure:
    """What :meth:`Encoder.show` returns."""
    known = [*_FIGURES, *(view["name"] for view in json.loads(c.info("views")) if view["chart"] != "none")]
    if name not in known:
        raise InvalidArgument(f"there is no figure {name!r}; there are: {', '.join(known)}")
    sizes, opens_on = encoder.info["sizes"], {}
    for what, number in (("layer", layer), ("head", head)):
        most = sizes[f"{what}s"]
        opens_on[what] = 1 if number is None else c.integer(what, number)
        if not 1 <= opens_on[what] <= most:
            raise InvalidArgument(f"{what} is {number}; there are 1 to {most}")
    chosen = layer is not None or head is not None
    return Figure(observe(texts, model=encoder, only="norm", **options), name, opens_on if chosen else None)


class _Run(NamedTuple):
    """An encoder and how it is run, for phasor_observe() and phasor_compare()."""

    encoder: Encoder
    label: str
    held: RunOptions


def _measure(
    runs: Sequence[_Run], texts: Sequence[str], views: Sequence[str], fields: Mapping[str, Any],
    progress: Optional[StageProgress], masked: Sequence[str] = (), compares: bool = False,
) -> list[dict[str, Any]]:
    """What phasor_observe() or, of two encoders, phasor_compare() says of texts."""
    options = c.ObserveOptions(**fields)
    places = ("run", "name", "label"), ("second", "second_name", "second_label")
    for run, (way, name, label) in zip(runs, places):
        setattr(options, way, ctypes.addressof(run.held.options))
        setattr(options, name, c.c_string(run.encoder._place))
        setattr(options, label, c.c_string(run.label) if run.label else None)
    names, lines, borrowed = c.BorrowedNames(views), c.BorrowedTexts(masked), c.BorrowedTexts(texts)
    options.views, options.num_views = names.pointer, names.count
    if masked:
        options.masked = lines.pointer
    call = Call([run.encoder._open() for run in (runs if compares else runs[:1])], progress)
    result = c.Result()
    call.keep = (runs, names, lines, borrowed, options, result)
    options.stop, options.user = call.stop, id(call)
    if progress is not None:
        options.progress = call_stages
    rest = (borrowed.pointer, ctypes.byref(options), result.pointer())
    function = lib.compare if compares else lib.observe
    call.run(lambda *encoders: int(function(*encoders, *rest)))
    return [json.loads(line) for line in result.strings("observed")]


def _lines(file: Union[None, str, "os.PathLike[str]"]) -> list[str]:
    """The texts of a file, one on each line that is not blank."""
    if file is None:
        return []
    try:
        data = pathlib.Path(os.fsdecode(path(file))).read_bytes()
    except OSError as error:
        raise InvalidArgument(f"cannot read {file}: {error.strerror}") from None
    for magic, command in ((b"\x1f\x8b", "zcat"), (b"\x28\xb5\x2f\xfd", "zstdcat")):
        if data.startswith(magic):
            raise InvalidArgument(f"{file} is compressed; {command} makes a text file of it")
    if data.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in data:
        raise InvalidArgument(f"{file} is in UTF-16 or UTF-32, or has NUL bytes; iconv converts it")
    if re.search(rb"\r[^\r\n]", data):
        raise InvalidArgument(f"{file}: lines end as on old Macs; tr '\\r' '\\n' converts them")
    text = data.decode("utf-8-sig", "surrogateescape")
    lines = [line.rstrip("\r") for line in text.split("\n")]
    lines = [line for line in lines if line.strip(" \t\r\v\f")]
    if not lines:
        raise InvalidArgument(f"{file} holds no text; write one text a line")
    return lines


def _fields(baseline: Optional[str], without: str, **numbers: int) -> dict[str, Any]:
    """Of phasor_observe_options."""
    kind = None if baseline is None else c.c_string(baseline)
    return {"baseline": kind, "without": c.c_string(without), **numbers}


def observe(
    texts: Strings = (), *, model: Model = "sinusoidal", only: Strings = (), positions: PositionsLike = None,
    edit: Strings = (), cut_residual: Union[Cut, Iterable[Cut]] = (), overflow: str = "error",
    baseline: Optional[str] = None, file: Union[None, str, "os.PathLike[str]"] = None, seed: int = 1,
    without: str = "mean", top_k: int = 5, max_tokens: int = 0, parse_special: bool = False,
    progress: Optional[StageProgress] = None,
) -> Observed:
    """What every layer does with the positions of each text, and what changes when positions are edited or
    residual connections are cut.

    ``model`` is a name, a folder or an :class:`Encoder`. ``only`` picks views ("all": the slow ones as well).
    ``positions``, ``edit``, ``cut_residual``, ``overflow`` and ``parse_special`` are those of
    :meth:`Encoder.run_with_cache`. ``baseline="random"`` adds the run "untrained": the mean over three models
    of the same architecture with weights as before training ("random:5": over five), "own" the run "own spread":
    random weights of the trained ones' mean squares. ``file`` has a text on each line, of
    which means are shown. A mean over texts, or over untrained models, has its interval in the columns
    ``NAME_low`` and ``NAME_high``. ``seed`` is that of what is drawn, ``without`` ("mean" or "zero") what
    stands for no positions, ``top_k`` how many tokens are named for a mask, and ``max_tokens`` the length to
    which texts are cut. ``progress(stage, done, total)`` is called now and then.
    """
    given, picked, lines = strings(texts, "texts"), strings(only, "only"), _lines(file)
    if not given and file is None:
        raise InvalidArgument('give texts, like observe("Tom bit a dog."), or a file of them')
    fields = _fields(baseline, without, seed=seed, top_k=top_k, max_tokens=max_tokens)
    edits, cuts = strings(edit, "edit"), residual_cuts(cut_residual)
    encoder = _encoder_of(model, None, [])
    ways: list[Any] = [((), []), (edits, cuts)][: 2 if edits or cuts else 1]
    runs = [_Run(encoder, "", RunOptions(positions, *way, overflow, parse_special)) for way in ways]  # type: ignore
    fields["allowed_only"] = bool(given and lines)  # the other part may show a view

    def of_texts(texts: list[str], views: Sequence[str], **more: Any) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for first in range(0, len(texts), _SLICE):
            part = {**fields, **more, "seed": seed + first}
            found += _measure(runs, texts[first : first + _SLICE], views, part, progress)
        if len(texts) != 2:
            for one in found:  # that are two of a slice
                one.pop("pair", None)
        return found

    def of_lines(views: Sequence[str]) -> list[dict[str, Any]]:
        if not lines:
            return []
        found = _measure(runs, lines, views, {**fields, "means": 1}, progress, lines)
        for measured in found[0].get("runs", found):
            measured["file"] = os.fsdecode(path(file))  # type: ignore
        return found

    def figures(views: Sequence[str] = ()) -> list[dict[str, Any]]:
        return of_texts(given[:_FIGURE_TEXTS], views, figures=1) + of_lines(views)

    return Observed(of_texts(given, picked) + of_lines(picked), figures)


def compare(
    first: Model, second: Optional[Model] = None, texts: Strings = (), *, only: Strings = (), positions: Strings = (),
    precision: Strings = (), baseline: Optional[str] = None, file: Union[None, str, "os.PathLike[str]"] = None,
    seed: int = 1, without: str = "mean", top_k: int = 5, max_tokens: int = 0,
    progress: Optional[StageProgress] = None,
) -> Observed:
    """Two models side by side, or without ``second`` one model with two ``positions`` or in two
    ``precision``: ``compare("learned", texts="Tom bit a dog.", positions=["learned", "none"])``. One
    ``precision`` is that of both sides. Other arguments are as in :func:`observe`."""
    ways = {"positions": strings(positions, "positions"), "precision": strings(precision, "precision")}
    two = [f"{name}={values!r}" for name, values in ways.items() if len(values) > 1]
    if second is not None and two:
        raise InvalidArgument(
            f"compare() takes two models or two ways to run one: compare({first!r}, {second!r}), or "
            f"compare({first!r}, {', '.join(two)}); texts are texts=..."
        )
    if second is None and not two:
        raise InvalidArgument(
            f"compare() of {first!r} with what? Give a second model, two positions or two precisions"
        )
    if len(ways["positions"]) not in (0, 2) or len(ways["precision"]) > 2:
        raise InvalidArgument(
            f"compare() of {first!r} takes the positions of both runs or none, and one precision or two"
        )
    lines = _lines(file)
    given, picked = strings(texts, "texts") or lines, strings(only, "only")
    fields = _fields(baseline, without, seed=seed, top_k=top_k, max_tokens=max_tokens)
    runs = _compared(first, first if second is None else second, ways)

    def measured(views: list[str], **more: Any) -> list[dict[str, Any]]:
        found = _measure(runs, given, views, {**fields, **more}, progress, lines, True)
        for run in found[-1]["runs"] if not strings(texts, "texts") else []:
            run["file"] = os.fsdecode(path(file))  # type: ignore
        return found

    def figures() -> list[dict[str, Any]]:
        found = measured([], figures=1)
        if len(given) > 1:
            return found
        found[0]["runs"] += found[1]["runs"][2:]  # untrained
        return found[:1]

    return Observed(measured(picked), figures)


def _compared(first: Model, second: Model, ways: Mapping[str, list[str]]) -> list[_Run]:
    """The two runs of a comparison, labelled by how one model is run."""
    encoders: list[Encoder] = []
    for side, model in enumerate((first, second)):
        precision = ways["precision"][side % len(ways["precision"])] if ways["precision"] else None
        encoders.append(_encoder_of(model, precision, encoders))
    runs = []
    for side, encoder in enumerate(encoders):
        positions = ways["positions"][side] if ways["positions"] else ""
        precision = ways["precision"][side] if len(ways["precision"]) == 2 else ""
        label = f"{positions} {precision}".strip()
        kind = None if positions in ("", "own") else positions
        runs.append(_Run(encoder, label, RunOptions(kind, (), [], "error")))
    return runs


def _encoder_of(model: Model, precision: Optional[str], made: list[Encoder]) -> Encoder:
    """The model's encoder in this precision, or one of those that were made for the same model."""
    from .encoder import Encoder

    if isinstance(model, Encoder):
        return model if precision in (None, model.precision) else model._in(str(precision))
    for encoder in made:
        if encoder.name == os.fsdecode(model) and precision in (None, encoder.precision):
            return encoder
    return Encoder(model, precision=precision or "f32")


def strings(value: Strings, what: str) -> list[str]:
    return [value] if isinstance(value, str) else strs(value, what)
