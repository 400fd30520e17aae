"""The pages of docs/tutorials, as a reader would follow them: files written, commands run in order, what they print
compared. `...` in what a page shows stands for anything; commands that end in `# fails` must."""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from program import TRELLIS

SOURCE = pathlib.Path(os.environ["TRELLIS_SOURCE_DIR"])
BUILD = pathlib.Path(os.environ["TRELLIS_BINARY_DIR"])
PAGES = sorted((SOURCE / "docs" / "tutorials").glob("[a-z]*.md"))


def steps(text):
    """In order: ("file", name, text) for each block after a line "`name`:", and ("run", command, lines shown)."""
    for block in re.finditer(r"(?:^`([\w.]+)`:\n\n)?((?:^    .*\n|^\n(?=    ))+)", text, re.M):
        body = "".join(line[4:] or "\n" for line in block[2].splitlines(True))
        file, prompt, commands = body.partition("$ ") if body.startswith("$ ") else body.partition("\n$ ")
        if block[1]:
            yield "file", block[1], file.strip("\n") + "\n"
        for command in re.finditer(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", prompt.strip("\n") + commands, re.M):
            yield "run", command[1], command[2].rstrip("\n").splitlines()


def pattern(lines):
    """What is printed must match it as a whole; lines without any text are not compared."""
    whole = ""
    for line in lines:
        whole += r"(?:.*\n)*" if line == "..." else ".*".join(map(re.escape, line.rstrip().split("..."))) + r" *\n"
    return whole


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
        folder = self.place / page.stem
        folder.mkdir()
        ran = 0
        for kind, what, shown in steps(page.read_text()):
            with self.subTest(page=page.name, step=what):
                if kind == "file":
                    (folder / what).write_text(shown)
                    continue
                said = subprocess.run(["bash", "-c", what], cwd=folder, env=self.environment, capture_output=True, text=True,
                                      timeout=300)
                everything = said.stdout + said.stderr
                self.assertEqual(said.returncode != 0, what.endswith("# fails"), everything)
                if shown:
                    self.assertRegex(everything, rf"\A{pattern(shown)}\Z")
                ran += 1
        self.assertGreater(ran, 2)

    def test_every_page_is_listed(self):
        listed = (SOURCE / "docs" / "tutorials" / "README.md").read_text()
        self.assertGreaterEqual(len(PAGES), 7)
        for page in PAGES:
            self.assertIn(f"({page.name})", listed)


for one in PAGES:
    setattr(Tutorials, f"test_{one.stem}", lambda self, page=one: self.follow(page))

if __name__ == "__main__":
    unittest.main()
