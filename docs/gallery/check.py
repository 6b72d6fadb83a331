"""check.py GALLERY INFER: any web host can serve the folder, under any path; on order.html words can be moved, and what
it says of an order is what INFER says."""

import functools
import http.server
import json
import pathlib
import subprocess
import sys
import tempfile
import threading

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "tests" / "page"))
import browser  # noqa: E402

LINKS = "[...document.querySelectorAll('a')].map(link => link.href)"
WORDS = "[...document.querySelectorAll('#words button')].map(word => word.textContent)"
MIDDLES = """[...document.querySelectorAll('#words button')].map(word => word.getBoundingClientRect())
    .map(({x, y, width, height}) => ({x: x + width / 2, y: y + height / 2}))"""
GRIDS = "[...document.querySelectorAll('#models table')].map(({rows}) => [...rows].map(row => row.textContent).join())"


class Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def faults_of_order(page):
    """Of the page of orders, which is open: it draws four grids, three without MiniLM, and anew where a word is moved."""
    def look():
        return page.evaluate(WORDS), page.evaluate(GRIDS)

    begin, grids = look()
    if len(grids) not in (3, 4) or not all(grids):
        yield f"draws {len(grids)} grids"
    original, said = page.evaluate("[document.querySelector('#note').textContent.slice('Original order: '.length), "
                                   "document.querySelector('#models section > p:last-child').textContent]")
    command = [sys.argv[2], "observe", "-q", "--json", "--only", "effect", original, " ".join(begin)]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    pair = json.loads(lines[1])["pair"]
    if not pair.endswith(said.removeprefix("Of the layers, ")):
        yield f"says of sinusoidal: {said} infer says: {pair}"
    middles = page.evaluate(MIDDLES)
    for kind, at in (("mousePressed", 0), ("mouseMoved", 1), ("mouseMoved", 3), ("mouseReleased", 3)):
        page.send("Input.dispatchMouseEvent", type=kind, button="left", buttons=1, clickCount=1, **middles[at])
    dragged, other_grids = look()
    if dragged != [*begin[1:4], begin[0], *begin[4:]] or sum(a != b for a, b in zip(grids, other_grids)) < 2:
        yield f"does not move a word that is dragged: {dragged}"
    for _ in range(3):
        page.press("ArrowLeft")
    if look() != (begin, grids):
        yield f"does not take a word back by the arrow keys: {look()[0]}"


def faults(address):
    with browser.Browser() as page:
        page.open(address + "index.html")
        for link in ["index.html", *page.evaluate(LINKS)]:
            page.open(link if ":" in link else address + link, width=1200)
            if not page.evaluate("document.querySelector('h1, h2')?.innerText"):
                yield f"{link} shows nothing"
            if link.endswith("/order.html"):
                yield from (f"{link} {fault}" for fault in faults_of_order(page))
        yield from (f"a page complains: {problem}" for problem in page.problems)
        inside = (address, "data:", "blob:", "about:")
        yield from (f"a page asks for {url}" for url in page.requests if not url.startswith(inside))


if __name__ == "__main__":
    gallery = pathlib.Path(sys.argv[1]).resolve()
    if not browser.program():
        print("gallery: there is no Chromium here, so no page was opened", file=sys.stderr)
        sys.exit(0)
    with tempfile.TemporaryDirectory() as root:
        folder = pathlib.Path(root, "a", "b")
        folder.mkdir(parents=True)
        (folder / "gallery").symlink_to(gallery)
        with http.server.ThreadingHTTPServer(("localhost", 0), functools.partial(Handler, directory=root)) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            wrong = list(faults(f"http://localhost:{server.server_port}/a/b/gallery/"))
            server.shutdown()
    print("\n".join(wrong), end="\n" if wrong else "")
    sys.exit(f"gallery: {len(wrong)} things are wrong" if wrong else 0)
