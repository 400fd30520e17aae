"""The examples under `trellis launch`, where torch is installed."""

import unittest

import python_environment as environment


class Launched(unittest.TestCase):
    def test_examples(self):
        environment.run("pytest", "-q", "-x", "tests/python/test_torch_launch.py",
                        needs=("pytest", "torch", "numpy"))  # fmt: skip


if __name__ == "__main__":
    unittest.main()
