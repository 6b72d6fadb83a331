"""The numbers of ``infer observe`` and ``infer compare`` as tables, and their page in a notebook.

They come from the ``infer`` program, which the package brings along.
"""

from __future__ import annotations

import errno
import html
import json
import os
import pathlib
import subprocess
import tempfile
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Union

import numpy as np
import numpy.typing as npt

from ._base import Model
from ._library import (
    PREFIX,
    BackendError,
    Error,
    InvalidArgument,
    LoadOptions,
    ModelError,
    NotFound,
    path,
    strs,
    utf8,
)
from .run_options import Cut, residual_cuts

_ERRORS = {2: InvalidArgument, 3: InvalidArgument, 4: ModelError, 5: BackendError}
Strings = Union[str, Sequence[str]]
Word = Union[str, bytes]
Name = Union[str, "os.PathLike[str]"]  # of a model


class Table(Dict[str, "npt.NDArray[Any]"]):
    """Columns of equal length by name, such as ``layer`` and ``position``. Layers and heads count
    from 1, layer 0 is the embedding. A cell without a number is NaN."""

    def __init__(self, rows: List[Dict[str, Any]]) -> None:
        names: Dict[str, None] = {}
        for row in rows:
            names.update(dict.fromkeys(row))
        super().__init__({name: _column([row.get(name) for row in rows]) for name in names})

    def to_pandas(self) -> Any:
        """A ``pandas.DataFrame``."""
        import pandas

        return pandas.DataFrame(self)

    def __repr__(self) -> str:
        shown = [[name, *map(_shown, column[:20])] for name, column in self.items()]
        widths = [max(map(len, column)) for column in shown]
        lines = [
            "  ".join(cell.rjust(width) for cell, width in zip(row, widths)) for row in zip(*shown)
        ]
        length = len(next(iter(self.values())))
        if length > 20:
            lines.append(f"… ({length} rows)")
        return "\n".join(lines)


