"""What README.md and the pages of docs/ show of commands is what these print, and what they link to is there."""
import os
import pathlib
import re
import shlex
import subprocess
import unittest

import program

SOURCE = pathlib.Path(os.environ["TRELLIS_SOURCE_DIR"])
BUILD = pathlib.Path(os.environ["TRELLIS_BINARY_DIR"])
PAGES = [SOURCE / "README.md", *sorted((SOURCE / "docs").rglob("*.md"))]


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
            for words, wanted in () if page.parent.name == "tutorials" else shown_commands(page.read_text()):
                with self.subTest(page=page.name, command=" ".join(words)):
                    ran = program.trellis(*words, cwd=SOURCE, timeout=300)
                    printed = [line.rstrip() for line in ran.stdout.splitlines()]
                    self.assertEqual(left_out(printed, wanted), wanted, ran.stderr)
                    shown += 1
        self.assertGreater(shown, 1)

    def test_links_lead_somewhere(self):
        for page in PAGES + [SOURCE / name for name in ("ARCHITECTURE.md", "HACKING.md", "CONTRIBUTING.md", "SECURITY.md")]:
            for link in re.findall(r"\]\(([^)]+)\)", page.read_text()):
                if link.startswith("http"):
                    continue
                with self.subTest(page=page.name, link=link):
                    path, _, heading = link.partition("#")
                    target = (page.parent / path).resolve() if path else page
                    self.assertTrue(target.exists())
                    if heading:
                        self.assertIn(heading, headings(target.read_text()))

    def test_the_first_program_of_the_readme_compiles(self):
        code = re.search(r"^    #include <vector>\n(?:(?:    .*)?\n)*?    }\n", (SOURCE / "README.md").read_text(), re.M)
        ran = subprocess.run([os.environ["CXX"], "-std=c++20", "-fsyntax-only", f"-I{SOURCE}", f"-I{BUILD}/include", "-x", "c++", "-"],
                             input=code[0], capture_output=True, text=True, timeout=300)
        self.assertEqual(ran.returncode, 0, ran.stderr)


if __name__ == "__main__":
    unittest.main()
