"""The Python package: schedules, prices and programs; its documentation's examples; its types and style."""

import subprocess
import time
import unittest

import python_environment as environment

MODULES = ["sizes", "schedule", "machine", "sim", "core"]


class Package(unittest.TestCase):
    def test_pytest(self):
        environment.run("pytest", "-q", "tests/python/test_schedule.py", "tests/python/test_sim.py",
                        needs=("pytest", "numpy"))  # fmt: skip

    def test_examples_in_the_documentation(self):
        paths = [str(environment.BINARY / "python" / "trellis" / f"{name}.py") for name in MODULES]
        environment.run("doctest", *paths, needs=("numpy",))

    def test_it_is_imported_quickly(self):
        python = environment.interpreter()
        code = "import trellis.schedule, sys; sys.exit('torch' in sys.modules)"
        times = []
        for _ in range(5):
            begun = time.monotonic()
            subprocess.run([python, "-c", code], check=True, env={"PYTHONPATH": str(environment.BINARY / "python")})
            times.append(time.monotonic() - begun)
        bare = time.monotonic()
        subprocess.run([python, "-c", "import numpy"], check=True)
        bare = time.monotonic() - bare
        self.assertLess(min(times), bare + 0.2)

    def test_types(self):
        environment.run("mypy", needs=("mypy", "numpy", "torch"))

    def test_style(self):
        environment.run("ruff", "check", "--no-cache", "python", "examples/torch", "tests/python", "bench/python",
                        needs=("ruff",))  # fmt: skip


if __name__ == "__main__":
    unittest.main()
