"""trellis tune: tables that the library reads, and explanations. No test looks at a time."""
import json
import os
import re
import signal
import subprocess
import unittest

import program
from program import TRELLIS, trellis
from terminal import interrupted_on_a_terminal


class Tune(program.Case):
    def test_a_table_that_bench_then_uses(self):
        path = self.new_folder() / "table.txt"
        self.assertEqual(self.printed("tune", "-n", "2", "--sizes", "64,64KB", "--collectives", "all_reduce,barrier",
                                      "-o", path), "")
        lines = program.without_origin(path.read_text()).splitlines()
        self.assertRegex(lines[0], r"^# all_reduce on 2 ranks: [0-9.]+ times as fast as today's selection in the mean of 2 "
                                   r"sizes, and [0-9.]+ times at (64 B|64 KiB)$")
        self.assertRegex(lines[1], r"^# barrier on 2 ranks: [0-9.]+ times as fast as today's selection$")
        self.assertTrue(lines[2].startswith("# collective ranks "))
        self.assertEqual(lines[3], "machine host")
        self.assertEqual(lines[-1], "end")
        rules = [line.split() for line in lines[4:-1]]
        self.assertEqual([rule[:3] for rule in rules if rule[2] == "0"], [["all_reduce", "2", "0"], ["barrier", "2", "0"]])
        self.assertLessEqual(len(rules), 3)
        said = self.printed("bench", "allr", "--ranks", "2", "-b", "64", "-e", "64", "-n", "2", "--style", "nccom", "--show-algorithm",
                            TRELLIS_SELECTIONS=str(path))
        row = program.without_origin(said).splitlines()[1]
        self.assertTrue(row.endswith("  " + " ".join(rules[0][3:])), (row, rules))

    def test_a_collective_named_twice_is_measured_once(self):
        text = self.printed("tune", "-n", "2", "--sizes", "8", "--collectives", "barrier,barrier")
        self.assertEqual(text.count("\nbarrier 2 0 "), 1)

    def test_a_table_for_any_machine_says_with_how_many_cores_it_was_measured(self):
        for ranks in (1, 2):  # each has one core, whatever the host has
            text = self.printed("tune", "-n", str(ranks), "--collectives", "barrier", "--machine", "*")
            found = re.search(r"\nmachine \*\ncores ([1-9][0-9]*)\nbarrier [12] 0 ", text)
            self.assertIsNotNone(found, text)
            self.assertLessEqual(int(found[1]), ranks)

    def test_slips(self):
        for words, arguments in [("did you mean 'all_reduce'?", ["--collectives", "al_reduce"]),
                                 ("expected sizes like 8..16MB", ["--sizes", "64..8"]),
                                 ("'0' in '0' is not a count of ranks", ["-n", "0"]),
                                 ("expected one number of ranks", ["--explain", "all_reduce", "64KB", "-n", "2,3"]),
                                 ("-n 2000: expected at most", ["-n", "2000"]),
                                 ("'two words' is no machine's name", ["--machine", "two words"]),
                                 ("'64Q' is no size", ["--explain", "all_reduce", "64Q"]),
                                 ("'32T' in '32T': expected at most 16T", ["--sizes", "32T"]),
                                 ("a smaller --sizes may do", ["--sizes", "8T..16T", "--collectives", "all_reduce"]),
                                 ("a smaller size may do", ["--explain", "all_reduce", "16T"]),
                                 ("--explain all_reduce 17T: expected at most 16T", ["--explain", "all_reduce", "17T"]),
                                 ("--all goes with --explain", ["--all"]),
                                 ("--json goes with --explain", ["--json"]),
                                 ("--cores goes with --predict", ["--cores", "4"]),
                                 ("--threads goes with --predict", ["--threads", "4"]),
                                 ("--caches goes with --predict", ["--caches", "4"]),
                                 ("--threads 4: expected at least one for each of 8 cores",
                                  ["--predict", "all_reduce", "8", "-n", "8", "--threads", "4"]),
                                 ("--explain goes without --predict",
                                  ["--explain", "all_reduce", "8", "--predict", "all_reduce", "8"]),
                                 ("--sizes goes without --predict", ["--predict", "all_reduce", "8", "--sizes", "8"]),
                                 ("expected one number of ranks", ["--predict", "all_reduce", "8", "-n", "2,3"]),
                                 *((f"--predict {name}: the model of a host does not know it", ["--predict", name, "1MB"])
                                   for name in ("all_gather_v", "reduce_scatter_v", "all_to_all_v", "permute", "send_recv")),
                                 ("--sizes goes without --explain", ["--explain", "all_reduce", "8", "--sizes", "8"]),
                                 ("expected one number of ranks", ["--explain", "all_reduce", "8", "-n", "2,4,8"]),
                                 ("'a b' is no machine's name", ["--explain", "all_reduce", "8", "--machine", "a b"]),
                                 ("-o,--output '': expected a value", ["-o", ""]),
                                 ("no type is called 'x': expected one of bf16,", ["-d", "x"])]:
            self.assert_fails(2, words, "tune", *arguments)

    def test_a_prediction_for_a_machine_that_is_not_here(self):
        text = self.printed("tune", "--predict", "all_reduce", "64KB", "-n", "64", "--cores", "64", "--sockets", "2")
        first, second, _, *table = text.splitlines()
        self.assertRegex(first, r"^all_reduce of 64 KiB on 64 ranks, 64 cores in 2 sockets: \S.*$")
        self.assertEqual(second, "selected by the model of the host")
        self.assertEqual(table[1].split()[0], first.split()[-1], "the fastest is selected")
        self.assertGreater(len(table), 6)
        found = json.loads(self.printed("tune", "--predict", "all_reduce", "64KB", "-n", "64", "--cores", "64", "--json"))
        times = [row["of_the_fastest"] for row in found["predictions"]]
        self.assertEqual(times, sorted(times))
        def small(*machine):
            said = self.printed("tune", "--predict", "all_reduce", "8", "-n", "64", "--cores", "16", *machine)
            return said.splitlines()[0]

        self.assertEqual(small("--threads", "64"),
                         "all_reduce of 8 B on 64 ranks, 16 cores with 64 threads in 1 socket: recursive_doubling")
        self.assertEqual(small(), "all_reduce of 8 B on 64 ranks, 16 cores in 1 socket: direct")
        many = ("tune", "--predict", "all_reduce", "512KB", "-n", "128", "--cores", "128")
        one, sixteen = self.printed(*many), self.printed(*many, "--caches", "16")
        self.assertIn("128 cores in 1 socket, 16 L3 caches: ", sixteen.splitlines()[0])
        self.assertNotEqual(one.splitlines()[4:], sixteen.splitlines()[4:])
        shared = self.printed("tune", "--predict", "all_reduce", "64KB", "-n", "4", "--cores", "2")
        self.assertIn("the configuration or the table", shared.splitlines()[1])

    def test_ranks_run_what_the_model_selects_where_a_table_was_measured_with_fewer_cores(self):
        path = self.new_folder() / "table.txt"
        path.write_text("cores 1\nall_reduce 2 0 ring\nend\n")
        rows = self.printed("bench", "allr", "--ranks", "4", "-b", "64", "-e", "16K", "-f", "16", "-n", "2", "--style", "nccom",
                            "--show-algorithm", TRELLIS_SELECTIONS=str(path)).splitlines()[1:4]
        names = {row.split()[-1] for row in rows}
        why = self.printed("tune", "--explain", "all_reduce", "64", "-n", "2", TRELLIS_SELECTIONS=str(path)).splitlines()[1]
        measured = self.printed("tune", "-n", "2", "--collectives", "barrier", "--machine", "*")
        if "\ncores 1\n" in measured:  # a host of one core, or a control group that grants less than two
            self.assertEqual(names, {"ring"})
            self.assertIn("the rule 'all_reduce 2 0 ring'", why)
        else:
            self.assertNotIn("ring", names)
            self.assertIn("measured where ranks share 1 cores; the model of the host selects", why)

    def test_a_file_that_cannot_be_written_is_known_at_once(self):
        self.assert_fails(1, "trellis: cannot write ", "tune", "-o", "/no/such/folder")

    def test_an_interruption_leaves_the_former_table_or_none(self):
        for former in (None, "all_reduce 2 0 ring\nend\n"):
            folder = self.new_folder()
            path = folder / "table.txt"
            if former:
                path.write_text(former)
            running = subprocess.Popen([TRELLIS, "tune", "-n", "2", "-o", path], stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL, start_new_session=True)
            program.await_children(running, 2)
            self.assertIsNone(running.poll())
            os.killpg(running.pid, signal.SIGINT)
            self.assertNotEqual(running.wait(timeout=60), 0)
            self.assertEqual([p.name for p in folder.iterdir()], ["table.txt"] if former else [])
            if former:
                self.assertEqual(path.read_text(), former)

    def test_an_interruption_tells_what_was_measured(self):
        path = self.new_folder() / "table.txt"
        for output, unwritten in ([], "no table was written"), (["-o", path], f"{path} was not written"):
            status, out, said = interrupted_on_a_terminal(
                [TRELLIS, "tune", "-n", "2", "--collectives", "all_reduce,all_gather", *output], r"[2-9]/\d+ all_reduce")
            self.assertEqual((status, out), (1, ""), said)
            self.assertRegex(said, r"# all_reduce on 2 ranks: [^\n]+\r\nall_reduce 2 \d+ \w+[^\n]*\r\n")
            self.assertTrue(said.endswith(f"\ntrellis: interrupted: {unwritten}, as rules are missing\r\n"), said)
            self.assertFalse(path.exists())

    def test_a_table_that_is_empty_or_cut_off_is_refused_by_name(self):
        path = self.new_folder() / "table.txt"
        whole = "machine *\nall_reduce 2 0 ring\nall_reduce 2 4096 mesh\nend\n"
        for text, said in [("", "it is empty"), (whole[:30], "it is cut off after line 2"), ("end\n", "no rule is in it"),
                           (whole + whole[:40], "line 7: ")]:
            path.write_text(text)
            for words in (["bench", "allr", "--ranks", "2", "-b", "64", "-e", "64", "-n", "1"],
                          ["tune", "--explain", "all_reduce", "64", "-n", "2"]):
                ran = trellis(*words, TRELLIS_SELECTIONS=str(path))
                self.assertNotEqual(ran.returncode, 0, (text, words))
                self.assertIn(f"{path}: no selection table: {said}", ran.stderr)
        path.write_text(whole)
        self.printed("bench", "allr", "--ranks", "2", "-b", "64", "-e", "64", "-n", "1", TRELLIS_SELECTIONS=str(path))

    def test_it_is_no_rank_itself(self):
        ran = trellis("tune", "-n", "2", RANK="0", WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT="29998")
        self.assertEqual((ran.returncode, ran.stdout), (2, ""))
        self.assertIn("starts its ranks itself", ran.stderr)


