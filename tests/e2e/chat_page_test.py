#!/usr/bin/env python3
"""The chat page of `octet serve` in headless Chromium, with the default model.
   tests/e2e/chat_page_test.py PROGRAM [unittest's options]"""
import json
import os
import re
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from browser import PATIENCE, Browser  # noqa: E402

PROGRAM = "build/octet"
KEY = "page-key"


class Server:
    def __init__(self, model, *more):
        command = [PROGRAM, "serve", model, "--port", "0", "--served-model-name", "smollm2", "--max-model-len", "2048",
                   "--api-key", KEY, *more]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:\d+", line)
        if not found:
            raise RuntimeError(f"the server did not start: {line!r}")
        self.url = found.group(0)

    def stop(self):
        self.process.terminate()
        self.process.stdout.close()
        return self.process.wait(timeout=PATIENCE)


def js(value):
    return json.dumps(value)


class ChatPage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        pulled = subprocess.run([PROGRAM, "pull", "smollm2"], stdout=subprocess.PIPE, text=True, check=True)
        cls.server = Server(pulled.stdout.splitlines()[-1])

    @classmethod
    def tearDownClass(cls):
        status = cls.server.stop()
        if status != 0:
            raise AssertionError(f"the server ended with status {status}")

    def setUp(self):
        self.browser = Browser()
        self.addCleanup(self.browser.close)
        self.browser.size(1100, 800)

    def element(self, name, what):
        return self.browser.evaluate(f"document.getElementById({js(name)}).{what}")

    def wait(self, expression):
        return self.browser.wait(expression)

    def open(self, tokens=24):
        """The page with the key and greedy settings typed in."""
        self.browser.open(self.server.url + "/")
        self.wait("document.getElementById('settings').open")  # it asks for the key by itself
        self.wait("document.activeElement.id === 'api-key'")
        self.browser.type(KEY)
        for name, value in (("temperature", "0"), ("max-tokens", str(tokens))):
            self.element(name, "focus()")
            self.browser.type(value)
        self.element("close-settings", "click()")
        self.wait("document.getElementById('model-name').textContent === 'smollm2'")

    def answers(self):
        return self.browser.evaluate(
            "[...document.querySelectorAll('article.assistant .text')].map((node) => node.innerText)")

    def ask(self, text):
        self.element("prompt", "focus()")
        self.browser.type(text)
        self.browser.press("Enter")

    def settled(self, count):
        self.wait(f"document.querySelectorAll('article.assistant .stats').length === {count}"
                  " && !document.getElementById('send').hidden")

    def test_answers_stream_and_the_conversation_goes_on(self):
        self.open()
        self.ask("What is the capital of France?")
        self.settled(1)
        self.assertIn("Paris", self.answers()[0])
        stats = self.browser.evaluate("document.querySelector('.stats').textContent")
        self.assertRegex(stats, r"^TTFT \d+\.\d\d s · \d+\.\d tokens/s · \d+ tokens")
        self.ask("Say that again.")
        self.settled(2)
        sent = [json.loads(event["params"]["request"]["postData"]) for event in self.browser.events
                if event["method"] == "Network.requestWillBeSent" and event["params"]["request"]["method"] == "POST"]
        self.assertEqual([m["role"] for m in sent[-1]["messages"]], ["user", "assistant", "user"])
        self.assertEqual((sent[-1]["temperature"], sent[-1]["max_tokens"], sent[-1]["stream"]), (0, 24, True))
        complaints = [text for text in self.browser.complaints() if "401" not in text]
        self.assertEqual(complaints, [])
        for url in self.browser.requested():
            self.assertTrue(url.startswith((self.server.url, "data:", "about:")), url)

    def test_stop_keeps_what_came(self):
        self.open(tokens=1500)
        self.ask("Write a short Python function that adds two numbers, with an example.")
        self.wait("document.querySelector('article.assistant .text').innerText.length > 10")
        self.assertTrue(self.element("send", "hidden"))
        self.browser.press("Escape")
        self.settled(1)
        self.assertIn("stopped", self.browser.evaluate("document.querySelector('.stats').textContent"))
        self.assertGreater(len(self.answers()[0]), 10)
        self.ask("Thanks.")
        self.wait("document.querySelectorAll('article.assistant').length === 2")
        self.element("stop", "click()")
        self.settled(2)

    def test_new_chat_forgets(self):
        self.open(tokens=1500)
        self.ask("Hello")
        self.wait("document.querySelectorAll('article').length === 2")
        self.element("new-chat", "click()")
        self.assertEqual(self.browser.evaluate("document.querySelectorAll('article').length"), 0)
        self.assertFalse(self.element("send", "hidden"))
        self.element("max-tokens", "value = '8'")
        self.ask("Hello again")
        self.settled(1)
        self.assertEqual(len(self.answers()), 1)

    def test_a_wrong_key_is_asked_for_again(self):
        self.browser.open(self.server.url + "/")
        self.wait("document.activeElement.id === 'api-key'")
        self.wait("document.getElementById('settings-problem').textContent.includes('key')")
        self.assertEqual(self.browser.evaluate("sessionStorage.length"), 0)
        self.browser.type(KEY)
        self.browser.press("Enter")
        self.wait("!document.getElementById('settings').open")
        self.wait("document.getElementById('model-name').textContent === 'smollm2'")
        self.assertEqual(self.browser.evaluate("sessionStorage.getItem('octet.api-key')"), KEY)
        self.assertNotIn(KEY, self.browser.evaluate("JSON.stringify(localStorage)"))

    def test_errors_are_shown(self):
        self.open(tokens=1)
        self.element("max-tokens", "value = '100000'")
        self.ask("Hello")
        self.wait("document.querySelector('.problem') !== null")
        self.assertIn("100000", self.browser.evaluate("document.querySelector('.problem').textContent"))
        self.assertEqual(self.browser.evaluate("document.querySelector('.problem').getAttribute('role')"), "alert")

    def test_settings_are_kept(self):
        self.open()
        self.element("open-settings", "click()")
        self.element("system", "focus()")
        self.browser.type("Answer in one word.")
        self.element("close-settings", "click()")
        self.wait("localStorage.getItem('octet.system') === 'Answer in one word.'")
        self.browser.open(self.server.url + "/")
        self.assertEqual(self.element("system", "value"), "Answer in one word.")
        self.assertEqual(self.element("max-tokens", "value"), "24")
        self.assertEqual(self.element("api-key", "value"), KEY)  # the same tab

    def test_fits_a_phone_in_both_colours(self):
        self.open()
        self.browser.size(360, 740, 2, mobile=True)
        self.ask("Write a long line of Python code.")
        self.settled(1)
        backs = []
        for colours in ("light", "dark"):
            self.browser.prefer(prefers_color_scheme=colours)
            backs.append(self.browser.evaluate("getComputedStyle(document.body).backgroundColor"))
            self.assertLessEqual(self.browser.evaluate("document.documentElement.scrollWidth"), 360)
            for name in ("prompt", "send", "open-settings"):
                box = self.browser.evaluate(
                    f"(({{left, right, top, bottom, height}}) => ({{left, right, top, bottom, height}}))"
                    f"(document.getElementById({js(name)}).getBoundingClientRect())")
                self.assertTrue(0 <= box["left"] and box["right"] <= 360 and 0 <= box["top"] and box["bottom"] <= 740, box)
                self.assertGreaterEqual(box["height"], 36)
        self.assertNotEqual(*backs)

    def test_every_field_has_a_name_and_a_place_in_the_order_of_keys(self):
        self.open()
        self.element("open-settings", "click()")
        tree = self.browser.call("Accessibility.getFullAXTree")["nodes"]
        fields = {node["role"]["value"]: node.get("name", {}).get("value") for node in tree
                  if node.get("role", {}).get("value") in ("textbox", "combobox", "spinbutton", "button", "dialog")}
        self.assertTrue(fields and all(fields.values()), fields)
        seen = []
        for _ in range(6):
            seen.append(self.browser.evaluate("document.activeElement.id"))
            self.browser.press("Tab")
        self.assertEqual(seen, ["model", "system", "temperature", "max-tokens", "api-key", "close-settings"])


