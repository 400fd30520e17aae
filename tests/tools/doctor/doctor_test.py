"""trellis doctor: dumps of ranks in, a sentence on each finding out."""
import concurrent.futures
import json
import os
import pathlib
import tempfile
import unittest

import situations
from program import remote_shell, trellis


def dump(rank, ranks, operation, state="completed", name="all_reduce", count=4, error="", waits_for=-1, step=2,
         communicator="1", points=0):
    entry = {"collective_seq_id": operation, "state": state, "profiling_name": f"trellis:{name}", "count": count,
             "type": "f32", "operator": "sum", "root": 0, "points": points}
    return {"entries": [entry],
            "trellis": {"rank": rank, "ranks": ranks, "error": error, "waits_for": waits_for, "step": step,
                        "communicator": communicator, "written_ns": 1_700_000_000_000_000_000}}


class Doctor(unittest.TestCase):
    def doctor(self, *dumps, options=()):
        with tempfile.TemporaryDirectory() as folder:
            for i, d in enumerate(dumps):
                text = d if isinstance(d, str) else json.dumps(d)
                (pathlib.Path(folder) / f"trellis_{i}.json").write_text(text)
            return trellis("doctor", folder, *options, timeout=60)

    def test_a_stuck_rank_and_one_that_never_came(self):
        ran = self.doctor(dump(0, 2, 7, "started", waits_for=1, error="rank 1 did not come"), dump(1, 2, 6))
        self.assertEqual(ran.returncode, 1)
        self.assertEqual(ran.stdout.splitlines()[0], "rank 1 never came to operation 7, all_reduce of 4 f32, sum: it was "
                         "in code of its own after operation 6")
        self.assertIn("rank 0 is stuck in operation 7, all_reduce of 4 f32, sum, at step 2, waiting for rank 1", ran.stdout)

    def test_dumps_on_other_hosts(self):
        with tempfile.TemporaryDirectory() as folder:
            place = pathlib.Path(folder)
            shell = remote_shell(place)
            for rank, host in enumerate(["it's a", "b"]):
                (place / host).mkdir()
                (place / host / "trellis.json").write_text(json.dumps(dump(rank, 2, 7 - rank, "started" if rank == 0 else "completed")))
            ran = trellis("doctor", f"node0:{folder}/it's a", f"node1:{folder}/b/trellis.json", "--rsh", shell, timeout=60)
            self.assertEqual(ran.returncode, 1, ran.stderr)
            self.assertIn("rank 1 never came to operation 7", ran.stdout.splitlines()[0])
            missing = f"node0:{folder}/none"
            for words, said in [([f"away:{folder}"], "host away: "), ([missing], f"{missing}: there is no such file or folder"),
                                ([f"node1:{folder}/b", missing], missing)]:
                ran = trellis("doctor", *words, "--rsh", shell, timeout=60)
                self.assertEqual((ran.returncode, ran.stderr.count("\n")), (2, 1), ran.stderr)
                self.assertIn(said, ran.stderr)

    def test_a_dump_that_is_named_twice_is_of_one_job(self):
        with tempfile.TemporaryDirectory() as folder:
            kept = pathlib.Path(os.environ["TRELLIS_SOURCE_DIR"]) / "tests/ccl/situations/late_computing.json"
            for i, text in enumerate(json.loads(kept.read_text())["files"]):  # one is the launch's record
                file = pathlib.Path(folder) / f"trellis_{i}.json"
                file.write_text(json.dumps(text))
            (pathlib.Path(folder) / "link").symlink_to(folder)
            once = trellis("doctor", folder).stdout
            self.assertIn("rank 2 never came to operation 3", once)
            for twice in ([folder, folder], [folder, file], [f"{folder}/./{file.name}", folder], [f"{folder}/link", folder]):
                self.assertEqual(trellis("doctor", *twice).stdout, once)
            shell = remote_shell(folder)
            there = trellis("doctor", f"node0:{folder}", f"node0:{file}", "--rsh", shell)
            self.assertEqual(there.stdout, once)

    def test_a_rank_that_is_well_is_not_called_stuck(self):
        ran = self.doctor(dump(0, 2, 7, "started", step=-1), dump(1, 2, 7))
        self.assertEqual((ran.returncode, ran.stdout), (0, "rank 0 is in operation 7, all_reduce of 4 f32, sum\n"))

    def test_a_rank_that_called_something_else(self):
        ran = self.doctor(dump(0, 3, 5, "started"), dump(1, 3, 5, "started", count=8), dump(2, 3, 5, "started"))
        self.assertIn("rank 1 called all_reduce of 8 f32, sum as operation 5, where ranks 0, 2 called", ran.stdout)

    def test_sends_are_no_operation_of_their_own(self):
        ran = self.doctor(dump(0, 2, 5), dump(1, 2, 5, "started", name="send_recv", points=3, waits_for=0))
        self.assertIn("rank 1 is in 3 sends and receives after operation 5, at step 2, waiting for rank 0\n", ran.stdout)

    def test_a_circle(self):
        around = [dump(r, 4, 5, "started", name="send_recv", points=1, waits_for=(r + 1) % 3) for r in range(3)]
        ran = self.doctor(*around, dump(3, 4, 5, "started", name="send_recv", points=1, waits_for=0))
        self.assertEqual(ran.stdout.count("in a circle"), 1)
        self.assertIn("ranks 0, 1, 2 wait for each other in a circle", ran.stdout.splitlines()[0])

    def test_ranks_of_one_operation_are_in_no_circle(self):
        waits = {0: 1, 1: 0, 3: 0}  # each shows one of several
        ran = self.doctor(*[dump(r, 4, 6, "started", waits_for=w, error="rank 2 is lost") for r, w in waits.items()],
                          dump(2, 4, 5))
        self.assertNotIn("circle", ran.stdout)
        self.assertTrue(ran.stdout.startswith("rank 2 never came to operation 6"), ran.stdout)

    def test_a_missing_dump(self):
        ran = self.doctor(dump(0, 3, 5), dump(2, 3, 5))
        self.assertIn("rank 1 left no dump", ran.stdout)

    def test_all_is_well(self):
        ran = self.doctor(dump(0, 2, 5), dump(1, 2, 5))
        self.assertEqual((ran.returncode, ran.stdout), (0, "all 2 ranks have finished operation 5\n"))

    def test_jobs_that_go_wrong(self):
        names = ("late_asleep", "dead_within_an_operation", "someone_aborts", "split_without_a_rank",
                 "fails_on_another_node")
        with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor() as pool:
            folders = [pathlib.Path(folder) / name for name in names]
            for name, (said, ran) in zip(names, pool.map(situations.run, names, folders)):
                self.assertTrue(situations.is_right(name, ran), f"{name}: {said}{ran.stdout}{ran.stderr}")
                self.assertEqual(ran.returncode, 1)

    def test_each_situation_is_kept_as_data(self):
        folder = pathlib.Path(os.environ["TRELLIS_SOURCE_DIR"]) / "tests" / "ccl" / "situations"
        kept = {file.stem: json.loads(file.read_text()) for file in folder.glob("*.json")}
        self.assertEqual({name: one["cause"] for name, one in kept.items()},
                         {name: one["cause"] for name, one in situations.SITUATIONS.items()})

    def test_who_came_and_waited_is_not_called_absent(self):
        early = dump(0, 3, 0, error="rank 2 did not join in time", communicator="")
        early["entries"] = []
        early["trellis"].update(trouble="lost", blamed=2, absent=[2])
        ran = self.doctor(early)
        self.assertEqual(ran.stdout.splitlines()[0], "rank 2 never came to make a communicator of 3 ranks")

    def test_json(self):
        ran = self.doctor(dump(0, 2, 5, error="it broke"), dump(1, 2, 5), options=["--json"])
        one, = json.loads(ran.stdout)["jobs"][0]["communicators"]
        self.assertEqual((one["communicator"], one["errors"]), ("1", {"0": "it broke"}))

    def test_communicators_are_not_mixed(self):
        ran = self.doctor(dump(0, 2, 5), dump(1, 2, 5), dump(0, 3, 8, communicator="2"))
        self.assertIn("a job of 2023-11-14 22:13:20 UTC:\nall 2 ranks have finished operation 5\n", ran.stdout)
        self.assertIn("ranks 1, 2 left no dump", ran.stdout)

    def test_what_is_no_dump_is_left_out(self):
        ran = self.doctor(dump(0, 1, 5), "garbage")
        self.assertEqual((ran.returncode, ran.stdout), (1, "all 1 ranks have finished operation 5\n"))
        self.assertIn("trellis_1.json: left out: this is no dump of a flight recorder: it is not JSON", ran.stderr)

    def test_nothing_but_what_is_no_dump_is_refused(self):
        bad = dump(0, 2, 5)
        bad["entries"][0]["count"] = -4
        named = dump(0, 2, 5, name="")
        for text, why in (("", "it is not JSON"), ("{}", "'trellis' is missing"), ('{"trellis": 3}', "'ranks' is missing"),
                          ('{"trellis": {"ranks": "x"}}', "'ranks' is string: expected a whole number from 1"),
                          (dump(2, 2, 5), "'rank' is 2: expected a whole number from 0 to 1"),
                          (bad, "'count' is -4: expected a whole number from 0"), (named, "expected")):
            ran = self.doctor(text)
            self.assertEqual(ran.returncode, 2, ran)
            self.assertIn("this is no dump of a flight recorder: ", ran.stderr)
            self.assertIn(why, ran.stderr)
            self.assertNotIn("exception", ran.stderr)


if __name__ == "__main__":
    unittest.main()
