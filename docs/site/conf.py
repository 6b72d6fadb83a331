"""How Sphinx makes the site of the documentation: `./dev site` runs it in the root of the repository."""

import re

MENU = {
    "Watch positions": "docs/start-here docs/tutorials-checked docs/how-position-travels docs/comparing-positions docs/finding docs/gallery/README",
    "Use it": "docs/command-line docs/models docs/python docs/reading-in-python docs/c "
    "docs/embedding-in-applications docs/serving docs/site/reference",
    "Trust it": "docs/performance docs/compatibility docs/reliability SECURITY models/train/README",
    "Change it": "CONTRIBUTING CHANGELOG packaging/README",
}

project = html_title = "phasor"
extensions = ["myst_parser"]
root_doc = "README"
include_patterns = ["*.md", "docs/**.md", "**/README.md"]
exclude_patterns = ["build", ".git", "**/node_modules"]
myst_heading_anchors = 4  # the links to headings that code hosts make
suppress_warnings = ["toc.not_included"]
html_theme = "furo"
html_extra_path = ["../../build/site/files"]  # the API reference and the gallery
html_copy_source = html_show_sphinx = False


def _read(app, name, source):
    text = source[0]
    if name == root_doc:
        for title, pages in MENU.items():
            there = [page for page in pages.split() if page in app.env.found_docs]
            text += "\n```{toctree}\n" + f":caption: {title}\n:hidden:\n\n" + "\n".join(there) + "\n```\n"
    # A site does not list folders: it has the reference that is made of these headers.
    text = re.sub(r"\]\(((?:\.\./)*)include/phasor(?:/lens)?\)", r"](\1docs/site/reference.md)", text)
    # Pages that ./dev gallery writes; a link in Markdown would save them.
    if name == "docs/gallery/README":
        text = re.sub(r"`([\w-]+\.html)`", r'<a href="\1">\1</a>', text)
    source[0] = text


def setup(app):
    app.connect("source-read", _read)
