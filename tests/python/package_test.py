"""The Python package: schedules, prices and programs; its documentation's examples; its types and style."""

import subprocess
import time
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

    def test_it_is_imported_quickly(self):
        bare, package = self.seconds("pass", "import trellis, sys; sys.exit('numpy' in sys.modules)")
        self.assertLess(package, bare + 0.2)
        numpy, schedule = self.seconds("import numpy", "import trellis.schedule, sys; sys.exit('torch' in sys.modules)")
        self.assertLess(schedule, numpy + 0.2)

    def seconds(self, *codes: str) -> list[float]:
        """The least of several runs of each, in fresh interpreters. They take turns, so that a busy spell meets all."""
        python, environ = environment.interpreter(), {"PYTHONPATH": str(environment.BINARY / "python")}
        times = {code: [] for code in codes}
        for _ in range(7):
            for code in codes:
                begun = time.monotonic()
                subprocess.run([python, "-c", code], check=True, env=environ)
                times[code].append(time.monotonic() - begun)
        return [min(times[code]) for code in codes]

    def test_types(self):
        environment.run("mypy", needs=("mypy", "numpy", "torch"))

    def test_style(self):
        environment.run("ruff", "check", "--no-cache", "python", "examples/torch", "tests/python", "bench/python",
                        needs=("ruff",))  # fmt: skip


if __name__ == "__main__":
    unittest.main()
