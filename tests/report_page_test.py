"""The page of --html in a headless Chromium: what it shows, and how it answers mouse and keys.

report_page_test INFER: exits 77, saying why, where there is no Chromium.
"""

import json
import pathlib
import struct
import subprocess
import sys
import tempfile
import time
import unittest

import browser

TEXTS = ["Tom bit a dog.", "The dog ran after the cat, and the cat ran up the tree."]
SIDES = ["sinusoidal", "learned"]


def infer(*arguments):
    done = subprocess.run([INFER, *arguments], capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return done


def data_of(page):
    """The JSON in a page."""
    text = pathlib.Path(page).read_text(encoding="utf-8")
    begin = text.index('id="data">') + len('id="data">')
    return json.loads(text[begin:text.index("</script>", begin)])


def attention(model, text, layer, head):
    """The pattern [T][T] of a head, both counted from 1, as infer --save writes it."""
    file = FOLDER / "saved.safetensors"
    infer("-q", "-m", model, "--save", str(file), text)
    content = file.read_bytes()
    size, = struct.unpack("<Q", content[:8])
    tensor = json.loads(content[8:8 + size])[f"0.attentions.{layer - 1}"]
    tokens = tensor["shape"][1]
    begin = 8 + size + tensor["data_offsets"][0] + 4 * (head - 1) * tokens * tokens
    values = struct.unpack(f"<{tokens * tokens}f", content[begin:begin + 4 * tokens * tokens])
    return [values[t * tokens:(t + 1) * tokens] for t in range(tokens)]


def value(text):
    """A number as the page prints it; None for a dash."""
    return None if text == "–" else float(text.replace("−", "-"))


class ReportPageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.page = FOLDER / "compare.html"
        infer("compare", "-q", "--html", str(cls.page), *SIDES, *TEXTS)
        cls.data = data_of(cls.page)
        cls.browser = browser.Browser()

    @classmethod
    def tearDownClass(cls):
        cls.browser.__exit__()

    def setUp(self):
        self.browser.requests.clear()
        self.browser.problems.clear()
        self.browser.open(self.page)

    def tearDown(self):
        # Whatever a test does: the page neither complains nor asks the network for anything.
        self.assertEqual(self.browser.problems, [])
        asked = [url for url in self.browser.requests if not url.startswith(("data:", "blob:", "file:"))]
        self.assertEqual(asked, [])

    def js(self, expression):
        return self.browser.evaluate(expression)

    def texts(self, selector):
        return self.js(f"[...document.querySelectorAll({selector!r})].map(e => e.textContent)")

    def picture(self, figure):
        return self.js(f"document.querySelector('#{figure} .body').innerHTML")

    def test_tables_hold_the_numbers_of_the_json(self):
        for side, run in enumerate(self.data["texts"][0]["runs"]):
            rows = self.js(f"[...document.querySelectorAll('table[data-run=\"{side}\"] tr')]"
                           ".map(row => [...row.cells].map(cell => cell.textContent))")
            names, rows = rows[1], rows[2:]
            layers = run["observed"]["layers"]
            self.assertEqual(len(rows), len(layers))
            want = {"norm": lambda l: l["norm"], "effect": lambda l: l["position_effect"],
                    "length": lambda l: l["direct_position"]["norm"],
                    "swap": lambda l: l["order_sensitivity"]["swap"],
                    "reverse": lambda l: l["order_sensitivity"]["reverse"],
                    "reach": lambda l: l["attention"] and l["attention"]["distance"]}
            for name, get in want.items():
                for row, layer in zip(rows, layers):
                    shown, number = value(row[names.index(name)]), get(layer)
                    if number is None:
                        self.assertIsNone(shown)
                    else:
                        self.assertAlmostEqual(shown, number, delta=0.00051, msg=(name, row))

    def test_arrow_keys_read_the_weights_that_infer_saves(self):
        layer, head, row, column = 2, 3, 2, 4
        self.choose("Layer", layer)
        self.choose("Head", head)
        self.js("document.querySelector('#attention .panels').focus()")
        for _ in range(row):
            self.browser.press("ArrowDown")
        for _ in range(column):
            self.browser.press("ArrowRight")
        shown = self.texts("#attention .reading span")
        self.assertEqual(len(shown), 2)
        for model, sentence in zip(SIDES, shown):
            weight = attention(model, TEXTS[0], layer, head)[row][column]
            self.assertRegex(sentence, rf"{model}: ▁bit \(2\) reads ▁dog \(4\) with weight ")
            self.assertAlmostEqual(value(sentence.split()[-1]), weight, delta=0.0045)

    def test_the_mouse_reads_the_same_cell_as_the_keys(self):
        place = self.js("(() => { const {x, y, width, height} = document.querySelector('#attention image')"
                        ".getBoundingClientRect(); return [x, y, width, height]; })()")
        x, y = (place[0] + place[2] * 4.5 / 7, place[1] + place[3] * 2.5 / 7)
        self.js("document.querySelector('#attention svg').dispatchEvent(new PointerEvent('pointermove', "
                f"{{clientX: {x}, clientY: {y}, bubbles: true}}))")
        self.assertIn("▁bit (2) reads ▁dog (4)", self.texts("#attention .reading span")[0])

    def choose(self, name, number):
        """Picks an option with the keys, as a native select takes them."""
        self.js(f"document.getElementById('choose-{name}').focus()")
        for _ in range(20):
            chosen = self.js(f"document.getElementById('choose-{name}').selectedIndex") + 1
            if chosen == number:
                return
            self.browser.press("ArrowDown" if chosen < number else "ArrowUp")
        self.fail(f"the keys do not choose {name} {number}")

    def test_choosers_change_the_picture(self):
        before = self.picture("attention")
        self.choose("Layer", 4)
        middle = self.picture("attention")
        self.choose("Head", 4)
        after = self.picture("attention")
        self.assertEqual(len({before, middle, after}), 3)
        self.assertIn("layer 4, head 4", after)
        self.assertEqual(self.js("document.activeElement.id"), "choose-Head")

    def test_a_head_of_the_overview_can_be_chosen_with_the_keys(self):
        self.choose("Layer", 1)
        self.choose("Head", 1)
        self.js("document.querySelector('#heads button[tabindex=\"0\"]').focus()")
        self.browser.press("ArrowDown")
        self.browser.press("ArrowRight")
        self.assertIn("layer 2, head 2", self.picture("attention"))
        self.assertEqual(self.texts("#choose-Layer option:checked") + self.texts("#choose-Head option:checked"),
                         ["2", "2"])
        self.assertEqual(self.js("document.querySelectorAll('#heads [aria-pressed=true]').length"), 2)

    def test_another_text_changes_title_tokens_and_charts(self):
        before = self.picture("direct")
        self.choose("Text", 2)
        self.assertEqual(self.texts("h1"), [f"“{TEXTS[1]}”"])
        self.assertEqual(self.texts(".piece"), self.data["texts"][1]["runs"][0]["observed"]["pieces"])
        self.assertNotEqual(self.picture("direct"), before)

    def test_the_slider_moves_the_hands(self):
        before = self.picture("clocks")
        self.js("document.getElementById('choose-token').focus()")
        self.browser.press("ArrowRight")
        self.assertNotEqual(self.picture("clocks"), before)
        self.assertIn("▁bit, position 2", self.texts(".slider output")[0])
        self.assertIn("no pairs of sine and cosine", self.texts("#clocks .missing")[0])

    def test_distances_are_those_of_the_sinusoid(self):
        # ‖PE(p) − PE(q)‖² = d − 2 Σ cos(ω_i (p − q)), and the bundled models scale nothing.
        import math
        width = self.data["texts"][0]["runs"][0]["vectors"]["columns"]
        self.js("document.querySelector('#distances .panels').focus()")
        self.browser.press("ArrowRight")
        shown = value(self.texts("#distances .reading span")[0].split()[-2])
        cosines = sum(math.cos(10000 ** (-2 * i / width)) for i in range(width // 2))
        self.assertAlmostEqual(shown, math.sqrt(width - 2 * cosines), delta=0.001)

    def test_every_figure_is_saved_as_a_whole_svg(self):
        self.js("URL.createObjectURL = (blob) => { (window.saved ??= []).push(blob.text()); return 'data:,'; };"
                "HTMLAnchorElement.prototype.click = () => {};")
        self.js("document.querySelectorAll('figure:not([hidden]) .save:not([hidden])').forEach(b => b.click())")
        saved = self.js("Promise.all(window.saved)")
        self.assertGreaterEqual(len(saved), 7)
        for document in saved:
            self.assertNotIn("var(", document)
            self.assertTrue(self.js("(text => { const svg = new DOMParser().parseFromString(text, 'image/svg+xml');"
                                    "return svg.querySelector('parsererror') === null && "
                                    "svg.querySelector('path, rect, image') !== null; })"
                                    f"({json.dumps(document)})"))

    def test_every_chart_says_in_words_what_it_shows(self):
        self.assertEqual(self.js("[...document.querySelectorAll('figure svg:not(svg svg)')]"
                                 ".filter(e => !e.ariaHidden && !(e.ariaLabel?.length > 20)).map(e => e.outerHTML)"), [])

    def test_dark_and_light_differ_and_paper_is_light(self):
        ink = "getComputedStyle(document.body).color + document.querySelector('#attention image').href.baseVal"
        light = self.js(ink)
        self.browser.resize(dark=True)
        self.browser.wait_for_frame()
        dark = self.js(ink)
        self.assertNotEqual(light, dark)
        self.js("dispatchEvent(new Event('beforeprint'))")
        self.assertEqual(self.js(ink), light)
        self.js("dispatchEvent(new Event('afterprint'))")
        self.assertEqual(self.js(ink), dark)

    def test_no_width_cuts_a_chart_off(self):
        beyond = ("[...document.querySelectorAll('figure:not([hidden])')].filter(figure => [...figure.querySelectorAll('svg')]"
                  ".some(svg => svg.getBoundingClientRect().right > figure.getBoundingClientRect().right)).map(e => e.id)")
        for width in (360, 768, 1600):
            self.browser.open(self.page, width=width)
            self.assertEqual(self.js("document.documentElement.scrollWidth"), width)
            self.assertEqual(self.js(beyond), [], width)
        self.js("dispatchEvent(new Event('beforeprint'))")
        self.assertEqual(self.js("document.querySelector('main').clientWidth"), 687)
        self.assertEqual(self.js(beyond), [])

    def test_no_text_can_break_out(self):
        page = FOLDER / "strange.html"
        text = "</script><b id=out>x</b><!-- مرحبا 👋🏽 \\ ' ` ${1} \"\u2028"
        infer("compare", "-q", "--html", str(page), *SIDES, text)
        self.browser.open(page)
        self.assertEqual(self.texts("h1"), [f"“{text}”"])
        self.assertFalse(self.js("!!document.getElementById('out')"))

    def test_bytes_that_are_no_utf8_are_replaced(self):
        page = FOLDER / "bytes.html"
        infer("compare", "-q", "--html", str(page), *SIDES, b"Tom \xff bit")
        self.browser.open(page)
        self.assertEqual(self.texts("h1"), ["“Tom \ufffd bit”"])

    def test_a_model_without_positions_says_so(self):
        page = FOLDER / "none.html"
        infer("compare", "-q", "--html", str(page), "none", "sinusoidal", TEXTS[0])
        self.browser.open(page)
        for figure in ("distances", "clocks"):
            self.assertIn("none: no position vector is added", self.texts(f"#{figure} .missing")[0])
            self.assertEqual(self.js(f"document.querySelectorAll('#{figure} .body > svg:not(.colour-bar), #{figure} .panels > svg').length"), 1)


if __name__ == "__main__":
    INFER = sys.argv.pop(1)
    if not browser.program():
        print(f"skipped: none of {', '.join(browser.PROGRAMS)} is here (./dev need chromium)", file=sys.stderr)
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        FOLDER = pathlib.Path(folder)
        unittest.main(exit=True)
