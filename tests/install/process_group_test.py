"""PyTorch's process group compiles against the installed headers alone, wherever there is a torch. The tests of the package
compile it only where nanobind is, too."""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import public_test

SOURCE = pathlib.Path(os.environ["TRELLIS_SOURCE_DIR"])
BINARY = pathlib.Path(os.environ["TRELLIS_BINARY_DIR"])
NATIVE = SOURCE / "python" / "trellis" / "torch" / "native"
TORCH = """
import importlib.util, sysconfig
print(importlib.util.find_spec("torch").submodule_search_locations[0])
print(sysconfig.get_paths()["include"])
"""


def interpreters():
    """That of the build, that of tools/python, and what PATH has."""
    built = re.search(r"^TRELLIS_PYTHON:FILEPATH=(.*)$", (BINARY / "CMakeCache.txt").read_text(), re.MULTILINE)
    yield built[1] if built else None
    yield str(pathlib.Path(os.environ.get("TRELLIS_VENV", SOURCE / "build" / "python-venv")) / "bin" / "python")
    yield from (shutil.which("python3"), shutil.which("python"))


def torch_and_python():
    """The folders of torch and of Python's headers."""
    for interpreter in interpreters():
        if interpreter is None or not os.access(interpreter, os.X_OK):
            continue
        ran = subprocess.run([interpreter, "-c", TORCH], capture_output=True, text=True)
        if ran.returncode == 0:
            return [pathlib.Path(line) for line in ran.stdout.splitlines()]
    raise unittest.SkipTest("no torch: neither the build's interpreter has it, nor the environment of tools/python "
                            "(TRELLIS_VENV, or build/python-venv), nor python3")


class ProcessGroup(unittest.TestCase):
    def test_it_compiles_with_installed_headers(self):
        torch, python = torch_and_python()
        with tempfile.TemporaryDirectory() as folder:
            for header in public_test.public_headers():
                place = pathlib.Path(folder) / header
                place.parent.mkdir(parents=True, exist_ok=True)
                place.symlink_to(SOURCE / header)
            includes = [folder, SOURCE / "python", torch / "include", torch / "include/torch/csrc/api/include", python]
            ran = subprocess.run([os.environ["CXX"], "-std=c++20", "-fsyntax-only", "-w",
                                  "-DTORCH_EXTENSION_NAME=_trellis_process_group",
                                  *(f"-I{each}" for each in includes), NATIVE / "all.cpp"],
                                 capture_output=True, text=True)
        self.assertEqual(ran.returncode, 0, ran.stderr[-6000:])


if __name__ == "__main__":
    unittest.main()
