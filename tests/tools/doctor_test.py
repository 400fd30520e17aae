"""trellis doctor: dumps of ranks in, a sentence on each finding out."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

PROGRAM = os.environ["TRELLIS"]


def dump(rank, ranks, operation, state="completed", name="all_reduce", count=4, error="", waits_for=-1):
    entry = {"collective_seq_id": operation, "state": state, "profiling_name": f"trellis:{name}", "count": count,
             "type": "f32", "operator": "sum", "root": 0, "points": 0}
    return {"entries": [entry],
            "trellis": {"rank": rank, "ranks": ranks, "error": error, "waits_for": waits_for, "step": 2}}


class Doctor(unittest.TestCase):
    def doctor(self, *dumps, options=()):
        with tempfile.TemporaryDirectory() as folder:
            for d in dumps:
                text = d if isinstance(d, str) else json.dumps(d)
                rank = "x" if isinstance(d, str) else d["trellis"]["rank"]
                (pathlib.Path(folder) / f"trellis_1_rank{rank}.json").write_text(text)
            return subprocess.run([PROGRAM, "doctor", folder, *options], capture_output=True, text=True, timeout=60)

    def test_a_stuck_rank_and_one_that_never_came(self):
        ran = self.doctor(dump(0, 2, 7, "started", waits_for=1, error="rank 1 did not come"), dump(1, 2, 6))
        self.assertEqual(ran.returncode, 1)
        self.assertIn("rank 1 never came to operation 7, all_reduce of 4 f32, sum; the last was operation 6", ran.stdout)
        self.assertIn("rank 0 is stuck in operation 7, all_reduce of 4 f32, sum, at step 2, waiting for rank 1", ran.stdout)

    def test_a_rank_that_called_something_else(self):
        ran = self.doctor(dump(0, 3, 5, "started"), dump(1, 3, 5, "started", count=8), dump(2, 3, 5, "started"))
        self.assertIn("rank 1 called all_reduce of 8 f32, sum as operation 5, where ranks 0, 2 called", ran.stdout)

    def test_a_missing_dump(self):
        ran = self.doctor(dump(0, 3, 5), dump(2, 3, 5))
        self.assertIn("rank 1 left no dump", ran.stdout)

    def test_all_is_well(self):
        ran = self.doctor(dump(0, 2, 5), dump(1, 2, 5))
        self.assertEqual((ran.returncode, ran.stdout), (0, "all 2 ranks have finished operation 5\n"))

    def test_json(self):
        ran = self.doctor(dump(0, 2, 5, error="it broke"), dump(1, 2, 5), options=["--json"])
        self.assertEqual(json.loads(ran.stdout)["errors"], {"0": "it broke"})

    def test_what_is_no_dump_is_refused(self):
        for text in ("", "{}", '{"trellis": 3}', '{"trellis": {"rank": "x"}}'):
            ran = self.doctor(text)
            self.assertEqual(ran.returncode, 2, ran)
            self.assertIn("this is no dump of a flight recorder", ran.stderr)


if __name__ == "__main__":
    unittest.main()
