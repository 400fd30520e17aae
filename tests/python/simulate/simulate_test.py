"""Simulated PyTorch jobs: records as values everywhere, jobs where torch is installed."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

import python_environment as environment  # noqa: E402


class Simulate(unittest.TestCase):
    def test_records(self):
        environment.run("pytest", "-q", "-x", "tests/python/simulate/test_match.py", needs=("pytest", "numpy"))

    def test_jobs(self):
        environment.run("pytest", "-q", "-x", "tests/python/simulate/test_jobs.py", "tests/python/simulate/test_gloo.py",
                        "tests/python/simulate/test_docs.py", needs=("pytest", "numpy", "torch"))  # fmt: skip


if __name__ == "__main__":
    unittest.main()
