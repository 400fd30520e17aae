"""PyTorch's own distributed tests, from its wheel, with our backend: python tests/python/pytorch_suite.py [-k PATTERN]

TRELLIS_SUITE_BACKEND=gloo runs them with gloo, to compare. TRELLIS_SUITE_RANKS sets the number of ranks (3).
TRELLIS_SUITE_OUTCOMES names a file for how each test ended, as JSON. `pytorch_compare.py` runs it for all of these.
Some tests are closed to all backends but those that they name. TRELLIS_SUITE_OPEN=1 runs what is open to gloo: the
decorators that decide it see "gloo", the tests see "trellis".
"""

import json
import os
import pathlib
import sys
import tempfile
import unittest

os.environ.setdefault("OMP_NUM_THREADS", "1")
BACKEND = os.environ.get("TRELLIS_SUITE_BACKEND", "trellis")
OPEN = os.environ.get("TRELLIS_SUITE_OPEN") == "1"
os.environ["BACKEND"] = "gloo" if OPEN else BACKEND
os.environ["WORLD_SIZE"] = os.environ.get("TRELLIS_SUITE_RANKS", "3")
os.environ["TEMP_DIR"] = tempfile.mkdtemp()
os.environ.setdefault("INIT_METHOD", "file://" + os.path.join(os.environ["TEMP_DIR"], "shared_init_file"))
for folder in ("barrier", "init_dir"):
    os.makedirs(os.path.join(os.environ["TEMP_DIR"], folder), exist_ok=True)

import torch  # noqa: E402
from torch.testing._internal.common_distributed import TEST_SKIPS, DistTestCases  # noqa: E402, F401

if BACKEND == "trellis":  # the tests' decorators ask for these as they are imported
    for feature in ("gpu", "cuda", "ddp", "subgroup", "plugin"):
        DistTestCases.backend_feature[feature].add("trellis")

from torch.testing._internal.distributed import distributed_test  # noqa: E402
from torch.testing._internal.distributed.distributed_test import DistributedTest, TestDistBackend  # noqa: E402

import trellis.torch  # noqa: E402

trellis.torch.prepare()
torch.set_num_threads(1)

if OPEN:
    os.environ["BACKEND"] = distributed_test.BACKEND = BACKEND


class PyTorchsOwn(TestDistBackend, DistributedTest._DistTestBase):
    def setUp(self) -> None:
        super().setUp()
        self._start_processes(torch.multiprocessing.get_context("fork").Process)


class Outcomes(unittest.TextTestResult):
    """How each test ended, by its name: (passed, skipped or failed; why)."""

    def __init__(self, *words: object, **named: object) -> None:
        super().__init__(*words, **named)  # type: ignore[arg-type]
        self.of: dict[str, tuple[str, str]] = {}

    def addSuccess(self, test):
        super().addSuccess(test)
        self.of[test._testMethodName] = ("passed", "")

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.of[test._testMethodName] = ("skipped", reason)

    def addFailure(self, test, error):
        super().addFailure(test, error)
        self.of[test._testMethodName] = ("failed", str(error[1]))

    def addError(self, test, error):
        super().addError(test, error)
        self.of[test._testMethodName] = ("failed", str(error[1]))


if __name__ == "__main__":
    ran = unittest.main(argv=sys.argv, exit=False, testRunner=unittest.TextTestRunner(resultclass=Outcomes))
    if file := os.environ.get("TRELLIS_SUITE_OUTCOMES"):
        pathlib.Path(file).write_text(json.dumps(ran.result.of))
    sys.exit(not ran.result.wasSuccessful())
