"""The pages of docs/tutorials and docs/howto, as a reader would follow them (followed.py)."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import followed

SOURCE = pathlib.Path(os.environ["TRELLIS_SOURCE_DIR"])
BUILD = pathlib.Path(os.environ["TRELLIS_BINARY_DIR"])
FOLDERS = [SOURCE / "docs" / "tutorials", SOURCE / "docs" / "howto"]
PAGES = sorted(page for folder in FOLDERS for page in folder.glob("[a-z]*.md"))
ELSEWHERE = {"pytorch.md"}  # tests/python/test_torch_examples.py, where torch is


class Tutorials(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.place = pathlib.Path(tempfile.mkdtemp(prefix="tutorials"))
        cls.prefix = cls.place / "trellis"
        ran = subprocess.run(["cmake", "--install", BUILD, "--prefix", cls.prefix], capture_output=True, text=True)
        assert ran.returncode == 0, ran.stderr
        cls.environment = {**os.environ, "PATH": f"{cls.prefix}/bin:{os.environ['PATH']}",
                           "PKG_CONFIG_PATH": f"{cls.prefix}/lib/pkgconfig",
                           "EXAMPLES": f"{cls.prefix}/share/trellis/examples", "CXX": os.environ["CXX"]}

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.place, ignore_errors=True)

    def follow(self, page):
        self.assertGreater(followed.follow(self, page, self.place / page.stem, self.environment), 2)

    def test_every_page_is_listed(self):
        for folder in FOLDERS:
            listed = (folder / "README.md").read_text()
            pages = [page for page in PAGES if page.parent == folder]
            self.assertGreaterEqual(len(pages), 5)
            for page in pages:
                self.assertIn(f"({page.name})", listed)


for one in PAGES:
    if one.name not in ELSEWHERE and "\n    $ " in one.read_text():  # the other pages are for several hosts
        setattr(Tutorials, f"test_{one.stem}", lambda self, page=one: self.follow(page))

if __name__ == "__main__":
    unittest.main()
