"""The Python package: schedules, prices and programs; its documentation's examples; its types and style."""

import os
import pathlib
import subprocess
import tempfile
import unittest

import python_environment as environment

# What mypy has found out about torch and numpy, which takes it most of its time.
CACHE = str(environment.BINARY / "python" / "mypy-cache")
MODULES = ["__init__", "sizes", "schedule", "machine", "sim", "core"]


class Package(unittest.TestCase):
    def test_pytest(self):
        environment.run("pytest", "-q", "tests/python/test_schedule.py", "tests/python/test_sim.py",
                        "tests/python/test_origin.py", needs=("pytest", "numpy"))  # fmt: skip

    def test_training(self):
        environment.run("pytest", "-q", "tests/python/train", needs=("pytest", "numpy"))

    def test_times_of_nki_kernels(self):
        environment.run("pytest", "-q", "tests/python/nki", needs=("pytest", "numpy", "ml_dtypes"))

    def test_examples_in_the_documentation(self):
        paths = [str(environment.BINARY / "python" / "trellis" / f"{name}.py") for name in MODULES]
        environment.run("doctest", *paths, needs=("numpy",))

    def test_it_imports_what_it_needs_only(self):
        """What takes long to import, torch above all, is imported by whoever asks for it."""
        for module, unwanted in (("trellis", {"numpy", "torch"}), ("trellis.schedule", {"torch", "matplotlib"})):
            code = f"import {module}, sys; sys.exit(str(sorted({unwanted} & set(sys.modules)) or ''))"
            environ = {"PYTHONPATH": str(environment.BINARY / "python")}
            ran = subprocess.run([environment.interpreter(), "-c", code], capture_output=True, text=True, env=environ)
            self.assertEqual(ran.stderr.strip(), "", module)

    def test_types(self):
        environment.run("mypy", "--cache-dir", CACHE, needs=("mypy", "numpy", "torch"))

    def test_types_of_what_the_readme_shows(self):
        """A user's module, under the same rules."""
        text = (environment.SOURCE / "python" / "README.md").read_text()
        shown = text.split("## Schedules and prices")[1].split("## ")[0]
        code = "\n".join(line[4:] for line in shown.splitlines() if line.startswith("    ") or not line)
        with tempfile.TemporaryDirectory() as folder:
            module = pathlib.Path(folder) / "users.py"
            module.write_text(code)
            environment.run("mypy", "--strict", "--cache-dir", CACHE, str(module), needs=("mypy", "numpy"))

    def test_what_modules_offer(self):
        """`__all__` everywhere, of names that are there; at a prompt, nothing else."""
        code = """
import importlib, pkgutil, trellis
for found in pkgutil.walk_packages(trellis.__path__, "trellis."):
    if found.name.rsplit(".", 1)[-1].startswith("_") or found.name == "trellis.gallery":
        continue
    module = importlib.import_module(found.name)
    assert module.__all__ and len(set(module.__all__)) == len(module.__all__), found.name
    for name in module.__all__:
        getattr(module, name)
for name in ("schedule", "sim", "core", "machine"):
    module = importlib.import_module(f"trellis.{name}")
    assert sorted(dir(module)) == sorted(module.__all__), name
"""
        environ = {**os.environ, "PYTHONPATH": str(environment.BINARY / "python")}
        ran = subprocess.run([environment.interpreter(), "-c", code], capture_output=True, text=True, env=environ)
        if "No module named 'torch'" in ran.stderr or "needs PyTorch" in ran.stderr:
            self.skipTest("torch is not installed")
        self.assertEqual(ran.stderr.strip(), "")

    def test_style(self):
        environment.run("ruff", "check", "--no-cache", "python", "examples/torch", "tests/python", "bench/python",
                        needs=("ruff",))  # fmt: skip


if __name__ == "__main__":
    unittest.main()
