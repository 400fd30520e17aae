"""The examples over Trellis and over gloo, where torch is installed."""

import unittest

import python_environment as environment


class Examples(unittest.TestCase):
    def test_examples(self):
        environment.run("pytest", "-q", "-x", "tests/python/test_torch_examples.py",
                        needs=("pytest", "torch", "numpy"))  # fmt: skip


if __name__ == "__main__":
    unittest.main()
