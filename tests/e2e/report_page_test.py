#!/usr/bin/env python3
"""The page that `octet bench serve --html` writes, in headless Chromium.
   tests/e2e/report_page_test.py PROGRAM [unittest's options]"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from browser import PATIENCE, Browser  # noqa: E402

PROGRAM = "build/octet"
CHARTS = ["requests", "output", "ttft", "tpot", "itl", "quadrant"]
# Pixels that are painted, and how many colours they have.
PAINTED = """(canvas) => {
  const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  const colours = new Set();
  let painted = 0;
  for (let i = 0; i < data.length; i += 4) {
    if (data[i + 3] === 0) continue;
    ++painted;
    colours.add(data[i] << 16 | data[i + 1] << 8 | data[i + 2]);
  }
  return [painted, colours.size];
}"""


class ReportPage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="octet-report-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        pulled = subprocess.run([PROGRAM, "pull", "smollm2"], stdout=subprocess.PIPE, text=True, check=True)
        model = pulled.stdout.splitlines()[-1]
        server = subprocess.Popen([PROGRAM, "serve", model, "--port", "0", "--max-model-len", "512"],
                                  stdout=subprocess.PIPE, text=True)
        try:
            cls.url = re.search(r"http://127\.0\.0\.1:\d+", server.stdout.readline()).group(0)
            cls.page = cls.measure("two", "--base-url", cls.url, "--base-url", cls.url, "--concurrency", "1,2,4",
                                   "--repeats", "2", "--slo", "ttft:p90=100s,tpot:p90=100s", "--tokenizer", model)
            cls.hostile = cls.measure("hostile", "--base-url", cls.url, "--max-concurrency", "2", "--label",
                                      "</script><b id=mark>&lt;", "--tokenizer", model)
        finally:
            server.terminate()
            server.stdout.close()
            server.wait(timeout=PATIENCE)

    @classmethod
    def measure(cls, name, *flags):
        page, report = cls.folder / f"{name}.html", cls.folder / f"{name}.json"
        subprocess.run([PROGRAM, "bench", "serve", "--ready-check-timeout-sec", str(PATIENCE), "--num-prompts", "4",
                        "--input-len", "16", "--output-len", "6", "--disable-tqdm", "--html", page, "--json", report,
                        *flags], check=True, stdout=subprocess.DEVNULL)
        return page

    def setUp(self):
        self.browser = Browser()
        self.addCleanup(self.browser.close)
        self.browser.size(1200, 900)

    def open(self, page):
        self.browser.open(page.as_uri())
        self.browser.wait("document.querySelector('#legend canvas') !== null")

    def painted(self, canvas):
        return self.browser.evaluate(f"({PAINTED})(document.querySelector({json.dumps(canvas)}))")

    def all_texts(self, selector):
        return self.browser.evaluate(f"[...document.querySelectorAll({json.dumps(selector)})].map((e) => e.textContent)")

    def test_every_chart_is_drawn_and_nothing_is_fetched(self):
        self.open(self.page)
        for name in CHARTS:
            pixels, colours = self.painted(f"#{name}")
            self.assertGreater(pixels, 1000, name)
            self.assertGreater(colours, 2, name)
        self.assertGreater(self.painted("#lines canvas")[0], 1000)
        self.assertEqual(self.browser.complaints(), [])
        self.assertEqual([url for url in self.browser.requested() if not url.startswith("data:")],
                         [self.page.as_uri()])

    def test_a_table_with_the_figures_of_the_run_stands_behind_each_chart(self):
        self.open(self.page)
        report = json.loads((self.folder / "two.json").read_text())
        self.assertEqual(len(report["targets"]), 2)
        for name in CHARTS:
            chart = f"document.getElementById('{name}')"
            self.assertEqual(self.browser.evaluate(f"{chart}.getAttribute('role')"), "img")
            self.assertIn(" at load 4.", self.browser.evaluate(f"{chart}.getAttribute('aria-label')"))
            rows = self.browser.evaluate(f"{chart}.closest('section').querySelectorAll('tbody tr').length")
            self.assertEqual(rows, 6, name)  # three loads of two targets
        for row in self.all_texts("#requests ~ *, section:has(#requests) tbody tr"):
            self.assertRegex(row, r"\d")

    def test_time_line_follows_the_load_that_is_chosen(self):
        self.open(self.page)
        self.assertEqual(self.all_texts("#load option"), ["1", "2", "4"])
        self.assertEqual(self.browser.evaluate("document.getElementById('load').value"), "4")
        self.browser.evaluate("{const load = document.getElementById('load'); load.value = '1';"
                              "load.dispatchEvent(new Event('change'));}")
        labels = self.browser.evaluate(
            "[...document.querySelectorAll('#lines canvas')].map((e) => e.getAttribute('aria-label'))")
        self.assertEqual(len(labels), 2)
        for label in labels:
            self.assertRegex(label, r"^Time line of 4 requests of http.* at load 1\.$")

    def test_dark_and_light_are_both_readable(self):
        for scheme, ink_is_light in (("light", False), ("dark", True)):
            self.browser.prefer(prefers_color_scheme=scheme)
            self.open(self.page)
            ink, back = self.browser.evaluate(
                "[getComputedStyle(document.body).color, getComputedStyle(document.body).backgroundColor]"
                ".map((text) => text.match(/\\d+/g).slice(0, 3).reduce((sum, x) => sum + Number(x), 0) / 3)")
            self.assertEqual(ink > back, ink_is_light)
            self.assertGreater(abs(ink - back), 150)
            self.assertGreater(self.painted("#ttft")[0], 1000)

    def test_printing_opens_the_tables(self):
        self.open(self.page)
        self.assertEqual(self.browser.evaluate("document.querySelectorAll('details[open]').length"), 0)
        self.browser.evaluate("dispatchEvent(new Event('beforeprint'))")
        self.assertEqual(self.browser.evaluate("document.querySelectorAll('details:not([open])').length"), 0)
        self.browser.evaluate("dispatchEvent(new Event('afterprint'))")
        self.assertEqual(self.browser.evaluate("document.querySelectorAll('details[open]').length"), 0)
        self.assertGreater(len(self.browser.call("Page.printToPDF", printBackground=False)["data"]), 20000)
        self.assertEqual(self.browser.complaints(), [])

    def test_fits_a_narrow_window(self):
        self.browser.size(360, 800, scale=2, mobile=True)
        self.open(self.page)
        self.assertLessEqual(self.browser.evaluate("document.documentElement.scrollWidth"), 360)

    def test_a_name_is_text_and_no_markup(self):
        self.open(self.hostile)
        self.assertIsNone(self.browser.evaluate("document.getElementById('mark')"))
        self.assertEqual(self.all_texts(".answer h2"), ["</script><b id=mark>&lt;"])
        self.assertEqual(self.browser.complaints(), [])
        self.assertGreater(self.painted("#ttft")[0], 1000)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        PROGRAM = sys.argv.pop(1)
    unittest.main()
