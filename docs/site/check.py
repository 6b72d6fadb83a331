"""check.py SITE: every link of the site leads somewhere, and no page complains, fetches or is too wide in Chromium."""

import html.parser
import pathlib
import sys
from urllib.parse import unquote, urlsplit

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "page"))
import browser  # noqa: E402

NARROW = "document.documentElement.scrollWidth <= innerWidth"


class Page(html.parser.HTMLParser):
    """The links of a page, and what links can lead to in it."""

    def __init__(self, file):
        super().__init__()
        self.links, self.places = set(), {"", "top"}
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, _tag, attributes):
        for name, value in attributes:
            if name in ("href", "src") and value:
                self.links.add(value)
            elif name in ("id", "name") and value:
                self.places.add(value)


def dead_links(site):
    pages = {file: Page(file) for file in site.rglob("*.html")}
    for file, page in pages.items():
        if site / "api" in file.parents:
            continue  # Doxygen's own, a few of which lead nowhere
        for link in sorted(page.links):
            to = urlsplit(link)
            if to.scheme or to.netloc:
                continue
            target = (file.parent / unquote(to.path)).resolve() if to.path else file
            if target.is_dir():
                target /= "index.html"
            # The pages of figures name the places in them when they are opened.
            known = target not in pages or target.parent.name == "gallery" or unquote(to.fragment) in pages[target].places
            if not target.exists() or not known:
                yield f"{file.relative_to(site)}: {link}"


def complaints(site):
    with browser.Browser() as page:
        for file in sorted(set(site.rglob("*.html")) - set((site / "api").rglob("*"))):
            for look in ({"width": 360, "dark": True}, {"width": 1400}):
                page.problems.clear()
                page.requests.clear()
                page.open(file, **look)
                fetched = [url for url in page.requests if not url.startswith(("file:", "data:", "blob:"))]
                wide = [] if page.evaluate(NARROW) else [f"wider than {look['width']} pixels"]
                for what in (*page.problems, *fetched, *wide):
                    yield f"{file.relative_to(site)}: {what}"


if __name__ == "__main__":
    site = pathlib.Path(sys.argv[1]).resolve()
    if not browser.program():
        print("site: there is no Chromium here, so no page was opened", file=sys.stderr)
    wrong = [*dead_links(site), *(complaints(site) if browser.program() else [])]
    print("\n".join(wrong[:40]), end="\n" if wrong else "")
    sys.exit(f"site: {len(wrong)} things are wrong" if wrong else 0)
