"""torch.distributed over Trellis, where torch is installed: operations, failures and the flight recorder."""

import unittest

import python_environment as environment

NEEDS = ("pytest", "torch", "numpy")


class Torch(unittest.TestCase):
    def test_operations(self):
        environment.run("pytest", "-q", "-x", "tests/python/test_torch_operations.py", needs=NEEDS)

    def test_estimates(self):
        environment.run("pytest", "-q", "-x", "tests/python/test_torch_estimate.py", needs=NEEDS)

    def test_with_pytorchs_own_ranks(self):
        environment.run("pytest", "-q", "-x", "tests/python/test_torch_continuous.py", needs=(*NEEDS, "expecttest"))

    def test_failures(self):
        environment.run("pytest", "-q", "-x", "tests/python/test_torch_failures.py", needs=NEEDS)

    def test_timeouts(self):
        environment.run("pytest", "-q", "-x", "tests/python/test_torch_timeouts.py", needs=NEEDS)

    def test_forks(self):
        environment.run("pytest", "-q", "-x", "tests/python/test_torch_forks.py", needs=NEEDS)

    def test_signals(self):
        environment.run("pytest", "-q", "-x", "tests/python/test_torch_signals.py", needs=NEEDS)

    def test_restarts(self):
        environment.run("pytest", "-q", "-x", "tests/python/test_torch_restarts.py", needs=NEEDS)

    def test_flights(self):
        environment.run("pytest", "-q", "-x", "tests/python/test_torch_flight.py", needs=NEEDS)


if __name__ == "__main__":
    unittest.main()
