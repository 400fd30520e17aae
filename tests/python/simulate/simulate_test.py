"""Simulated PyTorch jobs: records as values everywhere, jobs where torch is installed."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

import python_environment as environment  # noqa: E402


class Simulate(unittest.TestCase):
    def test_records(self):
        files = [f"tests/python/simulate/test_{name}.py" for name in ("match", "messages", "host", "ends", "rules")]
        environment.run("pytest", "-q", "-x", *files, needs=("pytest", "numpy"))

    def test_jobs(self):
        names = ("jobs", "checkpoints", "groups", "gloo", "docs", "same", "caching")
        files = [f"tests/python/simulate/test_{name}.py" for name in names]
        environment.run("pytest", "-q", "-x", *files, needs=("pytest", "numpy", "torch"))

    def test_what_is_understood(self):
        names = ("names", "threads", "parallelism", "memory", "kernels", "hugging_face", "lightning")
        files = [f"tests/python/simulate/test_{name}.py" for name in names]
        environment.run("pytest", "-q", "-x", *files, needs=("pytest", "numpy", "torch"))


if __name__ == "__main__":
    unittest.main()
