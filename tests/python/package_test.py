"""The Python package: schedules, prices and programs; its documentation's examples; its types and style."""

import subprocess
import unittest

import python_environment as environment

MODULES = ["__init__", "sizes", "schedule", "machine", "sim", "core"]


class Package(unittest.TestCase):
    def test_pytest(self):
        environment.run("pytest", "-q", "tests/python/test_schedule.py", "tests/python/test_sim.py",
                        needs=("pytest", "numpy"))  # fmt: skip

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
        environment.run("mypy", needs=("mypy", "numpy", "torch"))

    def test_style(self):
        environment.run("ruff", "check", "--no-cache", "python", "examples/torch", "tests/python", "bench/python",
                        needs=("ruff",))  # fmt: skip


if __name__ == "__main__":
    unittest.main()
