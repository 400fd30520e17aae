"""The HTML report in headless Chromium: it draws, points, zooms, folds, and complains of nothing. Skipped without one."""
import os
import pathlib
import subprocess
import tempfile
import unittest

import browser

TESTS = pathlib.Path(os.environ["TRELLIS_BINARY_DIR"]) / "tests" / "test_sim"

# How many different colours the canvas shows, right of the names.
COLORS = """(() => {
  const part = pen.getImageData(gutter, 0, canvas.width - gutter, canvas.height).data, seen = new Set();
  for (let i = 0; i < part.length; i += 4) seen.add(part[i] << 16 | part[i + 1] << 8 | part[i + 2]);
  return seen.size;
})()"""


@unittest.skipUnless(browser.program(), "no Chromium (apt: chromium)")
class Report(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        subprocess.run([TESTS, "--gtest_filter=Report.Writes*"], check=True, timeout=120, stdout=subprocess.DEVNULL,
                       env={**os.environ, "TRELLIS_REPORTS": cls.folder.name})

    def page(self, name, **more):
        page = browser.Page(**more)
        self.addCleanup(page.__exit__)
        page.open((pathlib.Path(self.folder.name) / name).as_uri())
        page.value("const frame = () => new Promise(requestAnimationFrame); frame().then(frame)")
        self.addCleanup(lambda: self.assertEqual(page.complaints, []))
        return page

    def test_it_draws_in_light_and_dark(self):
        papers = set()
        for dark in (False, True):
            page = self.page("report_example.html", dark=dark)
            self.assertGreater(page.value(COLORS), 8)
            papers.add(page.value("getComputedStyle(document.body).backgroundColor"))
            self.assertEqual(page.value("document.querySelectorAll('#roofline circle').length"), 2)
            self.assertEqual(page.value("document.querySelectorAll('#tracks tr').length"), 5)
            self.assertIn("links, 12 -> 13 waits for its peer", page.value("byId('path').innerText"))
            self.assertIsNone(page.value("byId('merged')"))
        self.assertEqual(len(papers), 2)

    def test_a_tooltip_tells_what_is_there(self):
        page = self.page("report_example.html")
        where = page.value("place(2)")
        page.mouse("mouseMoved", **where)
        self.assertFalse(page.value("tip.hidden"))
        told = page.value("tip.innerText").split("\n")
        self.assertEqual(told, ["matmul", "on\tcore 0, tensor", "start\t3.1005 us", "duration\t1.8995 us",
                                "waited for\tsemaphore, 3.1005 us", "after\tload B (core 0, dma queue 0 (2))",
                                "flops\t200 MFLOP, 105.3 TFLOP/s", "\ton the critical path"])
        page.mouse("mouseMoved", x=where["x"], y=5)
        self.assertTrue(page.value("tip.hidden"))
        page.click(**where)
        self.assertEqual(page.value("selected"), [1, 2])

    def test_it_zooms_moves_folds_and_finds(self):
        page = self.page("report_example.html")
        where = page.value("place(6)")
        for _ in range(4):
            page.mouse("mouseWheel", **where, deltaX=0, deltaY=-200, modifiers=2)
        after = page.value("place(6)")
        self.assertLess(page.value("view.to - view.from"), 3e6)
        self.assertLess(abs(after["x"] - where["x"]), 80)
        page.key("a")
        self.assertGreater(page.value("place(6)")["x"], after["x"])
        page.key("0")
        self.assertEqual(page.value("[view.from, view.to]"), [0, 1e7])
        page.click(**page.value("(b => ({x: b.left + 20, y: b.top + ruler + 8}))(canvas.getBoundingClientRect())"))
        self.assertEqual(page.value("lines.filter(l => l.kind === 'row').length"), 1)
        page.value("byId('find').value = 'MATMUL', byId('find').oninput()")
        self.assertEqual(page.value("byId('found').textContent"), "2 blocks")

    def test_of_many_rows_each_group_is_a_line_at_first(self):
        page = self.page("report_ranks.html")
        self.assertEqual(page.value("[folded.has(0), folded.has(data.groups.length - 1)]"), [False, True])
        self.assertEqual(page.value("document.querySelectorAll('dd small').length"), 2)
        self.assertIsNone(page.value("byId('path')"))
        self.assertGreater(page.value(COLORS), 2)  # what a folded group's rows do is seen on its line
        self.assertEqual(page.value("byId('fold').textContent"), "unfold all")
        self.assertIn("the critical path", page.value("byId('legend').innerText"))
        self.assertEqual(page.value("lineOfRow.size"), page.value("data.rows.length"))

    def test_of_200000_spans_no_more_is_drawn_than_the_pixels_can_show(self):
        page = self.page("report_200000.html")
        self.assertEqual(page.value("blocks"), 200000)
        self.assertGreater(page.value(COLORS), 8)
        page.value("var drawn = 0, fill = pen.fillRect.bind(pen); pen.fillRect = (...a) => { drawn++; fill(...a); }; 0")
        for zoom in (1, 1e2, 1e4):
            count, pixels = page.value(f"show(0, whole / {zoom}), drawn = 0, draw(), [drawn, lines.length * wide]")
            self.assertGreater(count, 0)
            self.assertLess(count, 2 * pixels, f"zoom {zoom}")  # a third of the spans

    def test_it_says_what_is_merged(self):
        page = self.page("report_merged.html")
        self.assertLessEqual(page.value("blocks"), 20000)
        told = page.value("byId('merged').innerText")
        drawn = page.value("data.merged.reduce((sum, [b, count]) => sum + count, 0)")
        self.assertIn(f"{drawn} of 300000 spans", told)
        block = page.value("data.merged[0][0]")
        page.value(f"show(begin[{block}], end[{block}])")
        page.mouse("mouseMoved", **page.value(f"place({block})"))
        self.assertIn("spans", page.value("tip.innerText"))
        self.assertIn("busy", page.value("tip.innerText"))


if __name__ == "__main__":
    unittest.main()
