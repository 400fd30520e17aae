"""Every kind of picture and page: all that is drawn has a colour by a rule that holds for it, on light paper and on dark;
and in headless Chromium, where there is one, the paper is seen in its colour, with words that can be read on it."""
import os
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(__file__))
import browser
import gallery
import style_sheet

PAPER = {False: "#fbfbfa", True: "#16191d"}  # light, dark
PAGES_WITH_PICTURES = {"collective.html", "degraded.html", "pipeline.html", "stages.html"}
DRAWN = {"rect", "circle", "path", "text", "polygon", "ellipse"}

# Words of a picture that cannot be read on the paper below them, or that leave the picture.
WORDS = """(() => {
  const light = color => {
    const [r, g, b] = color.match(/[0-9.]+/g).map(v => v / 255).map(
        v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const wrong = [];
  for (const paper of document.querySelectorAll('svg > .paper')) {
    const picture = paper.ownerSVGElement.getBoundingClientRect();
    for (const text of paper.ownerSVGElement.querySelectorAll('text')) {
      const box = text.getBoundingClientRect();
      if (box.left < picture.left - 1 || box.right > picture.right + 1 || box.top < picture.top - 1 ||
          box.bottom > picture.bottom + 1)
        wrong.push(text.textContent + ': leaves the picture');
      const below = document.elementsFromPoint((box.left + box.right) / 2, (box.top + box.bottom) / 2)
          .find(e => !['text', 'tspan', 'g', 'svg'].includes(e.tagName));
      if (below !== paper) continue;
      const [a, b] = [getComputedStyle(text).fill, getComputedStyle(paper).fill].map(light);
      if ((Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05) < 3) wrong.push(text.textContent + ': cannot be read');
    }
  }
  return wrong;
})()"""


# What a page shows at its width: sentences that are cut, and areas in the other scheme's colour.
AREAS = """(dark => {
  const wrong = [], edge = document.documentElement.clientWidth;
  for (const e of document.querySelectorAll('p, h1, h2, dt, dd, button, label, .hint, #path td, .answer td, .answer th'))
    if (e.getBoundingClientRect().right > edge + 1) wrong.push(e.textContent + ': is cut');
  for (const e of document.querySelectorAll('body, body *')) {
    const box = e.getBoundingClientRect(), color = getComputedStyle(e).backgroundColor.match(/[0-9.]+/g).map(Number);
    if (box.width < 60 || box.height < 20 || color[3] === 0) continue;
    if ((Math.max(...color.slice(0, 3)) < 128) !== dark) wrong.push(e.tagName + ' ' + e.id + ': is ' + color);
  }
  return wrong;
})(%s)"""


class Pictures(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.paths = {name: gallery.make(name, pathlib.Path(cls.folder.name)) for name in gallery.COMMANDS}

    def test_all_that_is_drawn_has_a_colour(self):
        for name, path in self.paths.items():
            document = style_sheet.Document(path.read_text())
            for svg in (e for e in document.root.all() if e.tag == "svg"):
                for dark in (False, True):
                    for element in svg.all():
                        self.assert_coloured(name, document, element, dark)

    def assert_coloured(self, name, document, element, dark):
        about = (name, element.tag, element.attributes)
        if any(above.tag in ("defs", "clippath", "marker", "pattern") for above in element.ancestors()):
            return
        if element.tag in DRAWN:
            self.assertIsNotNone(document.value(element, "fill", dark), about)
        if element.tag == "line":
            self.assertIsNotNone(document.value(element, "stroke", dark), about)
        if element.tag == "path" and document.value(element, "fill", dark) == "none":
            self.assertIsNotNone(document.value(element, "stroke", dark), about)

    def test_every_picture_has_the_same_paper(self):
        for name in gallery.PICTURES:
            document = style_sheet.Document(self.paths[name].read_text())
            for dark, colour in PAPER.items():
                papers = [e for e in document.root.all() if "paper" in e.classes]
                self.assertEqual([document.value(e, "fill", dark) for e in papers], [colour], name)

    def test_a_rule_that_holds_elsewhere_colours_nothing(self):
        text = ('<svg><style>.machine .paper{fill:#fff}@media (prefers-color-scheme:dark){rect{fill:#000}}</style>'
                '<rect class="paper"/><g class="machine"><rect class="paper"/></g></svg>')
        document = style_sheet.Document(text)
        outside, inside = [e for e in document.root.all() if e.tag == "rect"]
        self.assertEqual([document.value(e, "fill") for e in (outside, inside)], [None, "#fff"])
        self.assertEqual([document.value(e, "fill", True) for e in (outside, inside)], ["#000", "#fff"])
        with self.assertRaises(AssertionError):
            self.assert_coloured("", document, outside, False)

    @unittest.skipUnless(browser.program(), "no Chromium (apt: chromium)")
    def test_a_browser_shows_the_paper_and_words_on_it(self):
        for dark, colour in PAPER.items():
            with browser.Page(dark=dark) as page:
                for name, path in self.paths.items():
                    page.open(path.as_uri())
                    self.assertEqual(page.value(WORDS), [], (name, dark))
                    papers = page.value("document.querySelectorAll('svg > .paper').length")
                    self.assertEqual(papers > 0, name in gallery.PICTURES or name in PAGES_WITH_PICTURES, name)
                    for i in range(papers):
                        self.assertEqual(page.pixel(*page.value(CORNER % i)), colour, (name, dark))
                    if name.endswith(".html"):
                        self.assertEqual(page.pixel(2, 2), page.value(BACKGROUND), (name, dark))
                        self.assertEqual(page.value(BACKGROUND) < "#808080", dark, name)
                self.assertEqual(page.complaints, [])

    @unittest.skipUnless(browser.program(), "no Chromium (apt: chromium)")
    def test_pages_fit_screens_of_any_width_in_either_scheme(self):
        for dark in PAPER:
            with browser.Page(dark=dark) as page:
                for width in (420, 1000, 1400):
                    page.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1,
                              mobile=False)
                    for name in (name for name in gallery.COMMANDS if name.endswith(".html")):
                        page.open(self.paths[name].as_uri())
                        self.assertEqual(page.value(AREAS % str(dark).lower()), [], (name, dark, width))


# A place on the paper of the n-th picture, near its corner.
CORNER = """(() => {
  const box = document.querySelectorAll('svg > .paper')[%d].getBoundingClientRect();
  return [box.left + scrollX + 4, box.top + scrollY + 4];
})()"""
BACKGROUND = """'#' + getComputedStyle(document.body).backgroundColor.match(/[0-9]+/g).slice(0, 3)
    .map(v => Number(v).toString(16).padStart(2, '0')).join('')"""

if __name__ == "__main__":
    unittest.main()
