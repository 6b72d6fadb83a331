"""The page of --html in a headless Chromium: what it shows, and how it answers mouse and keys.

report_page_test INFER: exits 77, saying why, where there is no Chromium.
"""

import html
import json
import math
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

import browser
from browser import load_tests

SAID = ":is(.lead, .about > p)"  # the sentences that the page begins with
ORDERS = ["the dog bit the man who fed it", "the man bit the dog who fed it"]
TEXTS = ["Tom bit a dog.", "The dog ran after the cat, and the cat ran up the tree."]
SIDES = ["sinusoidal", "learned"]
# The figures that a chart sticks out of.
BEYOND = ("[...document.querySelectorAll('figure:not([hidden])')].filter(figure => [...figure.querySelectorAll('svg')]"
          ".some(svg => svg.getBoundingClientRect().right > figure.getBoundingClientRect().right)).map(e => e.id)")


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


def runs_of(text):
    """The runs of one of the page's texts."""
    return text.get("runs", [text])


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


def tensors(file, begin):
    """The rows of the tensors of a .safetensors whose names begin so, in the order of the numbers behind."""
    content = file.read_bytes()
    size, = struct.unpack("<Q", content[:8])
    header = {name: tensor for name, tensor in json.loads(content[8:8 + size]).items() if name.startswith(begin)}
    found = []
    for _, tensor in sorted(header.items(), key=lambda item: int(item[0][len(begin):])):
        width = tensor["shape"][-1]
        first, last = (8 + size + offset for offset in tensor["data_offsets"])
        values = struct.unpack(f"<{(last - first) // 4}f", content[first:last])
        found.append([values[t:t + width] for t in range(0, len(values), width)])
    return found


def degrees(a, b):
    along, across = sum(map(math.prod, zip(a, b))), math.hypot(*a) * math.hypot(*b)
    return math.degrees(math.acos(max(-1, min(1, along / across))))


def value(text):
    """A number as the page prints it; None for a dash."""
    return None if text == "–" else float(text.replace("−", "-"))


