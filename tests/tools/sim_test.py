"""trellis sim and trellis play, as a user types them."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

TRELLIS = os.environ["TRELLIS"]
STEP = pathlib.Path(os.environ["TRELLIS_SOURCE_DIR"]) / "examples/step.txt"
RING = ["sim", "all_reduce", "--machine", "ring:16", "-a", "ring", "--bytes", "64MiB"]


def trellis(*words, status=0):
    done = subprocess.run([TRELLIS, *map(str, words)], capture_output=True, text=True, timeout=300)
    assert done.returncode == status, (words, done.returncode, done.stdout, done.stderr)
    return done


def priced(*words):
    return json.loads(trellis(*words, "--json").stdout)


class Sim(unittest.TestCase):
    def test_folded_is_unfolded(self):
        for machine, algorithm in (("ring:16", "ring"), ("torus:4x4", "torus"), ("trn2.48xlarge", "kangaring")):
            words = ["sim", "all_reduce", "--machine", machine, "-a", algorithm, "--bytes", "16MiB"]
            self.assertEqual(priced(*words)["time_us"], priced(*words, "--unfolded")["time_us"], machine)

    def test_the_interval_holds_the_time(self):
        one = priced(*RING)
        low, high = sorted(value for key, value in one.items() if key in ("time_low_us", "time_high_us"))
        self.assertLessEqual(low, one["time_us"])
        self.assertGreaterEqual(high, one["time_us"])

    def test_damage_costs_time(self):
        self.assertGreater(priced(*RING, "--what-if", "slow:0-1:0.5")["time_us"], priced(*RING)["time_us"] * 1.5)

    def test_explains(self):
        self.assertIn("time goes to", trellis(*RING, "--explain").stdout)

    def test_a_step_is_played(self):
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder) / "step.html"
            done = trellis("play", STEP, "--machine", "trn2.48xlarge", "-a", "ring", "-o", page)
            self.assertIn("gradients", done.stdout)
            self.assertTrue(page.read_text().lower().startswith("<!"))

    def test_bad_input_is_named(self):
        for words, complaint in ((["sim", "all_reduce", "--machine", "trn9"], "trn9"),
                                 (["sim", "all_reduce", "--machine", "ring:4", "--what-if", "dead:0-9"], "9"),
                                 (["sim", "all_reduce", "--machine", "ring:0"], "expected sizes like 8"),
                                 (["sim", "all_reduce", "--bytes", "many"], "many"),
                                 (["play", "/nowhere.txt"], "/nowhere.txt")):
            done = subprocess.run([TRELLIS, *words], capture_output=True, text=True, timeout=60)
            self.assertIn(done.returncode, (1, 2), words)
            self.assertIn(complaint, done.stderr)


if __name__ == "__main__":
    unittest.main()
