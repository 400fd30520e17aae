"""Training over Trellis, where torch is installed: the examples, the optimizer, hooks, recordings."""

import unittest

import python_environment as environment


class Training(unittest.TestCase):
    def test_training(self):
        environment.run("pytest", "-q", "-x", "tests/python/test_torch_training.py",
                        needs=("pytest", "torch", "numpy"))  # fmt: skip


if __name__ == "__main__":
    unittest.main()
