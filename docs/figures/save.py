"""Saves the documentation's pictures from the pages that its commands write.

A link to figures/PAGE-FIGURE.svg shows the figure FIGURE of the page that the text's command
`infer … --html PAGE.html` writes; step.svg is drawn here; report.png and live.png show what a page looks like.
"""

import json
import math
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
REPORT = ["observe", "-q", "the dog bit the man who fed it", "the man bit the dog who fed it"]
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
    saved = {"step.svg": step()}
    for name in dict.fromkeys(name for _, name, _ in links):
        if name not in commands:
            raise SystemExit(f"figures: no command of {TEXT.name} writes {name}.html, whose figures it shows")
        if REAL in commands[name] and real.returncode == 77:
            continue
        open_page(page, shlex.split(commands[name]), f"{name}.html", folder, width=1000)
        saved |= {file: page.saved(figure) for file, of, figure in links if of == name}
    return saved


def step():
    """Clocks of three speeds at two places, the same turned by one place, and those of the next place."""
    done = subprocess.run([INFER, "positions", "sinusoidal", "--only", "values", "--json"], capture_output=True, check=True)
    table = json.loads(done.stdout)["tables"][0]["values"]
    parts = []

    def text(x, y, text, look=""):
        parts.append(f'<text x="{x}" y="{y}" text-anchor="middle" {look}>{text}</text>')

    def hand(x, y, angle, colour):
        """From a clock's centre to its rim, clockwise from the top; returns where it ends."""
        end = f"{x + 30 * math.sin(angle):.2f} {y - 30 * math.cos(angle):.2f}"
        parts.append(f'<path d="M{x} {y}L{end}" stroke="{colour}" stroke-width="2.5" stroke-linecap="round"/>')
        return end

    for y, place in ((58, 2), (178, 9)):
        text(210, y + 6, "→", 'font-size="18"')
        text(440, y + 6, "=", 'font-size="18"')
        for group, title in enumerate((f"place {place}", "turned by one place", f"place {place + 1}")):
            text(95 + 230 * group, y - 40, title, 'font-weight="600"')
            for i, pair in enumerate((0, 8, 16)):
                x = 25 + 230 * group + 70 * i
                turn, here, there = (math.atan2(*table[p][2 * pair:2 * pair + 2]) for p in (1, place, place + 1))
                parts.append(f'<circle cx="{x}" cy="{y}" r="30" fill="none" stroke="#dcdedf" stroke-width="1.5"/>'
                             f'<path d="M{x} {y - 30}v5" stroke="#5c636d"/>')
                if group == 1:
                    arc = f"M{hand(x, y, here, '#9cc7df')}A30 30 0 0 1 {hand(x, y, here + turn, '#0b62a4')}"
                    parts.append(f'<path d="{arc}" fill="none" stroke="#b3286b" stroke-width="3"/>')
                    text(x, y + 46, f"{math.degrees(turn):.0f}°", 'fill="#b3286b"')
                else:
                    hand(x, y, there if group else here, "#0b62a4")
    return ('<svg xmlns="http://www.w3.org/2000/svg" viewBox="-15 0 680 236" width="680" height="236" font-size="12" '
            'fill="#1d2024" font-family="sans-serif"><title>Clocks turned by one place</title>'
            f'<rect x="-15" width="680" height="236" fill="#ffffff"/>{"".join(parts)}</svg>')


def report(page, folder):
    """The README's picture: what the page of two orders opens with, the mouse on the first text's "dog" after layer 1."""
    open_page(page, [*REPORT, "--html", "report.html"], "report.html", folder, width=1080)
    page.resize(width=1080, height=655)
    page.point_at("turns", row=1, column=2, rows=7, columns=11)
    page.wait_for_frame()
    return page.screenshot()


def live(page):
    """The README's picture of infer serve: the form, and under it the map of a head before and after."""
    with Server(INFER, "-m", "sinusoidal") as server:
        page.open(server.address + LIVE, width=1080, height=870)
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