def _column(cells: List[Any]) -> "npt.NDArray[Any]":
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
    notebook an Observed is shown as the page of figures.
    """

    def __init__(self, command: List[Word], words: List[Word]) -> None:
        self._command, self._words = command, words
        self._page: Optional[str] = None
        printed = run_infer([*command, "--json", "--", *words])
        #: The JSON of each text: one run, or {"runs": [run, run]}; see docs/reading-in-python.md.
        self.json: List[Dict[str, Any]] = [json.loads(line) for line in printed.split("\n") if line]

    def _runs(self) -> Iterator[Any]:
        """(number of the text, run) of all."""
        for i, line in enumerate(self.json):
            for run in line.get("runs", [line]):
                yield i, run

    def __iter__(self) -> Iterator[str]:
        return iter(self._views())

    def __len__(self) -> int:
        return len(self._views())

    def _views(self) -> List[str]:
        names: Dict[str, None] = {}
        for _, run in self._runs():
            names.update(dict.fromkeys(run["views"]))
        return list(names)

    def __getitem__(self, view: str) -> Table:
        rows = []
        several, two = len(self.json) > 1, any("runs" in line for line in self.json)
        for i, run in self._runs():
            for row in run["views"].get(view, []):
                place: Dict[str, Any] = {"text": i} if several else {}
                if two:
                    place["run"] = run["label"]
                rows.append({**place, **row})
        if not rows:
            why = [run["missing"][view] for _, run in self._runs() if view in run["missing"]]
            if view == "pattern":
                why = ["patterns are in the cache of run_with_cache(), and on the page"]
            raise KeyError(
                f"{view}: {why[0]}" if why else f"{view}; there are: {', '.join(self)}"
            )
        return Table(rows)

    def html(self) -> str:
        """The page of figures, for a browser; it needs no network."""
        if self._page is None:
            with tempfile.TemporaryDirectory() as folder:
                file = pathlib.Path(folder) / "page.html"
                run_infer([*self._command, "--html", str(file), "--", *self._words])
                self._page = file.read_text("utf-8")
        return self._page

    def _repr_html_(self) -> str:
        return (
            '<iframe style="width: 100%; height: 60em; border: 0" '
            f'srcdoc="{html.escape(self.html())}"></iframe>'
        )

    def __repr__(self) -> str:
        return "\n\n".join(f"{view}\n{self[view]!r}" for view in self)


def observe(
    texts: Strings = (),
    *,
    model: Name = "sinusoidal",
    only: Strings = (),
    positions: Optional[str] = None,
    edit: Strings = (),
    cut_residual: Union[Cut, Iterable[Cut]] = (),
    overflow: str = "error",
    baseline: Optional[str] = None,
    file: Union[None, str, "os.PathLike[str]"] = None,
    options: Strings = (),
) -> Observed:
    """What every layer does with the positions of each text, and what changes when positions are
    edited or residual connections are cut.

    ``only`` picks views. ``positions`` (a name), ``edit``, ``cut_residual`` and
    ``overflow`` are those of :meth:`Encoder.run_with_cache`; ``edit`` may also be "table=FILE".
    ``baseline="random"`` adds the run "untrained": the mean over three models of the same
    architecture with random weights ("random:5": over five). ``file`` has a text on each line, of
    which means are shown. A mean over texts, or over untrained models, has its interval in the
    columns ``NAME_low`` and ``NAME_high``. ``options`` are further options of ``infer observe``.
    """
    command: List[Word] = ["observe", "-m", path(model)]
    sites = (".attn", ".mlp", "")
    cuts = [f"{layer + 1}{sites[site]}" for layer, site in residual_cuts(cut_residual)]
    command += _options(only=only, edit=edit, cut_residual=cuts, overflow=overflow)
    if positions is not None:
        command += ["--positions", positions]
    return _observed(command, baseline, file, options, texts, [model])


def compare(
    first: Name,
    second: Optional[Name] = None,
    texts: Strings = (),
    *,
    only: Strings = (),
    positions: Strings = (),
    precision: Strings = (),
    baseline: Optional[str] = None,
    file: Union[None, str, "os.PathLike[str]"] = None,
    options: Strings = (),
) -> Observed:
    """Two models side by side, or without ``second`` one model with two ``positions`` or in two
    ``precision``: ``compare("learned", texts="Tom bit a dog.", positions=["learned", "none"])``. One
    ``precision`` is that of both sides. Other arguments are as in :func:`observe`."""
    ways = {
        "positions": strings(positions, "positions"),
        "precision": strings(precision, "precision"),
    }
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
    models = [first] if second is None else [first, second]
    command: List[Word] = ["compare", *_options(only=only, **ways)]
    return _observed(command, baseline, file, options, texts, models, list(map(path, models)))


def strings(value: Strings, what: str) -> List[str]:
    return [value] if isinstance(value, str) else strs(value, what)


def _options(**lists: Strings) -> List[Word]:
    return [
        word
        for name, values in lists.items()
        for value in strings(values, name)
        for word in (f"--{name.replace('_', '-')}", value)
    ]


def _observed(
    command: List[Word],
    baseline: Optional[str],
    file: Union[None, str, "os.PathLike[str]"],
    options: Strings,
    texts: Strings,
    models: Sequence[Name],
    words: Sequence[Word] = (),
) -> Observed:
    if baseline is not None:
        command += ["--baseline", baseline]
    if file is not None:
        command += ["-i", path(file)]
    given = strings(texts, "texts")
    if "-" in given:
        raise InvalidArgument("the text '-' stands for standard input, which is not read here")
    try:
        return Observed([*command, "-q", *strings(options, "options")], [*words, *given])
    except ModelError as error:
        # The program's exit code says no more. The library tells which models there are.
        if any(map(_is_missing, models)):
            raise NotFound(str(error)) from None
        raise


def _is_missing(model: Name) -> bool:
    try:
        Model(model, LoadOptions())
    except NotFound:
        return True
    except Error:
        pass
    return False


def run_infer(arguments: List[Word]) -> str:
    """What infer prints."""
    program = PREFIX / "bin" / "infer"
    encoded = [word if isinstance(word, bytes) else utf8(word) for word in arguments]
    if any(b"\0" in word for word in encoded):
        raise InvalidArgument("an argument of a program cannot hold a NUL character; give a file")
    try:
        done = subprocess.run(
            [os.fsencode(program), *encoded],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="surrogateescape",
            check=False,
        )
    except OSError as error:
        if error.errno != errno.E2BIG:
            raise
        raise InvalidArgument("the texts are too long for a command line; give a file") from None
    if done.returncode != 0:
        message = done.stderr.strip()
        prefix = "infer: "
        message = message[len(prefix) :] if message.startswith(prefix) else message
        raise _ERRORS.get(done.returncode, Error)(message)
    return done.stdout