class Explain(program.Case):
    def test_what_is_selected_why_and_what_the_others_cost(self):
        text = self.printed("tune", "--explain", "all_reduce", "64KB", "-n", "2")
        first, why, empty, heading, *rows = text.splitlines()
        selected = re.fullmatch(r"all_reduce of 64 KiB on 2 ranks: (.+)", first)[1]
        self.assertRegex(why, r"^the built-in table: .+")
        self.assertEqual((empty, heading.split()[:2]), ("", ["algorithm", "time"]))
        self.assertEqual([re.split("  +", row)[0] for row in rows if row.endswith("yes")], [selected])
        self.assertGreater(len(rows), 10)
        self.assertGreaterEqual(min(int(row.split()[-2]) for row in rows), 5)  # samples
        self.assertGreater(len(self.printed("tune", "--explain", "all_reduce", "64KB", "-n", "2", "--all").splitlines()),
                           2 * len(rows))

    def test_costs_are_sorted(self):
        rows = json.loads(self.printed("tune", "--explain", "barrier", "0", "-n", "2", "--json"))["costs"]
        times = [row["time_us"] for row in rows]
        self.assertEqual(times, sorted(times))

    def test_a_table_and_a_variable_in_force(self):
        path = self.new_folder() / "table.txt"
        path.write_text("all_reduce 2 0 ring*2\nall_reduce 2 4096 direct\nend\n")
        text = self.printed("tune", "--explain", "all_reduce", "1KB", "-n", "2", TRELLIS_SELECTIONS=str(path))
        self.assertIn(f"1 KiB on 2 ranks: ring channels=2\nthe table {path}: the rule 'all_reduce 2 0 ring channels=2' begins at 0\n", text)
        path.write_text("all_reduce 2 0 ring*2\nmachine there\nall_reduce 2 0 mesh\nend\n")
        text = self.printed("tune", "--explain", "all_reduce", "1KB", "-n", "2", TRELLIS_SELECTIONS=str(path),
                            TRELLIS_MACHINE="there")
        self.assertIn(f"1 KiB on 2 ranks: mesh\nthe table {path}: the rule 'all_reduce 2 0 mesh' of machine there", text)
        text = self.printed("tune", "--explain", "all_reduce", "1KB", "-n", "2", TRELLIS_ALGORITHM="all_reduce=mesh")
        self.assertIn("1 KiB on 2 ranks: mesh\nselected by TRELLIS_ALGORITHM=all_reduce=mesh", text)


if __name__ == "__main__":
    unittest.main()
