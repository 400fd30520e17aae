"""An installation from a tree in which not everything is built: what can be left out is named, and what can't is, first."""
import contextlib
import os
import pathlib
import subprocess
import tempfile
import unittest

BUILD = pathlib.Path(os.environ["TRELLIS_BINARY_DIR"])


class Partial(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(dir=BUILD)  # on the same file system
        self.addCleanup(folder.cleanup)
        self.place = pathlib.Path(folder.name)

    def install_without(self, *missing):
        """The build tree's own scripts, where these files of it are not there."""
        tree = self.place / "tree"
        tree.mkdir()
        for entry in BUILD.iterdir():
            if entry.name in (*missing, "cmake_install.cmake", "expect_built.cmake", self.place.name):
                continue
            if entry.is_symlink():
                (tree / entry.name).symlink_to(os.readlink(entry))
            elif entry.is_dir():
                (tree / entry.name).symlink_to(entry)
            else:
                with contextlib.suppress(FileNotFoundError):  # another test's file, which is gone by now
                    os.link(entry, tree / entry.name)  # an installation copies a file, and changes the copy
        for script in ("cmake_install.cmake", "expect_built.cmake"):
            lines = (BUILD / script).read_text().splitlines()
            moved = [line if "RPATH" in line else line.replace(str(BUILD), str(tree)) for line in lines]
            (tree / script).write_text("\n".join(moved) + "\n")
        self.prefix = self.place / "prefix"
        return subprocess.run(["cmake", "--install", tree, "--prefix", self.prefix], capture_output=True, text=True)

    def test_without_the_stand_in_for_libnrt(self):
        ran = self.install_without("libnrt")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn("Left out: the stand-in for libnrt.so.1", ran.stdout)
        self.assertFalse(list(self.prefix.rglob("libnrt*")))
        program = subprocess.run([self.prefix / "bin" / "trellis", "--version"], capture_output=True, text=True)
        self.assertEqual(program.returncode, 0, program.stderr)

    def test_without_the_program_nothing_is_copied(self):
        ran = self.install_without("trellis")
        self.assertNotEqual(ran.returncode, 0)
        said = " ".join(ran.stderr.split())
        self.assertIn("Not built: trellis. Expected all that is installed", said)
        self.assertIn("--target trellis", said)
        self.assertFalse(self.prefix.exists())


if __name__ == "__main__":
    unittest.main()
