"""The page of infer serve in a headless Chromium, against a running server.

live_page_test INFER: exits 77, saying why, where there is no Chromium.
"""

import pathlib
import sys
import tempfile
import unittest

import browser
from browser import load_tests
from report_page_test import BEYOND, runs_of, value
from server import Server

SENTENCE = "The dog ran after the cat and the cat ran up the tree."


class LivePageTest(browser.PageTest):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(INFER, "-m", "sinusoidal", "-m", "learned")
        cls.browser = browser.Browser()

    @classmethod
    def tearDownClass(cls):
        cls.browser.__exit__()
        cls.server.__exit__()

    def setUp(self):
        self.expected_problems = []  # what they say
        self.browser.problems.clear()
        self.open()

    def tearDown(self):
        unexpected = [problem for problem in self.browser.problems
                      if not any(text in str(problem) for text in self.expected_problems)]
        self.assertEqual(unexpected, [])
        # Whatever a test does: the page asks nobody but its server.
        self.assertEqual({url.split("/")[2] for url in self.asked() if url.startswith("http")},
                         {self.server.address.split("/")[2]})

    def open(self, rest="/#text=Tom%20bit%20a%20dog.", **viewport):
        self.browser.open("about:blank")
        self.browser.requests.clear()
        self.browser.open(self.server.address + rest, **viewport)
        self.wait()

    def asked(self):
        return [url for url in self.browser.requests if not url.startswith(("data:", "blob:", "about:"))]

    def observations(self):
        return len([url for url in self.asked() if url.endswith("/observe")])

    def wait(self):
        self.browser.wait_for_answer()

    def status(self):
        return self.texts(".live [role=status]")[0]

    def values(self, selector):
        return self.js(f"[...document.querySelectorAll({selector!r})].map(e => e.value)")

    def type(self, selector, text, wait=True):
        """What is in a field makes room for what the keys write."""
        self.js(f"(field => {{ field.focus(); field.select(); }})(document.querySelector({selector!r}))")
        self.browser.send("Input.insertText", text=text)
        if wait:
            self.wait()

    def choose(self, name, option):
        self.js(f"""(list => {{
            list.value = {option!r};
            list.dispatchEvent(new Event("change"));
        }})(document.getElementById("choose-{name}"))""")
        self.wait()

    def pictures(self):
        return self.js("[...document.querySelectorAll('figure:not([hidden]) .body')].map(e => e.innerHTML)")

    def assert_numbers(self, data, text=0):
        """Holds the first column of each run's table by layer against the route's answer."""
        for side, run in enumerate(runs_of(data["texts"][text])):
            views = run["views"]
            first = next(view for view in data["views"] if view["rows"] == "layers" and view["name"] in views)
            want = {row["layer"]: row[first["columns"][0]["key"]] for row in views[first["name"]]}
            rows = self.js(f"[...document.querySelectorAll('table[data-run=\"{side}\"][data-view=\"{first['name']}\"] tbody tr')]"
                           ".map(row => [...row.cells].slice(0, 2).map(cell => cell.textContent))")
            self.assertEqual([shown[0] for shown in rows], [str(layer or "embed") for layer in want])
            for shown, number in zip(rows, want.values()):
                self.assertAlmostEqual(value(shown[1]), number, delta=0.00051)

    def test_it_opens_with_two_orders_of_the_same_words(self):
        self.open("/")
        pair = self.values(".live textarea")
        self.assertNotEqual(*pair)
        self.assertEqual(*(sorted(text.split()) for text in pair))
        self.assertIn("both texts are the same to this model", self.texts(".lead")[0])
        titles = self.texts("#turns .panels > svg text[font-weight]")
        self.assertEqual(titles[:2], [f"“{text}”" for text in pair])
        self.assert_numbers(self.server.observe(texts=pair))

    def test_what_is_typed_is_drawn_with_the_numbers_of_the_route(self):
        before = self.pictures()
        self.assertEqual(self.texts("h1"), ["“Tom bit a dog.”"])
        self.type("#text-1", SENTENCE)
        self.assertEqual(self.texts("h1"), [f"“{SENTENCE}”"])
        self.assertTrue(all(a != b for a, b in zip(before, self.pictures(), strict=True)))
        data = self.server.observe(texts=[SENTENCE])
        self.assert_numbers(data)
        run, = runs_of(data["texts"][0])
        self.assertEqual(self.texts(".strip .piece"), run["pieces"])
        self.assertEqual(self.status(), f"Shown: {len(run['ids'])} tokens.")
        self.choose("Model", "learned")
        self.assert_numbers(self.server.observe(texts=[SENTENCE], model="learned"))
        self.choose("Positions", "none")
        self.assertIn("positions none", self.texts(".facts")[0])

    def test_the_server_is_asked_once_a_pause(self):
        before = self.observations()
        # In one message: a busy machine may take longer than a pause between two.
        self.js(f"""(field => {{
            for (let n = 1; n < 8; ++n) {{
                field.value = {SENTENCE!r}.slice(0, n);
                field.dispatchEvent(new Event("input", {{bubbles: true}}));
            }}
        }})(document.querySelector("#text-1"))""")
        self.wait()
        self.assertEqual(self.observations(), before + 1)
        self.assertEqual(self.texts("h1"), [f"“{SENTENCE[:7]}”"])

    def test_the_chosen_head_stays_chosen(self):
        self.js("document.querySelector('#overview [data-layer=\"3\"][data-head=\"2\"]').click()")
        self.type("#text-1", SENTENCE)
        self.assertEqual(self.values("#choose-Layer, #choose-Head"), ["3", "2"])
        self.assertIn("layer 3, head 2", self.texts("#pattern svg")[0])
        self.assertEqual(self.js("document.activeElement.id"), "text-1")

    def test_of_two_texts_the_one_that_is_typed_is_shown(self):
        self.type("#text-2", SENTENCE)
        self.assertEqual(self.texts("h1"), [f"“{SENTENCE}”"])
        self.assertEqual(len(self.texts("#choose-Text option")), 2)
        self.assert_numbers(self.server.observe(texts=["Tom bit a dog.", SENTENCE]), text=1)
        self.type("#text-1", "A dog bit Tom.")
        self.assertEqual(self.texts("h1"), ["“A dog bit Tom.”"])
        self.type("#text-1", "")
        self.assertEqual(self.texts("h1"), [f"“{SENTENCE}”"])
        self.type("#text-2", "")
        self.assertEqual(self.status(), "Type a sentence.")

    def test_interventions_show_before_and_after(self):
        edits, cuts = "fieldset:nth-of-type(1)", "fieldset:nth-of-type(2)"
        self.assertIn("reverse", self.values(f"{edits} option"))
        self.assertEqual(self.values(f"{cuts} option")[:3], ["1.attn", "1.mlp", "1"])
        self.type(f"{edits} input", "reverse")
        self.type(f"{edits} input:nth-of-type(2)", "scale=0.5")
        self.type(f"{cuts} input", "2.attn")
        self.assertEqual(self.values(f"{edits} input"), ["reverse", "scale=0.5", ""])
        data = self.server.observe(texts=["Tom bit a dog."], edits=["reverse", "scale=0.5"],
                                   cut_residuals=["2.attn"])
        self.assertEqual([run["label"] for run in data["texts"][0]["runs"]], ["before", "after"])
        self.assert_numbers(data)
        self.assertEqual(self.js("document.querySelector('#moved').hidden"), False)
        for number in (3, 2, 1):
            self.type(f"{edits} input:nth-of-type({number})", "")
        self.type(f"{cuts} input", "")
        self.assertEqual(self.values(f"{edits} input"), [""])
        self.assertEqual(self.js("document.querySelector('#moved').hidden"), True)

    def test_two_models_and_two_kinds_of_positions_stand_side_by_side(self):
        self.assertEqual(self.js("document.getElementById('choose-Its-positions').checkVisibility()"), False)
        self.choose("Beside", "learned")
        data = self.server.observe(texts=["Tom bit a dog."], beside="learned")
        self.assertEqual([run["label"] for run in data["texts"][0]["runs"]], ["sinusoidal", "learned"])
        self.assert_numbers(data)
        self.assertEqual(self.js("document.querySelector('fieldset').hidden"), True, "one thing at a time")
        self.expected_problems = ["422"]
        self.choose("Beside", "sinusoidal")
        self.assertIn("the same model with the same positions", self.status())
        self.choose("Its-positions", "none")
        self.type("#text-1", "a dog bit Tom.")
        self.type("#text-2", "Tom bit a dog.")
        data = self.server.observe(texts=["a dog bit Tom.", "Tom bit a dog."], beside_positions="none")
        self.assert_numbers(data, text=1)
        with_positions, without = data["cosines"]
        self.assertAlmostEqual(without, 1, delta=1e-5)
        self.assertIn(f"vectors: {with_positions:.3f} (sinusoidal), 1.000 (none).", self.status())
        shown = self.values(".live select"), self.texts("h1"), self.status()
        self.open(self.js("location.pathname + location.hash"))
        self.assertEqual((self.values(".live select"), self.texts("h1"), self.status()), shown)

    def test_every_example_is_an_address_that_shows_something(self):
        links = self.js("document.querySelectorAll('.examples a').length")
        self.assertGreater(links, 3)
        for link in range(links):
            before = self.observations()
            self.js(f"document.querySelectorAll('.examples a')[{link}].click()")
            self.js("new Promise(done => setTimeout(done, 50))")
            self.wait()
            self.assertEqual(self.observations(), before + 1)
            self.assertIn("Shown: ", self.status())

    def test_an_address_that_names_what_is_not_there_is_wrong(self):
        for rest, said in (("model=bert", "model “bert”; this server has sinusoidal, learned"),
                           ("beside=bert", "model “bert”"), ("text=Tom&sentence=Tom", "names “sentence”")):
            self.open(f"/#{rest}")
            self.assertIn(said, self.status())
            self.assertEqual(self.observations(), 0)
        self.expected_problems = ["422"]
        self.open("/#text=Tom&positions=left")
        self.assertIn("'left' names no positions", self.status())
        self.type("#text-1", "Tim")
        self.choose("Positions", "own")
        self.assertEqual(self.texts("h1"), ["“Tim”"])

    def test_the_address_holds_it_all(self):
        text = "50 % of “dogs” & cats + 1 # bit\nTom?"
        self.type("#text-1", text, wait=False)
        self.type("#text-2", SENTENCE, wait=False)
        self.choose("Model", "learned")
        self.choose("Positions", "sinusoidal:t2t")
        self.type("fieldset:nth-of-type(1) input", "swap=2,3", wait=False)
        self.type("fieldset:nth-of-type(2) input", "1.mlp")
        self.js("document.querySelector('#overview [data-layer=\"4\"][data-head=\"3\"]').click()")
        shown = self.values(".live :is(textarea, select, input)"), self.pictures(), self.texts("h1")
        rest = self.js("location.pathname + location.hash")
        self.open()
        self.assertNotEqual(self.pictures(), shown[1])
        self.open(rest)
        self.assertEqual((self.values(".live :is(textarea, select, input)"), self.pictures(),
                          self.texts("h1")), shown)
        self.js("location.hash = '#text=A%20dog.&model=sinusoidal&head=99.99'")
        self.js("new Promise(done => setTimeout(done, 50))")
        self.wait()
        self.assertEqual(self.texts("h1"), ["“A dog.”"])
        self.assertEqual(self.values("#choose-Layer, #choose-Head"), ["6", "4"])

    def test_a_mistake_is_said_and_the_figures_stay(self):
        self.expected_problems = ["422"]
        before = self.pictures()
        self.type("fieldset:nth-of-type(1) input", "turn")
        self.assertIn("'turn' is no edit of positions", self.status())
        self.assertEqual(self.js("getComputedStyle(document.querySelector('.wrong')).color"), "rgb(176, 74, 74)")
        self.assertEqual(self.pictures(), before)
        self.type("fieldset:nth-of-type(1) input", "zero")
        self.assertEqual(self.status(), "Shown: 7 tokens.")
        self.assertEqual(self.texts(".wrong"), [])

    def test_a_server_that_has_gone_and_a_text_that_is_long(self):
        self.expected_problems = ["ERR_CONNECTION_REFUSED"]
        self.type("#text-1", "dog " * 150)
        self.assertEqual(self.status(), "Shown: the first 128 of 152 tokens.")
        with Server(INFER, "-m", "none") as other:
            self.browser.open(other.address)
            self.wait()
            before = self.texts("h1")
        self.type("#text-1", "Tom")
        self.assertEqual(self.status(), "The server does not answer.")
        self.assertEqual(self.texts("h1"), before)
        self.browser.requests[:] = [url for url in self.browser.requests if not url.startswith(other.address)]

    def test_no_text_can_break_out(self):
        for text in ("</script><img src=x onerror=alert(1)>", "<b>\"'&amp;", "\u202edog"):
            self.type("#text-1", text)
            self.assertEqual(self.texts("h1"), [f"“{text}”"])
            self.assertEqual(self.js("document.querySelectorAll('main b, main img').length"), 0)

    def test_a_key_is_asked_for(self):
        self.expected_problems = ["401"]
        with tempfile.NamedTemporaryFile("w", suffix=".keys") as keys:
            keys.write("open sesame\n")
            keys.flush()
            guarded = Server(INFER, "-m", "sinusoidal", "--api-key-file", keys.name)
        with guarded:
            self.browser.open(guarded.address)
            self.wait()
            self.assertEqual(self.status(), "This server asks for a key.")
            self.type("#key", "sesame")
            self.assertIn("The key is wrong.", self.status())
            self.assertEqual(self.texts("h1"), [])
            self.type("#key", "open sesame")
            self.assertEqual(len(self.texts("h1")), 1)
            self.assertNotIn("sesame", self.js("location.href"))
        self.browser.requests[:] = [url for url in self.browser.requests if not url.startswith(guarded.address)]

    def test_dark_and_light_differ_and_a_telephone_has_room(self):
        light = self.pictures(), self.js("getComputedStyle(document.querySelector('.live')).backgroundColor")
        for width in (320, 390):
            self.open(f"/#text={'dog%20' * 16}&text=Tom&edit=reverse&edit=scale%3D0.5", width=width, dark=True)
            self.assertEqual(self.js("document.documentElement.scrollWidth"), width)
            self.assertEqual(self.js(BEYOND), [])
        self.open(dark=True)
        self.assertNotEqual(self.js("getComputedStyle(document.querySelector('.live')).backgroundColor"), light[1])
        self.assertNotEqual(self.pictures(), light[0])

    def test_the_keys_reach_every_field_in_order(self):
        self.js("document.getElementById('text-1').focus()")
        reached = []
        for _ in range(7):
            reached.append(self.js("document.activeElement.getAttribute('aria-label') ?? document.activeElement.id"))
            self.browser.press("Tab")
        self.assertEqual(reached, ["text-1", "text-2", "choose-Model", "choose-Positions", "choose-Beside",
                                   "Edits of the positions, number 1", "Cut residual connections, number 1"])
        unnamed = self.js("[...document.querySelectorAll('.live :is(textarea, select, input)')].filter(field => "
                          "field.labels.length === 0 && !field.ariaLabel).length")
        self.assertEqual(unnamed, 0)

    def test_what_is_jumped_to_lies_below_the_form(self):
        self.open("/#text=Tom%20bit%20a%20dog.&edit=reverse&edit=scale=0.5&edit=shift=3&edit=repeat&cut=1.attn&cut=1.mlp")
        self.js("document.documentElement.style.scrollBehavior = 'auto'")
        for i in range(self.js("document.querySelectorAll('.contents a:not([hidden])').length") - 1):
            self.js(f"document.querySelectorAll('.contents a:not([hidden])')[{i}].click()")
            self.browser.wait_for_frame()
            beside = self.js("""(link => document.querySelector(link.hash).getBoundingClientRect().top -
                document.querySelector(".live").getBoundingClientRect().bottom)
                (document.querySelectorAll('.contents a:not([hidden])')[%d])""" % i)
            self.assertGreaterEqual(beside, 0, i)
            self.assertLess(beside, 30, i)


if __name__ == "__main__":
    INFER = str(pathlib.Path(sys.argv.pop(1)).resolve())
    if not browser.program():
        print(f"skipped: none of {', '.join(browser.PROGRAMS)} is here (./dev need chromium)", file=sys.stderr)
        sys.exit(77)
    unittest.main()
