"""Saves the documentation's pictures from the pages that its commands write.

A link to figures/PAGE-FIGURE.svg shows the figure FIGURE of the page that the text's command
`infer … --html PAGE.html` writes; report.png and live.png are for the README.
"""

import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml

FIGURES = pathlib.Path(__file__).resolve().parent
ROOT = FIGURES.parent.parent
TEXT = ROOT / "docs" / "start-here.md"
REAL = "all-MiniLM-L6-v2"  # the text's folder of a real model, which tests/real/fetch finds
LIVE = "/#text=The%20dog%20ran%20after%20the%20cat.&edit=reverse&head=1.2"
REPORT = ["compare", "sinusoidal", "learned", "The dog ran after the cat, and the cat ran up the tree."]
TOLERANCE = 0.0015  # of a number with three digits, the last of which depends on the instruction set

sys.path.insert(0, str(ROOT / "tests" / "page"))
import browser  # noqa: E402
from server import Server  # noqa: E402


def open_page(page, arguments, name, folder, width):
    done = subprocess.run([INFER, *arguments], cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"figures: infer {shlex.join(arguments)}: {done.stderr}")
    page.open(pathlib.Path(folder) / name, width=width)


def figures(page, folder):
    """{file: SVG} of what the text shows, without the real model's where it cannot be had."""
    text = TEXT.read_text(encoding="utf-8")
    real = subprocess.run([ROOT / "tests" / "real" / "fetch", "minilm"], stdout=subprocess.PIPE, text=True)
    if real.returncode == 0:
        (pathlib.Path(folder) / REAL).symlink_to(real.stdout.strip())
    commands = {page: line for line, page in re.findall(r"^infer (.* --html (\w+)\.html.*)$", text, re.MULTILINE)}
    links = re.findall(r"figures/((\w+)-(\w+)\.svg)", text)
    saved = {}
    for name in dict.fromkeys(name for _, name, _ in links):
        if name not in commands:
            raise SystemExit(f"figures: no command of {TEXT.name} writes {name}.html, whose figures it shows")
        if REAL in commands[name] and real.returncode == 77:
            continue
        open_page(page, shlex.split(commands[name]), f"{name}.html", folder, width=1000)
        saved |= {file: page.saved(figure) for file, of, figure in links if of == name}
    return saved


def report(page, folder):
    """The README's picture: the attention map, the mouse on "cat" reading the word after."""
    open_page(page, [*REPORT, "--html", "report.html"], "report.html", folder, width=1080)
    page.point_at("pattern", row=10, column=11, rows=17, columns=17)
    return page.screenshot("pattern")


def live(page):
    """The README's picture of infer serve: the form, and under it the map of a head before and after."""
    with Server(INFER, "-m", "sinusoidal") as server:
        page.open(server.address + LIVE, width=1080, height=900)
        page.wait_for_answer()
        page.evaluate("document.getElementById('pattern').scrollIntoView({behavior: 'instant'})")
        page.wait_for_frame()
        return page.screenshot()


def difference(page, old, new):
    """What differs between two SVGs but for fonts and rounding, or None.

    Where things stand depends on the widths of letters; so elements, texts and pixels are compared.
    """
    old, new = (list(xml.fromstring(text).iter()) for text in (old, new))
    if [each.tag for each in old] != [each.tag for each in new]:
        return "other elements"
    for a, b in zip(old, new):
        was, now = (re.split(r"([−-]?\d+(?:\.\d+)?)", each.text or "") for each in (a, b))
        numbers = [[float(number.replace("−", "-")) for number in words[1::2]] for words in (was, now)]
        if was[::2] != now[::2] or any(abs(x - y) > TOLERANCE for x, y in zip(*numbers)):
            return f"“{a.text}” is now “{b.text}”"
        images = [[page.pixels(value) for name, value in each.items() if name.endswith("href")] for each in (a, b)]
        for was, now in zip(*images):
            if was[:2] != now[:2] or any(abs(x - y) > 3 for x, y in zip(was, now)):
                return "other pixels"
    return None


def main(check):
    with tempfile.TemporaryDirectory() as folder, browser.Browser() as page:
        saved = figures(page, folder)
        if not check:
            for file, svg in saved.items():
                (FIGURES / file).write_text(svg + "\n", encoding="utf-8")
            (FIGURES / "report.png").write_bytes(report(page, folder))
            (FIGURES / "live.png").write_bytes(live(page))
            return 0
        wrong = 0
        for file, svg in saved.items():
            old = FIGURES / file
            what = difference(page, old.read_text(encoding="utf-8"), svg) if old.exists() else "it is not here"
            if what:
                wrong += 1
                print(f"figures: {file}: {what}; docs/figures/save draws it anew", file=sys.stderr)
        return 1 if wrong else 0


if __name__ == "__main__":
    *options, INFER = sys.argv[1:] or [""]
    if options not in ([], ["--check"]) or not INFER:
        print("usage: docs/figures/save [--check] INFER", file=sys.stderr)
        sys.exit(2)
    INFER = str(pathlib.Path(INFER).resolve())
    if not browser.program():
        print(f"figures: skipped: none of {', '.join(browser.PROGRAMS)} is here (./dev need chromium)",
              file=sys.stderr)
        sys.exit(77)
    sys.exit(main(bool(options)))
