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

    def rows(self, side):
        """The cells of a side's table by layer."""
        return self.js(f"[...document.querySelectorAll('table[data-run=\"{side}\"] tr')]"
                       ".map(row => [...row.cells].map(cell => cell.textContent))")

    def picture(self, figure):
        return self.js(f"document.querySelector('#{figure} .body').innerHTML")

    def test_tables_hold_the_numbers_of_the_json(self):
        for side, run in enumerate(self.data["texts"][0]["runs"]):
            _, names, *rows = self.rows(side)
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

    def test_tab_reaches_everything_that_can_be_chosen(self):
        self.choose("Text", 2)
        reached = set()
        for _ in range(80):
            self.browser.press("Tab")
            reached.add(self.js("document.activeElement.id || document.activeElement.className || document.activeElement.tagName"))
        self.assertLessEqual({"choose-Text", "choose-Layer", "choose-Head", "panels", "pick", "choose-token", "save",
                              "named-head", "strip", "scroll", "SUMMARY"}, reached)

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

    def test_one_run_shows_every_measure_of_the_json(self):
        page = FOLDER / "observe.html"
        infer("observe", "-q", "--html", str(page), TEXTS[1])
        observed, = map(json.loads, infer("observe", "-q", "--json", TEXTS[1]).stdout.splitlines())
        run = data_of(page)["texts"][0]["runs"][0]
        self.assertEqual(run["observed"], observed)

        self.browser.open(page)
        self.assertEqual(self.js("[...document.querySelectorAll('figure:not([hidden])')].map(e => e.id)"),
                         ["split", "direct", "effect", "reach", "entropy", "rank", "order", "attention",
                          "profile", "heads", "distances", "clocks", "scores"])
        _, names, *rows = self.rows(0)
        split = names.index("position")
        for row, layer in zip(rows, observed["layers"], strict=True):
            for name, part in enumerate(("position", "token", "rest")):
                self.assertAlmostEqual(value(row[split + name]), layer["split"][part], delta=0.00051)
        bars = self.js("[...document.querySelectorAll('#split title')].map(e => e.textContent)")
        for layer in observed["layers"]:
            shown, = [bar for bar in bars if bar.startswith(f"layer {layer['layer']}: position ")]
            self.assertAlmostEqual(value(shown.split()[-1]), layer["split"]["position"], delta=0.00051)

    def test_heads_that_look_by_place_are_named_and_one_click_away(self):
        page = FOLDER / "heads.html"
        infer("observe", "-q", "--html", str(page), TEXTS[1])
        found = [(layer["layer"], head["head"], head["positional_offset"])
                 for layer in data_of(page)["texts"][0]["runs"][0]["observed"]["layers"] if layer["attention"]
                 for head in layer["attention"]["heads"] if head["positional_offset"] is not None]
        self.assertGreater(len(found), 1)
        self.browser.open(page)
        buttons = self.texts(".named-head")
        self.assertEqual(sorted(button.split(",")[0] for button in buttons),
                         sorted(f"{layer}.{head} {'previous' if offset < 0 else 'next'} token"
                                for layer, head, offset in found))
        self.js("[...document.querySelectorAll('.named-head')].at(-1).click()")
        layer, head = buttons[-1].split()[0].split(".")
        self.assertIn(f"layer {layer}, head {head}", self.picture("attention"))

    def test_an_intervention_is_shown_before_and_after(self):
        page = FOLDER / "reverse.html"
        infer("observe", "-q", "--html", str(page), "--edit", "reverse", TEXTS[0])
        self.browser.open(page)
        self.assertEqual(self.texts(".facts strong"), ["before", "after"])
        self.assertIn("edit reverse", self.texts(".facts li")[1])
        self.assertEqual(self.texts(".place-1"), self.texts(".place-0")[::-1])
        self.assertTrue(self.js("document.querySelector('#moved svg') !== null"))
        self.assertEqual(self.js("document.querySelectorAll('#attention .panels > svg').length"), 2)

    def test_a_file_of_texts_has_charts_by_layer_and_a_probe(self):
        page = FOLDER / "file.html"
        sentences = pathlib.Path(__file__).parent.parent.parent / "examples" / "sentences.txt"
        infer("observe", "-q", "--html", str(page), "--only", "probe", "--only", "effect", "-i", str(sentences))
        self.browser.open(page)
        self.assertRegex(self.texts("h1")[0], r"^\d+ texts of sentences.txt$")
        self.assertEqual(self.js("[...document.querySelectorAll('figure:not([hidden])')].map(e => e.id)"),
                         ["effect", "probe"])

    def test_what_cannot_be_measured_says_why(self):
        page = FOLDER / "why.html"
        infer("observe", "-q", "--html", str(page), "--ids", "17")
        missing = data_of(page)["texts"][0]["runs"][0]["observed"]["missing"]
        self.assertTrue(missing)
        self.browser.open(page)
        self.assertEqual(len(self.texts(".piece")), 1)
        said = " ".join(self.texts(".missing"))
        for why in missing.values():
            self.assertIn(why, said)

    def test_512_tokens_open_and_answer_quickly(self):
        page = FOLDER / "long.html"
        infer("observe", "-q", "--only", "attention", "--only", "effect", "--html", str(page),
              "--ids", " ".join(str(100 + i % 900) for i in range(512)))
        begin = time.monotonic()
        self.browser.open(page)
        self.assertLess(time.monotonic() - begin, 10)
        begin = time.monotonic()
        self.choose("Layer", 6)
        self.assertLess(time.monotonic() - begin, 5)
        self.assertIn("layer 6, head ", self.picture("attention"))
        self.assertIn("512 tokens in 128 rows", self.texts(".notes")[0])

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
