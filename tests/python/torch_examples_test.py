"""The examples over Trellis, over gloo and under `trellis launch`, where torch is installed."""

import unittest

import python_environment as environment

NEEDS = ("pytest", "torch", "numpy")


class Examples(unittest.TestCase):
    def test_examples(self):
        environment.run("pytest", "-q", "-x", "tests/python/test_torch_examples.py", needs=NEEDS)

    def test_examples_under_launch(self):
        environment.run("pytest", "-q", "-x", "tests/python/test_torch_launch.py", needs=NEEDS)


if __name__ == "__main__":
    unittest.main()
