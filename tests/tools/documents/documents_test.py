"""What README.md and the pages of docs/ show of commands is what these print, and what they link to is there."""
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

import commands
import program

SOURCE = pathlib.Path(os.environ["TRELLIS_SOURCE_DIR"])
BUILD = pathlib.Path(os.environ["TRELLIS_BINARY_DIR"])
PAGES = [SOURCE / "README.md", *sorted((SOURCE / "docs").rglob("*.md"))]


# Commands of docs/program.md that take a moment.
SHORT = {"trellis machine list", "trellis schedule list", "trellis schedule show all_reduce -a ring -d 4",
         "trellis schedule convert all_reduce -a ring -d 8 --to msccl-xml -o ring.xml", "trellis schedule verify ring.xml",
         "trellis schedule draw all_reduce -a halving_doubling -d 8 -o hd.svg",
         "trellis schedule explain hierarchical@4x4*2", "trellis kernels", "trellis core list",
         "trellis core run adamw --chip trn2", "trellis core show reduce > mine.txt && trellis core check mine.txt",
         "trellis train show examples/llama.yaml --ranks 2",
         "trellis train export examples/llama.yaml --ranks 2 -o step.txt",
         'trellis topo draw "trn2.48xlarge x 4" -o cluster.svg', "trellis topo draw -n 4 -o host.svg"}


def shown_commands(text):
    """Of each indented `$ trellis ...`: the words, and the indented lines below it up to the next prompt."""
    for prompt in re.finditer(r"^    \$ trellis (.*)\n((?:    (?!\$ ).*\n|\n(?=    (?!\$ )))*)", text, re.M):
        yield shlex.split(prompt[1]), [line[4:].rstrip() for line in prompt[2].splitlines()]


def left_out(printed, wanted):
    """What was printed, with `...` for the lines that a page leaves out where it has a line of that."""
    if "..." not in wanted:
        return printed
    first = wanted.index("...")
    return printed[:first] + ["..."] + printed[len(printed) - (len(wanted) - first - 1):]


def headings(text):
    """The names by which links reach a page's headings."""
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in re.findall(r"^#+ (.*)", text, re.M)}


class DocumentsTest(unittest.TestCase):
    def test_commands_print_what_is_shown(self):
        shown = 0
        for page in PAGES:
            for words, wanted in () if page.parent.name in ("tutorials", "howto") else shown_commands(page.read_text()):
                with self.subTest(page=page.name, command=" ".join(words)), commands.Folder(program.TRELLIS) as folder:
                    ran = program.trellis(*words, cwd=folder.place, timeout=900)
                    printed = [line.rstrip() for line in ran.stdout.splitlines()]
                    self.assertEqual(left_out(printed, wanted), wanted, ran.stderr)
                    shown += 1
        self.assertGreater(shown, 1)

    def test_links_lead_somewhere(self):
        for page in sorted({*PAGES, *(SOURCE / name for name in commands.pages()), *SOURCE.glob("*.md")}):
            for link in re.findall(r"\]\(([^)]+)\)", page.read_text()):
                if link.startswith("http"):
                    continue
                with self.subTest(page=page.name, link=link):
                    path, _, heading = link.partition("#")
                    target = (page.parent / path).resolve() if path else page
                    self.assertTrue(target.exists())
                    if heading:
                        self.assertIn(heading, headings(target.read_text()))

    def test_every_variable_is_in_the_table(self):
        listed = (SOURCE / "docs" / "environment.md").read_text()
        rooms = ("text", "net", "ccl", "device", "kernels", "schedule", "sim", "train", "launch", "measure", "tools", "python")
        for path in (path for room in rooms for path in (SOURCE / room).rglob("*") if path.suffix in (".cpp", ".h", ".py")):
            for name in re.findall(r'"(TRELLIS_[A-Z_]*[A-Z])"', path.read_text()):
                with self.subTest(name=name, file=path.name):
                    self.assertIn(f"`{name}`", listed)

    def test_the_reference_is_made_from_the_sources(self):
        with tempfile.TemporaryDirectory() as folder:
            reference = [sys.executable, SOURCE / "tools/package/reference.py", SOURCE, folder, program.TRELLIS]
            subprocess.run(reference, check=True, timeout=300)
            made = {page.stem: page.read_text() for page in pathlib.Path(folder).glob("*.md")}
        for page, names in {"cpp": ("Communicator", "simulate", "all_reduce"), "c": ("trellis_all_reduce",),
                            "python": ("class Builder", "price"), "commands": ("## trellis sim",)}.items():
            for name in names:
                self.assertIn(name, made[page])

    def test_commands_that_pages_show_end_well(self):
        """A few: `tools/soak documents` runs all."""
        failed = commands.failures("docs/program.md", program.TRELLIS, SHORT, tell=lambda line: None)
        self.assertEqual(failed, [])
        shown = set(commands.commands((SOURCE / "docs/program.md").read_text()))
        self.assertEqual(SHORT - shown, set())

    def test_the_first_program_of_the_readme_compiles(self):
        code = re.search(r"^    #include <vector>\n(?:(?:    .*)?\n)*?    }\n", (SOURCE / "README.md").read_text(), re.M)
        ran = subprocess.run([os.environ["CXX"], "-std=c++20", "-fsyntax-only", f"-I{SOURCE}", f"-I{BUILD}/include", "-x", "c++", "-"],
                             input=code[0], capture_output=True, text=True, timeout=300)
        self.assertEqual(ran.returncode, 0, ran.stderr)


if __name__ == "__main__":
    unittest.main()
