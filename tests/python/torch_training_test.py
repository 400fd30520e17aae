"""Training over Trellis, where torch is installed: the optimizer, hooks, recordings."""

import unittest

import python_environment as environment


class Training(unittest.TestCase):
    def test_training(self):
        files = ("test_torch_training.py", "test_torch_recorded.py", "distributed")
        environment.run("pytest", "-q", "-x", *(f"tests/python/{file}" for file in files),
                        needs=("pytest", "torch", "numpy"))  # fmt: skip

    def test_accelerate(self):
        environment.run("pytest", "-q", "-x", "tests/python/test_torch_accelerate.py",
                        needs=("pytest", "torch", "accelerate"))  # fmt: skip

    def test_examples_in_the_documentation(self):
        folder = environment.BINARY / "python" / "trellis" / "torch"
        paths = [str(folder / f"{name}.py") for name in ("__init__", "optimizer", "hooks")]
        environment.run("doctest", *paths, needs=("torch",))


if __name__ == "__main__":
    unittest.main()