class ReportPageTest(browser.PageTest):
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

    def open(self, *arguments, **viewport):
        """Opens the page that infer makes of these arguments; returns its data."""
        page = FOLDER / "other.html"
        infer(*arguments, "-q", "--html", str(page))
        self.browser.open(page, **viewport)
        return data_of(page)

    def figures(self):
        return self.js("[...document.querySelectorAll('figure:not([hidden])')].map(e => e.id)")

    def rows(self, side, view):
        """The cells of a side's table."""
        return self.js(f"[...document.querySelectorAll('table[data-run=\"{side}\"][data-view=\"{view}\"] tr')]"
                       ".map(row => [...row.cells].map(cell => cell.textContent))")

    def picture(self, figure):
        return self.js(f"document.querySelector('#{figure} .body').innerHTML")

    def page_with(self, data):
        """The page with other data in it."""
        page = FOLDER / "data.html"
        text = pathlib.Path(self.page).read_text(encoding="utf-8")
        begin = text.index('id="data">') + len('id="data">')
        page.write_text(text[:begin] + json.dumps(data).replace("<", "\\u003c") +
                        text[text.index("</script>", begin):], encoding="utf-8")
        return page

    def assert_rows_by_layer(self, side, data):
        """Holds a run's tables by layer against the rows of all its views."""
        views = runs_of(data["texts"][0])[side]["views"]
        shown = [view for view in data["views"] if view["rows"] == "layers" and view["name"] in views]
        self.assertGreater(len(shown), 2)
        for view in shown:
            labels, *rows = self.rows(side, view["name"])
            self.assertEqual(labels[1:], [column["label"] for column in view["columns"]])
            for cells, row in zip(rows, views[view["name"]], strict=True):
                self.assertEqual(cells[0], str(row["layer"] or "embed"))
                for text, column in zip(cells[1:], view["columns"], strict=True):
                    number = row.get(column["key"])
                    if number is None:
                        self.assertIsNone(value(text))
                    else:
                        self.assertAlmostEqual(value(text), number, delta=0.051 if abs(number) > 99 else 0.00051,
                                               msg=(view["name"], column, cells[0]))

    def test_tables_hold_the_numbers_of_the_json(self):
        for side in (0, 1):
            self.assert_rows_by_layer(side, self.data)

    def turned(self, text):
        """Degrees [layers + 1][tokens] between the states with positions and without, as infer --save writes them."""
        saved = {}
        for edit in ("mean", "shift=0"):
            file = FOLDER / "saved.safetensors"
            infer("observe", "-q", "--only", "norm", "--edit", edit, "--save", str(file), text)
            saved[edit] = tensors(file, "0.after.hidden_states.")
        return [[degrees(a, b) for a, b in zip(*layers, strict=True)] for layers in zip(*saved.values(), strict=True)]

    def test_the_page_opens_with_the_angle_by_which_positions_turn_each_state(self):
        for model, texts in (("sinusoidal", ORDERS), ("sinusoidal", ORDERS[:1])):
            self.open("observe", "-m", model, *texts, width=1280, height=800)
            self.assertLessEqual(self.js("document.querySelector('#turns').getBoundingClientRect().bottom"), 800)
            self.assertLess(self.js("document.querySelector('.lead').getBoundingClientRect().bottom - "
                                    "document.querySelector('#turns').getBoundingClientRect().top"), 0)
            grids = self.js("[...document.querySelectorAll('#turns .panels > svg')].map(svg => "
                            "[...svg.querySelectorAll('g[text-anchor=middle] text')].map(e => e.textContent))")
            self.assertEqual(len(grids), 3 if len(texts) == 2 else 1)
            for text, grid in zip(texts, grids):
                want = [angle for layer in self.turned(text) for angle in layer]
                self.assertEqual(len(grid), 7 * 11)
                for shown, angle in zip(grid, want, strict=True):
                    self.assertAlmostEqual(float(shown), angle, delta=0.51)
            self.js("document.querySelector('#turns .panels').focus()")
            self.browser.press("ArrowDown")
            self.browser.press("ArrowRight")
            self.assertRegex(self.texts("#turns .reading span")[0], r"positions turn ▁the \(1\) by 57° in layer 1$")

    def test_two_orders_of_the_same_words_are_told_apart_by_positions_alone(self):
        self.open("observe", *ORDERS)
        self.assertRegex(self.texts(".lead")[0], r"^Without positions both texts are the same to this model. With them, "
                         r"layer 1 does most to tell who stands before whom: it takes the same words from \d+° to \d+° apart")
        self.assertEqual(self.texts("h1"), ["The same words in two orders"])
        apart = self.js("[...document.querySelectorAll('#turns .panels > svg:last-child g[text-anchor=middle] text')]"
                        ".map(e => Number(e.textContent))")
        self.assertEqual(apart[1::2], [0] * 7)
        self.assertEqual(max(range(7), key=lambda l: apart[2 * l] - (apart[2 * l - 2] if l else 0)), 1)
        self.open("observe", *ORDERS, width=360)
        self.assertLess(self.js("document.querySelectorAll('#turns .panels > svg')[1].getBoundingClientRect().bottom"), 800)
        for model, texts, begin in (("none", ORDERS, "Both texts are the same to this model"),
                                    ("none", ORDERS[:1], "Positions change no hidden state"),
                                    ("sinusoidal", [ORDERS[0], TEXTS[0]], "Positions turn the tokens' states most in"),
                                    ("sinusoidal", [ORDERS[0]] * 2, "Positions turn the tokens' states most in")):
            self.open("observe", "-m", model, *texts, width=360)
            self.assertEqual(self.texts(".lead")[0][:len(begin)], begin)
            self.assertEqual(self.js("document.documentElement.scrollWidth"), 360)
            self.assertEqual(self.js(BEYOND), [])

    def test_of_two_runs_the_page_opens_with_what_is_alike_and_what_is_not(self):
        alike, differ = self.texts(".lead")
        self.assertRegex(alike, "^Alike above the embedding: in both, ")
        self.assertRegex(differ, "^Above the embedding they differ most in ")
        self.assertEqual(self.texts("#turns .panels > svg text[font-weight='600']"), SIDES)
        self.assertEqual([self.figures()[0], *(f for f in self.figures() if f in ("effect", "moved"))],
                         ["turns", "effect", "moved"])

    def test_arrow_keys_read_the_weights_that_infer_saves(self):
        layer, head, row, column = 2, 3, 2, 4
        self.choose("Layer", layer)
        self.choose("Head", head)
        self.js("document.querySelector('#pattern .panels').focus()")
        for _ in range(row):
            self.browser.press("ArrowDown")
        for _ in range(column):
            self.browser.press("ArrowRight")
        shown = self.texts("#pattern .reading span")
        self.assertEqual(len(shown), 2)
        for model, sentence in zip(SIDES, shown):
            weight = attention(model, TEXTS[0], layer, head)[row][column]
            self.assertRegex(sentence, rf"{model}: ▁bit \(2\) reads ▁dog \(4\) with weight ")
            self.assertAlmostEqual(value(sentence.split()[-1]), weight, delta=0.0045)

    def test_the_mouse_reads_the_same_cell_as_the_keys(self):
        self.browser.point_at("pattern", row=2, column=4, rows=7, columns=7)
        self.assertIn("▁bit (2) reads ▁dog (4)", self.texts("#pattern .reading span")[0])

    def show_links(self):
        self.js("[...document.querySelectorAll('.switches input')].at(-1).click()")

    def shown_links(self, panel=0):
        """[y1, y2, opacity] of each line that is shown, of a panel whose tokens are 20 pixels apart."""
        return self.js(f"[...document.querySelectorAll('#links svg')[{panel}].querySelectorAll('line')]"
                       ".filter(e => e.style.display !== 'none').map(e => "
                       "[...['y1', 'y2'].map(y => (e.getAttribute(y) - 58) / 20), Number(e.getAttribute('opacity'))])")

    def test_lines_take_the_place_of_the_map_and_are_as_opaque_as_the_weights(self):
        self.assertNotIn("links", self.figures())
        before = self.js("document.documentElement.scrollHeight")
        self.choose("Layer", 2)
        self.choose("Head", 3)
        self.show_links()
        self.assertNotIn("pattern", self.figures())
        self.assertLessEqual(self.js("document.documentElement.scrollHeight"), before)
        for panel, model in enumerate(SIDES):
            weights = attention(model, TEXTS[0], 2, 3)
            lines = {(row, column): weight for row, column, weight in self.shown_links(panel)}
            for row, of_row in enumerate(weights):
                for column, weight in enumerate(of_row):
                    self.assertAlmostEqual(lines.get((row, column), 0), weight, delta=0.0045 if weight > 0.015 else 0.015)
            self.assertIn(f"layer 2, head 3 of {model}: previous ",
                          self.js(f"document.querySelectorAll('#links svg')[{panel}].ariaLabel"))
        self.show_links()
        self.assertNotIn("links", self.figures())
        self.assertIn("layer 2, head 3", self.picture("pattern"))

    def test_lines_follow_the_mouse_and_the_keys(self):
        self.open("observe", "--head", "2.3", TEXTS[0])
        self.show_links()
        weights = attention("sinusoidal", TEXTS[0], 2, 3)
        every = self.shown_links()
        self.js("document.querySelector('#links').scrollIntoView({behavior: 'instant'})")
        x, y, width = self.js("(({x, y, width}) => [x, y, width])(document.querySelector('#links svg').getBoundingClientRect())")

        def point(x, y):
            self.browser.send("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
            self.browser.wait_for_frame()
            return self.shown_links(), self.texts("#links .reading")[0]

        left, reads = point(x + 10, y + 48 + 20 * 2 + 10)
        self.assertEqual(left, [line for line in every if line[0] == 2])
        right, is_read = point(x + width - 10, y + 48 + 20 * 4 + 10)
        self.assertEqual(right, [line for line in every if line[1] == 4])
        for said, begin, partners in ((reads, "▁bit (2) reads ", weights[2]),
                                      (is_read, "▁dog (4) is read by ", [row[4] for row in weights])):
            self.assertEqual(said[:len(begin)], begin)
            named = [(int(at), float(weight)) for at, weight in re.findall(r"\((\d+)\) ([\d.]+)(?:, |$)", said[len(begin):])]
            most = sorted(range(7), key=lambda t: -partners[t])[:len(named)]
            self.assertGreater(len(named), 2)
            for (at, weight), expected in zip(named, most):
                self.assertAlmostEqual(weight, partners[at], delta=0.0045)
                self.assertAlmostEqual(weight, partners[expected], delta=0.0045)
        prompt = "Point at a token, or use the arrow keys, to read it."
        self.assertEqual(point(x + width / 2, y + 100), (every, prompt))
        point(x + 10, y + 100)
        self.assertEqual(point(1, 1), (every, prompt))
        self.choose("Head", 4)
        self.choose("Head", 3)
        self.browser.press("Tab")
        while "panels" not in self.js("document.activeElement.className"):
            self.browser.press("Tab")
        self.browser.press("ArrowLeft")
        for _ in range(6):
            self.browser.press("ArrowUp")
        self.browser.press("ArrowDown")
        self.browser.press("ArrowDown")
        self.assertEqual((self.shown_links(), self.texts("#links .reading")[0]), (left, reads))
        self.browser.press("ArrowRight")
        self.assertEqual(self.shown_links(), [line for line in every if line[1] == 2])
        self.browser.press("Tab")
        self.assertEqual(self.shown_links(), every)

    def test_lines_fit_on_every_width_are_saved_whole_and_leave_long_texts_to_the_map(self):
        for width in (360, 1200):
            self.browser.open(self.page, width=width)
            self.show_links()
            self.assertEqual(self.js("document.documentElement.scrollWidth"), width)
            self.assertEqual(self.js(BEYOND), [], width)
        document = self.browser.saved("links")
        self.assertNotIn("var(", document)
        self.assertNotIn("cursor", document)
        self.open("observe", "--only", "pattern", "--ids", " ".join(str(100 + i % 900) for i in range(256)))
        self.show_links()
        self.assertEqual(self.texts("#links .missing"), ["Not shown: 256 tokens are too many for lines; the map shows them."])

    def test_a_page_of_one_figure_fits_into_its_frame(self):
        data = data_of(self.page)
        names = ["turns", "links", "pattern", "overview", "effect", "relative", "distances"]
        frame = FOLDER / "frame.html"
        for name in names:
            page = self.page_with({**data, "figure": name, "opens_on": {"layer": 2, "head": 3}})
            frame.write_text('<!doctype html><meta charset="utf-8"><iframe style="width: 100%; height: 30em" '
                             f'srcdoc="{html.escape(page.read_text("utf-8"))}"></iframe>', encoding="utf-8")
            self.browser.open(frame)
            inside = "document.querySelector('iframe').contentDocument"
            self.browser.wait_for_frame()
            self.assertEqual(self.js(f"[...{inside}.querySelectorAll('figure:not([hidden])')].map(e => e.id)"), [name])
            height = self.js(f"{inside}.querySelector('main').offsetHeight")
            self.assertEqual(self.js("document.querySelector('iframe').clientHeight"), height)
            self.assertEqual(self.js(f"{inside}.querySelectorAll('a[href], h1, table').length"), 0)
            if name in ("links", "pattern"):
                self.assertIn("layer 2, head 3", self.js(f"{inside}.querySelector('#{name} .body').innerHTML"))

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
        before = self.picture("pattern")
        self.choose("Layer", 4)
        middle = self.picture("pattern")
        self.choose("Head", 4)
        after = self.picture("pattern")
        self.assertEqual(len({before, middle, after}), 3)
        self.assertIn("layer 4, head 4", after)
        self.assertEqual(self.js("document.activeElement.id"), "choose-Head")

    def test_a_head_of_the_overview_can_be_chosen_with_the_keys(self):
        self.choose("Layer", 1)
        self.choose("Head", 1)
        self.js("document.querySelector('#overview button[tabindex=\"0\"]').focus()")
        self.browser.press("ArrowDown")
        self.browser.press("ArrowRight")
        self.assertIn("layer 2, head 2", self.picture("pattern"))
        self.assertEqual(self.texts("#choose-Layer option:checked") + self.texts("#choose-Head option:checked"),
                         ["2", "2"])
        self.assertEqual(self.js("document.querySelectorAll('#overview [aria-pressed=true]').length"), 2)

    def test_tab_reaches_everything_that_can_be_chosen(self):
        self.choose("Text", 2)
        reached = set()
        for _ in range(80):
            self.browser.press("Tab", wait=False)
            reached.add(self.js("document.activeElement.id || document.activeElement.className || document.activeElement.tagName"))
        self.assertLessEqual({"choose-Text", "choose-Layer", "choose-Head", "panels", "pick", "choose-token", "save",
                              "named-head", "strip", "scroll", "SUMMARY"}, reached)

    def test_another_text_changes_title_tokens_and_charts(self):
        before = self.picture("direct")
        self.choose("Text", 2)
        self.assertEqual(self.texts("h1"), [f"“{TEXTS[1]}”"])
        self.assertEqual(self.texts(".piece"), runs_of(self.data["texts"][1])[0]["pieces"])
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
        width = self.data["texts"][0]["runs"][0]["vectors"]["columns"]
        self.js("document.querySelector('#distances .panels').focus()")
        self.browser.press("ArrowRight")
        shown = value(self.texts("#distances .reading span")[0].split()[-2])
        cosines = sum(math.cos(10000 ** (-2 * i / width)) for i in range(width // 2))
        self.assertAlmostEqual(shown, math.sqrt(width - 2 * cosines), delta=0.001)

    def test_one_run_shows_every_measure_of_the_json(self):
        data = self.open("observe", TEXTS[1])
        observed, = map(json.loads, infer("observe", "-q", "--json", TEXTS[1]).stdout.splitlines())
        self.assertEqual(data["texts"][0], {**data["texts"][0], **observed})
        drawn = [view["name"] for view in sorted(data["views"], key=lambda view: view["rows"] != "layers")
                 if view["chart"] != "none" and view["name"] in observed["views"]]
        layers, heads = ([view["name"] for view in data["views"] if view["rows"] == rows and view["name"] in drawn]
                         for rows in ("layers", "heads"))
        special = ["pattern", "profile", "overview", *heads]
        self.assertEqual(self.figures(), ["turns", "clocks", "vectors", "distances"] + layers + special + [name for name in drawn if name not in layers + heads])
        self.assert_rows_by_layer(0, data)
        bars = self.js("[...document.querySelectorAll('#split title')].map(e => e.textContent)")
        for row in observed["views"]["split"]:
            shown, = [bar for bar in bars if bar.startswith(f"layer {row['layer']}: position ")]
            self.assertAlmostEqual(value(shown.split()[-1]), row["position"], delta=0.00051)

    def test_a_view_is_drawn_by_what_its_data_say(self):
        data = data_of(self.page)
        named = {"rows": "named", "row_name": "fruit", "hint": "Which fruit.", "unit": "kilograms"}
        columns = [{"key": "ripe", "label": "ripe fruit"}, {"key": "rest", "label": "other"}]
        data["views"] += [
            {"name": "fruit_bars", "title": "Fruit in bars", "chart": "stacked", "series": 2, "columns": columns, **named},
            {"name": "fruit_lines", "title": "Fruit in lines", "chart": "lines", "series": 2, "columns": columns, **named},
            {"name": "fruit_table", "title": "Fruit in a table", "chart": "none", "series": 0, "columns": columns, **named},
            {"name": "fruit_own", "title": "Own columns", "chart": "none", "series": 0, "columns": [], **named}]
        first, second = data["texts"][0]["runs"]
        for name in ("fruit_bars", "fruit_lines", "fruit_table"):
            first["views"][name] = [{"fruit": "apple", "ripe": 0.25, "rest": 0.75}, {"fruit": "pear", "ripe": 0.5}]
            second["missing"][name] = "no fruit grows here"
        first["views"]["fruit_own"] = [{"fruit": "plum", "0": 2, "-1": 1, "1": 3}]
        self.browser.open(self.page_with(data))
        self.assertIn("By fruit", self.texts("h2"))
        self.assertIn("fruit apple: ripe fruit 0.250", self.texts("#fruit_bars svg title"))
        self.assertIn("apple", self.js("document.querySelector('#fruit_lines svg').ariaLabel"))
        for figure in ("fruit_bars", "fruit_lines"):
            self.assertEqual(self.texts(f"#{figure} .missing"), ["Not shown: learned: no fruit grows here."])
        self.assertEqual(self.texts(".tables > .missing"), ["Not shown: Fruit in a table: learned: no fruit grows here."])
        cells = self.js("[...document.querySelectorAll('.tables details')].filter(e => e.textContent.includes('wn columns'))"
                        ".map(e => [...e.querySelectorAll('th, td')].map(cell => cell.textContent))")
        self.assertEqual(cells, [["fruit", "−1", "0", "1", "plum", "1.000", "2.000", "3.000"]])

    def dots(self, figure):
        """Of each dot plot of a figure: what its axes say of where its dots and intervals lie, by their colour."""
        return self.js("""[...document.querySelectorAll('#%s svg')].map(svg => {
            const all = (what, inner) => [...svg.querySelectorAll(`[aria-label="${what}"]`)].map(inner);
            const middle = e => {
                const {left, right, top, bottom} = e.getBoundingClientRect();
                return {x: (left + right) / 2, y: (top + bottom) / 2};
            };
            const ticks = axis => all(`${axis}-axis tick label`, g => [...g.children]).flat()
                .map(e => ({text: e.textContent, ...middle(e)}));
            const rows = ticks("y");
            const at = ticks("x").map(({text, x}) => [Number(text.replace("−", "-")), x]).sort(([a], [b]) => a - b);
            const [first, left] = at[0], [last, right] = at.at(-1);
            const number = x => first + (x - left) / (right - left) * (last - first);
            const row = ({y}) => rows.findIndex(tick => Math.abs(tick.y - y) <= 8);
            const dot = e => [row(middle(e)), number(middle(e).x)];
            const rule = e => {
                const {left, right} = e.getBoundingClientRect();
                return [row(middle(e)), number(left), number(right)];
            };
            const marks = (what, read) => Object.fromEntries(
                all(what, g => [g.getAttribute("stroke").slice(6, -1), [...g.children].map(read)]));
            return {label: svg.ariaLabel, rows: rows.map(({text}) => text), dots: marks("dot", dot), rules: marks("rule", rule),
                    scale: [left - svg.getBoundingClientRect().x, right - left].map(Math.round)};
        })""" % figure)

    def test_dots_and_intervals_lie_at_their_numbers(self):
        data = data_of(self.page)
        runs = data["texts"][0]["runs"] = [json.loads(json.dumps(run)) for run in 2 * data["texts"][0]["runs"]]
        for run in runs[2:]:
            run["label"] += ", untrained"
            run["untrained"] = 2
        cells = {"positions": {"removed": 3, "removed_low": 2.5, "removed_high": 3.75, "random": None, "shuffled": None},
                 "no number": {"removed": None, "random": None, "shuffled": None},
                 "MLP 1": {"removed": -0.5, "removed_low": -1, "removed_high": 0.25,
                           "random": 0.75, "random_low": 0.5, "random_high": 1.5, "shuffled": 1.25},
                 "a part whose name is so long that there is no room for all of it": {"removed": 0.125, "random": 2, "shuffled": 0.5}}
        for run, factor in zip(runs, (1, 0.25, 0.5, 0.1), strict=True):
            run["views"]["causes"] = [
                {"part": part, **{key: cell and factor * cell for key, cell in numbers.items()}}
                for part, numbers in cells.items()]
        page = self.page_with(data)
        for width in (1200, 390):
            self.browser.open(page, width=width)
            panels = self.dots("causes")
            for run, panel in zip(runs, panels, strict=True):
                rows = run["views"]["causes"]
                self.assertEqual(panel["rows"][:3], list(cells)[:3])
                self.assertRegex(panel["rows"][3], "^a part whose.*…$")
                self.assertEqual(panel["scale"], panels[0]["scale"])
                (_, *zero), = panel["rules"]["soft"]
                self.assertAlmostEqual(sum(zero) / 2, 0, delta=0.03)
                for key, colour in {"removed": "position", "random": "token", "shuffled": "third"}.items():
                    want = {"dots": [(i, row[key]) for i, row in enumerate(rows) if row[key] is not None],
                            "rules": [(i, row[f"{key}_low"], row[f"{key}_high"]) for i, row in enumerate(rows)
                                      if f"{key}_low" in row]}
                    for marks, expected in want.items():
                        for mark, numbers in zip(panel[marks].get(colour, []), expected, strict=True):
                            for a, b in zip(mark, numbers, strict=True):
                                self.assertAlmostEqual(a, b, delta=0.03, msg=(width, run["label"], key, marks))
            self.assertEqual(self.js("""[...document.querySelectorAll('#causes text')].filter(e =>
                e.getBoundingClientRect().x < e.ownerSVGElement.getBoundingClientRect().x).length"""), 0)
            self.assertEqual(self.js(BEYOND), [], width)
        self.assertIn(f"{SIDES[0]}: part positions: removed 3.000 (2.500 to 3.750), random –, shuffled –; part no number: removed –, "
                      "random –, shuffled –; part MLP 1: removed −0.500 (−1.000 to 0.250), random 0.750 (0.500 to 1.500), "
                      "shuffled 1.250", panels[0]["label"])
        self.js("""(() => {
            const dot = document.querySelector('#causes [aria-label="dot"]').children[1];
            const {x, y} = dot.getBoundingClientRect();
            dot.dispatchEvent(new PointerEvent("pointermove", {clientX: x + 3, clientY: y + 3, bubbles: true}));
        })()""")
        self.assertEqual([text.strip("\u200b") for text in self.texts("#causes [aria-label='tip'] tspan")],
                         ["removed", "part MLP 1: −0.500 (−1.000 to 0.250)"])

    def test_curves_by_offset_are_those_of_the_chosen_head(self):
        data = data_of(self.page)
        rows = runs_of(data["texts"][0])[0]["views"]["relative"]
        row, = [row for row in rows if (row["layer"], row["head"], row["term"]) == (1, 3, "pp")]
        self.choose("Layer", 1)
        self.choose("Head", 3)
        said = self.js("document.querySelector('#relative svg').ariaLabel")
        self.assertIn("layer 1, head 3", said)
        near = re.search(r"pp: (\S+) at -2, (\S+) at -1, (\S+) at 0", said).groups()
        for offset, shown in zip(("-2", "-1", "0"), near):
            self.assertAlmostEqual(value(shown), row[offset], delta=0.051)
        self.choose("Layer", 2)
        self.assertEqual(self.texts("#relative .missing"), ["Not shown: layer 2, head 3 has none; only layer 1 has."])

    def test_heads_that_look_by_place_are_named_and_one_click_away(self):
        heads = runs_of(self.open("observe", TEXTS[1])["texts"][0])[0]["views"]["heads"]
        found = [head for head in heads if head["rows"] >= 0.9]
        self.assertGreater(len(found), 1)
        buttons = self.texts(".named-head")
        self.assertEqual(sorted(buttons), sorted(
            f"{head['layer']}.{head['head']} {'previous' if head['previous'] > head['next'] else 'next'} token, "
            f"{100 * head['rows']:.0f} % of rows, mean weight {max(head['previous'], head['next']):.2f}"
            for head in found))
        self.js("[...document.querySelectorAll('.named-head')].at(-1).click()")
        layer, head = buttons[-1].split()[0].split(".")
        self.assertIn(f"layer {layer}, head {head}", self.picture("pattern"))

    def test_without_special_tokens_the_weights_of_the_others_sum_to_one(self):
        self.open("observe", TEXTS[0])
        layer, head = map(int, re.search(r"layer (\d+), head (\d+)", self.picture("pattern")).groups())
        row, column = 2, 3
        weights = attention("sinusoidal", TEXTS[0], layer, head)[row]
        self.js("document.querySelector('.switches input').click()")
        self.assertIn("without special tokens", self.picture("pattern"))
        self.js("document.querySelector('#pattern .panels').focus()")
        for key in ["ArrowDown"] * row + ["ArrowRight"] * column:
            self.browser.press(key)
        shown, = self.texts("#pattern .reading span")
        weight = float(re.search(r"with weight ([\d.e−]+)", shown)[1].replace("−", "-"))
        self.assertAlmostEqual(weight, weights[column] / sum(weights[1:-1]), delta=0.01)

    def test_the_page_opens_on_the_head_that_the_terminal_names(self):
        said = infer("observe", "-q", TEXTS[0]).stdout
        named = re.search(r"most\s+positional\s+head,\s+(\d+)\.(\d+)", said)
        self.open("observe", TEXTS[0])
        self.assertIn("layer {}, head {}:".format(*named.groups()), self.picture("pattern"))

    def test_the_contents_lead_to_what_is_shown(self):
        self.open("observe", TEXTS[0])
        self.js("[...document.querySelectorAll('.contents a')].find(a => a.textContent === 'Attention').click()")
        self.assertLess(abs(self.js("document.querySelector('#section-attention').getBoundingClientRect().top")), 2)
        hidden = self.js("[...document.querySelectorAll('.contents a:not([hidden])')]"
                         ".filter(a => document.querySelector(a.hash).clientHeight === 0).length")
        self.assertEqual(hidden, 0)

    def test_an_intervention_is_shown_before_and_after(self):
        self.open("observe", "--edit", "reverse", TEXTS[0])
        self.assertEqual(self.texts(".facts strong"), ["before", "after"])
        self.assertIn("edit reverse", self.texts(".facts li")[1])
        self.assertEqual(self.texts(".place-1"), self.texts(".place-0")[::-1])
        self.assertTrue(self.js("document.querySelector('#moved svg') !== null"))
        self.assertEqual(self.js("document.querySelectorAll('#pattern .panels > svg').length"), 2)

    def test_untrained_models_stand_beside_a_single_text(self):
        data = self.open("compare", "--baseline", "random:2", *SIDES, TEXTS[0])
        self.assertEqual([run.get("untrained") for run in data["texts"][0]["runs"]], [None, None, 2, 2])
        self.assertEqual(self.texts(".facts strong"), [*SIDES, *(f"{side} (untrained)" for side in SIDES)])
        for side in range(4):
            self.assert_rows_by_layer(side, data)

    def test_a_file_of_texts_has_charts_by_layer_and_a_probe(self):
        all_sentences = pathlib.Path(__file__).parent.parent.parent / "examples" / "sentences.txt"
        sentences = FOLDER / "sentences.txt"
        sentences.write_text("".join(all_sentences.read_text(encoding="utf-8").splitlines(True)[:4]), encoding="utf-8")
        self.open("observe", "--only", "probe", "--only", "effect", "-i", str(sentences))
        self.assertRegex(self.texts("h1")[0], r"^\d+ texts of sentences.txt$")
        shown = set(self.figures())
        self.assertLessEqual({"effect", "probe"}, shown)
        self.assertFalse({"pattern", "profile", "overview", "distances", "clocks"} & shown)

    def test_what_cannot_be_measured_says_why(self):
        missing = runs_of(self.open("observe", "--ids", "17")["texts"][0])[0]["missing"]
        self.assertTrue(missing)
        self.assertEqual(len(self.texts(".piece")), 1)
        said = " ".join(self.texts(".missing"))
        for why in missing.values():
            self.assertIn(why, said)

    def test_many_tokens_have_elements_in_proportion(self):
        """A browser's time goes with them: quadratically many would be 16 times as many as of 64."""
        elements = []
        for count in (64, 256):
            self.open("observe", "--only", "pattern", "--ids", " ".join(str(100 + i % 900) for i in range(count)))
            self.choose("Layer", 6)
            self.assertIn("layer 6, head ", self.picture("pattern"))
            elements.append(self.js("document.querySelectorAll('*').length"))
        self.assertLess(elements[1], 6 * elements[0])
        self.assertIn("256 tokens in 250 rows", self.texts(".notes")[0])

    def test_every_figure_is_saved_as_a_whole_svg(self):
        figures = self.js("[...document.querySelectorAll('figure:not([hidden]):has(.save:not([hidden]))')].map(e => e.id)")
        self.assertGreaterEqual(len(figures), 7)
        for document in map(self.browser.saved, figures):
            self.assertNotIn("var(", document)
            self.assertTrue(self.js("(text => { const svg = new DOMParser().parseFromString(text, 'image/svg+xml');"
                                    "return svg.querySelector('parsererror') === null && "
                                    "svg.querySelector('path, rect, image') !== null; })"
                                    f"({json.dumps(document)})"))
            beyond = self.js("""(text => {
                const box = document.body.appendChild(document.createElement("div"));
                box.innerHTML = text;
                const frame = box.firstChild.getBoundingClientRect();
                const cut = [...box.querySelectorAll("text")].filter(e => {
                    const {left, right, top, bottom} = e.getBoundingClientRect();
                    return left < frame.left || right > frame.right || top < frame.top || bottom > frame.bottom;
                }).map(e => e.textContent);
                box.remove();
                return cut;
            })(%s)""" % json.dumps(document))
            self.assertEqual(beyond, [])

    def test_every_chart_says_in_words_what_it_shows(self):
        self.assertEqual(self.js("[...document.querySelectorAll('figure svg:not(svg svg)')]"
                                 ".filter(e => !e.ariaHidden && !(e.ariaLabel?.length > 20)).map(e => e.outerHTML)"), [])

    def test_dark_and_light_differ_and_paper_is_light(self):
        ink = "getComputedStyle(document.body).color + document.querySelector('#pattern image').href.baseVal"
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
        for width in (360, 768, 1600):
            self.browser.open(self.page, width=width)
            self.assertEqual(self.js("document.documentElement.scrollWidth"), width)
            self.assertEqual(self.js(BEYOND), [], width)
        self.js("dispatchEvent(new Event('beforeprint'))")
        self.assertEqual(self.js("document.querySelector('main').clientWidth"), 687)
        self.assertEqual(self.js(BEYOND), [])

    def test_the_page_of_one_text_begins_with_the_sentences_of_the_terminal(self):
        data = self.open("observe", TEXTS[0])
        said = [each["sentence"] for each in data["texts"][0]["conclusions"]]
        printed = " ".join(infer("observe", TEXTS[0]).stdout.split())
        shown = self.texts(SAID)
        self.assertEqual(len(said), 4)
        for sentence, paragraph in zip(said, shown, strict=True):
            self.assertIn(sentence, printed)
            self.assertTrue(paragraph.replace("\u00a0", " ").startswith(sentence[:-1]), paragraph)
        self.assertEqual(self.js(f"[...document.querySelectorAll('{SAID} a')].filter("
                                 "a => !document.querySelector(a.getAttribute('href'))).length"), 0)

    def test_it_opens_on_the_head_that_its_sentences_name_or_on_the_one_that_was_asked_for(self):
        chosen = "['Layer', 'Head'].map(name => document.getElementById('choose-' + name).value).join('.')"
        for model in SIDES:
            self.open("observe", "-m", model, TEXTS[0])
            named = re.search(r"The most positional head, ([0-9.]+), ", " ".join(self.texts(SAID)))
            self.assertEqual(self.js(chosen), named[1])
        self.open("observe", "--head", "3.2,all", TEXTS[0])
        self.assertEqual(self.js(chosen), "3.2")
        self.assertIn("layer 3, head 2", self.texts("#pattern text")[0])

    def test_every_name_has_an_explanation_and_no_key_is_shown(self):
        lines = FOLDER / "lines.txt"
        lines.write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
        for arguments in (("observe", TEXTS[0]), ("observe", "--only", "all", TEXTS[0]), ("observe", "-i", str(lines)),
                          ("compare", *SIDES, TEXTS[0]), ("positions", "--length", "20", *SIDES)):
            self.open(*arguments)
            shown = self.js("document.querySelector('main').textContent + document.title")
            self.assertNotRegex(shown, r"[a-z0-9]_[a-z0-9]", arguments)
            bare = self.js("[...document.querySelectorAll('thead tr:last-child th:not(:first-child), .sentences')].filter("
                           "e => !e.querySelector('abbr[title]')).map(e => e.textContent)")
            self.assertEqual([name for name in bare if not re.fullmatch("[−+]?[0-9]+|value", name)], [], arguments)
        named = "[...document.querySelectorAll('tbody th')].map(e => e.querySelector('abbr')?.title ?? e.textContent)"
        self.assertIn("1: likeness is by offset alone", self.js(named))

    def test_a_folder_is_called_by_its_last_name(self):
        model = FOLDER / "an encoder" / "model"
        shutil.copytree(pathlib.Path(__file__).resolve().parents[2] / "models" / "none", model)
        self.open("observe", "--only", "effect", "-m", str(model), TEXTS[0])
        self.assertEqual(self.js("document.title"), f"“{TEXTS[0]}” in an encoder: how position travels")
        self.assertIn("model an encoder · ", self.texts(".facts")[0])
        self.assertEqual(self.js("document.querySelector('.facts abbr').title"), str(model))

    def test_no_text_can_break_out(self):
        text = "</script><b id=out>x</b><!-- مرحبا 👋🏽 \\ ' ` ${1} \"\u2028"
        self.open("compare", *SIDES, text)
        self.assertEqual(self.texts("h1"), [f"“{text}”"])
        self.assertFalse(self.js("!!document.getElementById('out')"))

    def test_bytes_that_are_no_utf8_are_replaced(self):
        self.open("compare", *SIDES, b"Tom \xff bit")
        self.assertEqual(self.texts("h1"), ["“Tom \ufffd bit”"])

    def test_a_model_without_positions_says_so(self):
        data = self.open("compare", "none", "sinusoidal", TEXTS[0])
        effect, = (each for each in data["texts"][0]["conclusions"] if each["views"] == ["effect"])
        self.assertRegex(effect["sentence"], r"none 0.000 \(0°\), sinusoidal 0.\d+ \(\d+°\)\.$")
        said = self.texts(SAID)
        self.assertEqual(len(said), len(data["texts"][0]["conclusions"]))
        self.assertNotRegex(" ".join(said), "--|-i FILE")
        self.assertTrue(any("none 0.000 (0°), sinusoidal" in text and text.endswith("(Effect of positions).") for text in said))
        self.assertEqual(self.js(f"[...document.querySelectorAll('{SAID} a')].filter("
                                 "a => !document.querySelector(a.getAttribute('href'))).length"), 0)
        for figure in ("distances", "clocks"):
            self.assertIn("none: no position vector is added", self.texts(f"#{figure} .missing")[0])
            self.assertEqual(self.js(f"document.querySelectorAll('#{figure} .body > svg:not(.colour-bar), #{figure} .panels > svg').length"), 1)

    def test_tables_of_position_vectors_have_a_page(self):
        tables = self.open("positions", "--length", "40", *SIDES)["tables"]["tables"]
        self.assertEqual(self.texts("h1"), ["sinusoidal and learned"])
        self.assertEqual(self.figures(), ["image", "curves", "rows", "map", "clocks", "distances", "offsets"])
        self.assertEqual(self.js("document.querySelectorAll('figure:not(:has(svg:not(.colour-bar)))').length"), 0)
        read = {"image": ("values", "position 2, column 1: "), "distances": ("distances", "position 2 and position 1: ")}
        for figure, (key, sentence) in read.items():
            self.js(f"document.querySelector('#{figure} .panels').focus()")
            for arrow in ("ArrowDown", "ArrowDown", "ArrowRight"):
                self.browser.press(arrow)
            shown = self.texts(f"#{figure} .reading span")
            for table, text in zip(tables, shown, strict=True):
                self.assertIn(f"{table['name']}: {sentence}", text)
                self.assertAlmostEqual(value(text.split()[-1]), table[key][2][1], delta=0.00051)
        # The mean of P[p]·P[p + 5], beside that of P[p]·P[p], is a mean of cosines for a sinusoid.
        width = tables[0]["width"]
        said = self.js("document.querySelector('#offsets svg').ariaLabel")
        self.assertAlmostEqual(value(said.split(" at 5")[0].split()[-1]), sum(
            math.cos(5 * 10000 ** (-2 * i / width)) for i in range(width // 2)) / (width // 2), delta=0.00051)
        properties = self.js("[...document.querySelectorAll('.numbers tbody tr')].map(row => [...row.cells].map(cell => cell.textContent))")
        mirror, = [row for row in properties if row[0].lower() == "mirror likeness"]
        for side, table in enumerate(tables):
            for i, key in enumerate(("value", "random", "smooth")):
                self.assertAlmostEqual(value(mirror[1 + 3 * side + i]), table["properties"]["mirror_likeness"][key], delta=0.00051)
        before = self.picture("map"), self.picture("clocks")
        self.js("document.getElementById('choose-token').focus()")
        self.browser.press("ArrowRight")
        self.assertEqual(self.texts(".slider output"), ["position 2"])
        self.assertTrue(all(a != b for a, b in zip(before, (self.picture("map"), self.picture("clocks")))))

    def test_tables_of_any_shape_fit_on_every_width(self):
        for arguments in (("--length", "1", "--width", "3"), ("--length", "512", "--width", "8"), ("random",),
                          ("paper", "marian", "--length", "30", "--width", "192")):
            for width in (360, 1200):
                self.open("positions", *arguments, width=width)
                self.assertEqual(self.js("document.documentElement.scrollWidth"), width, arguments)
                self.assertEqual(self.js(BEYOND), [], (arguments, width))
                self.assertEqual(self.browser.problems, [], arguments)


if __name__ == "__main__":
    INFER = sys.argv.pop(1)
    if not browser.program():
        print(f"skipped: none of {', '.join(browser.PROGRAMS)} is here (./dev need chromium)", file=sys.stderr)
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        FOLDER = pathlib.Path(folder)
        unittest.main(exit=True)