class Markdown(unittest.TestCase):
    """What becomes of a model's text, the hostile kind included."""

    @classmethod
    def setUpClass(cls):
        # Only the page is needed; a module's functions are out of reach, so its source is run once more.
        folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../src/octet/server/page")
        with open(os.path.join(folder, "markdown.js")) as file:
            cls.source = file.read()
        cls.browser = Browser()
        cls.browser.evaluate(f"(0, eval)({js(cls.source)})")

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()

    def html(self, text):
        return self.browser.evaluate(
            f"(() => {{ const node = document.createElement('div'); renderMarkdown({js(text)}, node);"
            " return node.innerHTML; })()")

    def test_plain_forms(self):
        for text, html in (
                ("a\n\nb", "<p>a</p><p>b</p>"),
                ("a\nb", "<p>a<br>b</p>"),
                ("# T", "<h3>T</h3>"),
                ("**a** *b* `c*d*`", "<p><strong>a</strong> <em>b</em> <code>c*d*</code></p>"),
                ("2 * 3 * 4 and snake_case_name", "<p>2 * 3 * 4 and snake_case_name</p>"),
                ("- a\n- b\n  - c", "<ul><li>a</li><li>b<ul><li>c</li></ul></li></ul>"),
                ("3. a\n4. b", '<ol start="3"><li>a</li><li>b</li></ol>'),
                ("> q\n> r", "<blockquote><p>q<br>r</p></blockquote>"),
                ("---", "<hr>"),
                ("\\*a\\*", "<p>*a*</p>"),
                ("|a|b|\n|-|-|\n|1|2|", "<table><thead><tr><th>a</th><th>b</th></tr></thead>"
                                        "<tbody><tr><td>1</td><td>2</td></tr></tbody></table>")):
            self.assertEqual(self.html(text), html, text)

    def test_code_blocks_keep_every_character(self):
        code = "if (a < b && c) { **x** }\n\n  # no heading\n<b>"
        for text in (f"```js\n{code}\n```", f"```js\n{code}", f"~~~js\n{code}\n~~~"):
            got = self.browser.evaluate(
                f"(() => {{ const node = document.createElement('div'); renderMarkdown({js(text)}, node);"
                " return [node.querySelector('pre').textContent, node.querySelector('span').textContent]; })()")
            self.assertEqual(got, [code, "js"])

    def test_nothing_becomes_markup(self):
        hostile = ["<script>window.hit=1</script>", "<img src=x onerror='window.hit=1'>", "[a](javascript:window.hit=1)",
                   "[a](JaVaScRiPt:window.hit=1)", "[a](data:text/html,<script>window.hit=1</script>)", "**<svg onload=hit=1>**",
                   "`<b>`", "# <iframe src=x>", "| <b> | c |\n|-|-|\n| <i> | d |", "[<img src=x onerror=hit=1>](https://a.example)",
                   "```\"><script>\n</code><script>window.hit=1</script>\n```", "![x](https://a.example/x.png)"]
        allowed = {"P", "BR", "CODE", "PRE", "DIV", "SPAN", "BUTTON", "STRONG", "EM", "A", "H3", "TABLE", "THEAD", "TBODY", "TR",
                   "TH", "TD"}
        for text in hostile:
            names = self.browser.evaluate(
                f"(() => {{ const node = document.createElement('div'); document.body.append(node);"
                f" renderMarkdown({js(text)}, node);"
                " return [...node.querySelectorAll('*')].map((e) => [e.tagName, e.href ?? '', e.rel ?? '']); })()")
            for name, address, rel in names:
                self.assertIn(name, allowed, text)
                if name == "A":
                    self.assertTrue(address.startswith("https://"), text)
                    self.assertIn("noopener", rel)
        self.assertEqual(self.browser.evaluate("typeof window.hit"), "undefined")

    def test_long_and_broken_text_takes_no_time(self):
        for text in ("*" * 20000, "[" * 20000, "`" * 20001, "**a" * 5000, "> " * 3000, "- " * 3000, "|" * 20000 + "\n|-|-|",
                     "\n".join(" " * i + "- x" for i in range(400)), "```\n" + "x" * 200000):
            self.assertIsInstance(self.html(text), str)


if __name__ == "__main__":
    if len(sys.argv) > 1 and not sys.argv[1].startswith("-"):
        PROGRAM = sys.argv.pop(1)
    unittest.main()
