"""What the program prints is what tests/golden says; tools/regolden writes it anew."""
import os
import pathlib
import unittest

from program import trellis

GOLDEN = pathlib.Path(os.environ["TRELLIS_SOURCE_DIR"]) / "tests" / "golden"


def cases():
    for line in (GOLDEN / "commands").read_text().splitlines():
        if line and not line.startswith("#"):
            name, *arguments = line.split()
            yield name, arguments


class Golden(unittest.TestCase):
    maxDiff = 4000

    def test_every_command_prints_its_golden_text(self):
        for name, arguments in cases():
            with self.subTest(name):
                ran = trellis(*arguments, cwd=os.environ["TRELLIS_SOURCE_DIR"])
                self.assertEqual((ran.returncode, ran.stderr), (0, ""))
                self.assertEqual(ran.stdout, (GOLDEN / name).read_text(), "if it is meant so: tools/regolden")

    def test_every_text_has_its_command(self):
        texts = {path.name for path in GOLDEN.iterdir() if path.is_file()} - {"commands"}
        self.assertEqual(texts, {name for name, _ in cases() if "/" not in name})


if __name__ == "__main__":
    unittest.main()
