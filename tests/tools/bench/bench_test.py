"""trellis bench: real ranks that check what they compute, in the words of nccl-tests. No test looks at a time."""
import csv
import json
import os
import pathlib
import re
import signal
import subprocess
import time
import unittest

import program
from program import TRELLIS, trellis
from terminal import run_on_a_terminal

QUICK = ["-n", "3", "-w", "1", "-T", "60"]
COLLECTIVES = ["all_reduce", "reduce_scatter", "all_gather", "broadcast", "reduce", "gather", "scatter", "all_to_all",
               "all_to_all_v", "all_gather_v", "reduce_scatter_v", "permute", "send_recv", "sendrecv"]
LAUNCHERS = re.compile(r"^(RANK|WORLD_SIZE|LOCAL_|MASTER_|OMPI_|PMI|SLURM_|TRELLIS_[A-Z])")


def bench(*arguments, environment={}, **how):
    own = {k: v for k, v in os.environ.items() if k == "TRELLIS_PROGRESS" or not LAUNCHERS.match(k)}
    return trellis("bench", *arguments, env=own | environment, **how)


class Case(program.Case):
    trellis = staticmethod(bench)

    def setUp(self):
        self.folder = self.new_folder()

    def path(self, name):
        return str(self.folder / name)

    def printed(self, *arguments, **how):
        return super().printed(*arguments, *([] if "--on" in arguments else QUICK), **how)

    def rows(self, *arguments, **how):
        path = self.path("results.json")
        self.printed(*arguments, "--json", path, **how)
        with open(path) as file:
            return json.load(file)["results"]


class Check(Case):
    def test_every_collective_is_right_by_interpreter_and_by_closed_form(self):
        for op in COLLECTIVES:
            for limit in ["1M", "1"]:
                with self.subTest(op=op, limit=limit):
                    rows = self.rows(op, "--ranks", "2", "-b", "40", "-e", "40000", "-f", "100", "-d", "fp32", "--check",
                                     "--in-place", "--interpret-up-to", limit)
                    self.assertGreaterEqual(len(rows), 2)
                    self.assertEqual([row["wrong"] for row in rows], [0] * len(rows))

    def test_three_ranks_every_type_and_operator(self):
        rows = self.rows("all_reduce_perf", "-t", "3", "-b", "1K", "-e", "1K", "-d", "all", "-o", "all")
        self.assertEqual({row["wrong"] for row in rows}, {0})
        self.assertEqual((len({row["type"] for row in rows}), len({row["redop"] for row in rows})), (17, 6))

    def test_a_file_that_works_in_place_is_measured_in_place_alone(self):
        for op in ["broadcast", "reduce", "all_gather"]:
            with self.subTest(op=op):
                path = self.path(op)
                algorithm = "ring" if op == "all_gather" else "binomial"
                subprocess.run([TRELLIS, "schedule", "show", op, "-a", algorithm, "-d", "3", "--in-place", "-o", path],
                               check=True)
                rows = self.rows(op, "--ranks", "3", "-b", "12K", "-e", "12K", "--check", "--algorithm", f"file:{path}")
                self.assertEqual([(row["in_place"], row["wrong"]) for row in rows], [(True, 0)])

    def test_a_file_of_more_chunks_than_the_interpreter_can_follow(self):
        path = self.path("sixteen_million")
        with open(path, "w") as file:
            file.write("trellis schedule 1\ncollective all_reduce\nranks 2\npieces 16777216\nchannels 1\n")
            for rank in range(2):
                file.write(f"rank {rank} scratch 0\n0 send in[0..16777215] to {1 - rank} tag 0\n"
                           f"1 recv_reduce out[0..16777215] = in[0..16777215] from {1 - rank} tag 0\n")
        rows = self.rows("all_reduce", "--ranks", "2", "-b", "1K", "-e", "1K", "--check", "--algorithm", f"file:{path}")
        self.assertEqual({row["wrong"] for row in rows}, {0})

    def test_rounding_of_sums_and_of_what_is_sent(self):
        for type, environment in [("bf16", {"TRELLIS_ROUNDING": "stochastic"}), ("fp32", {"TRELLIS_WIRE": "bf16"}),
                                  ("fp32", {"TRELLIS_WIRE": "bf16", "TRELLIS_ROUNDING": "stochastic"})]:
            for flags in [["all_reduce", "--streams", "2"], ["reduce_scatter", "-m", "2"], ["sendrecv"]]:
                for limit in ["1M", "1"]:
                    with self.subTest(type=type, environment=environment, flags=flags, limit=limit):
                        rows = self.rows(*flags, "--ranks", "3", "-b", "12K", "-e", "12K", "-d", type, "--check", "--in-place",
                                         "--interpret-up-to", limit, environment=environment)
                        self.assertEqual({row["wrong"] for row in rows}, {0})

    def test_every_root(self):
        rows = self.rows("broadcast_perf", "--ranks", "3", "-b", "4K", "-e", "4K", "-r", "all")
        self.assertEqual({(row["root"], row["wrong"]) for row in rows}, {(0, 0), (1, 0), (2, 0)})

    def test_shared_memory_streams_groups_and_repetitions(self):
        for flags in [["-R", "2"], ["--streams", "2"], ["-m", "3"], ["--inside", "2"], ["--threads"], ["--untouched"],
                      ["--check", "all_ones"], ["--algorithm", "ring*2/2"], ["--no-pin"], ["--unalign", "1"]]:
            with self.subTest(flags=flags):
                check = [] if "--check" in flags else ["--check"]
                rows = self.rows("all_reduce", "--ranks", "2", "-b", "64K", "-e", "64K", "-d", "bf16", *check, *flags)
                self.assertEqual({row["wrong"] for row in rows}, {0})

    def test_counts_of_uneven_blocks(self):
        path = self.path("counts.json")
        for op, counts in [("all_gatherv", [1, 3]), ("reduce_scatter_v", {"counts": [0, 5]}),
                           ("alltoallv", [[1, 2], [0, 3]])]:
            pathlib.Path(path).write_text(json.dumps(counts))
            with self.subTest(op=op):
                rows = self.rows(op, "--ranks", "2", "-b", "6K", "-e", "6K", "--check", "--variable-size-op-metadata", path)
                self.assertEqual({row["wrong"] for row in rows}, {0})


class Tables(Case):
    def test_the_table_of_nccl_tests(self):
        text = self.printed("all_gather_perf", "--ranks", "2", "-b", "1K", "-e", "4K", "-f", "2")
        rows = [line.split() for line in text.splitlines() if not line.startswith("#")]
        self.assertEqual([row[:5] for row in rows], [[str(1024 << i), str(128 << i), "float", "none", "-1"] for i in range(3)])
        self.assertTrue(all(len(row) == 17 and row[8] == row[12] == "0" for row in rows))
        self.assertIn("# Collective test starting: all_gather_perf\n", text)
        self.assertEqual(len(re.findall(r"^#  Rank +[01] Group +0 Pid +\d+ on ", text, re.MULTILINE)), 2)
        self.assertRegex(text, r"\n# Out of bounds values : 0 OK\n# Avg bus bandwidth    : [\d.e+-]+\n#\n# Collective test "
                               r"concluded: all_gather_perf\n$")

    def test_the_table_of_nccom_test(self):
        text = self.printed("allr", "--ranks", "2", "-b", "1kb", "-e", "4kb", "-f", "2", "-d", "uint8", "-c", "0", "--style",
                            "nccom", "--stats", "avg", "p50", "p99", "--show-algorithm", "--algorithm", "ring")
        heading, *rows, last = [line for line in text.splitlines() if not line.startswith("#")]
        self.assertEqual(heading.split(), ["size(B)", "count(elems)", "type", "time:avg(us)", "time:p50(us)", "time:p99(us)",
                                           "algbw(GB/s)", "busbw(GB/s)", "algorithm"])
        self.assertEqual([row.split()[:3] + row.split()[-1:] for row in rows],
                         [[str(1024 << i), str(1024 << i), "uint8", "ring"] for i in range(3)])
        self.assertRegex(last, r"^Avg bus bandwidth:\t[\d.e+-]+GB/s$")

    def test_json_csv_and_plot_tell_the_same(self):
        rows = self.rows("all_reduce_perf", "--ranks", "2", "-b", "8", "-e", "512", "-f", "8", "--csv", self.path("r.csv"),
                         "--plot", self.path("r.svg"))
        for key in ["op", "bytes", "count", "type", "time_us", "algbw_GBps", "busbw_GBps", "wrong"]:
            self.assertTrue(all(key in row for row in rows), key)
        self.assertEqual([(row["bytes"], row["in_place"]) for row in rows],
                         [(8, False), (8, True), (64, False), (64, True), (512, False), (512, True)])
        with open(self.path("r.csv"), newline="") as file:
            table = list(csv.DictReader(line for line in file if not line.startswith("#")))
        self.assertEqual([row["bytes"] for row in table], [str(row["bytes"]) for row in rows])
        svg = pathlib.Path(self.path("r.svg")).read_text()
        self.assertEqual(svg.count('class="curve"'), 2 * 2 + 2)  # two panels and the legend
        [row, *_] = self.rows("all_reduce", "--on", "sim:torus:2x4", "--algorithm", "hierarchical levels=ring,mesh", "-b", "1M", "-e", "1M",
                              "--csv", self.path("r.csv"))
        with open(self.path("r.csv"), newline="") as file:
            [table, *_] = csv.DictReader(line for line in file if not line.startswith("#"))
        self.assertIn("levels=(ring,mesh)", row["algorithm"])
        self.assertEqual((table["algorithm"], table["bytes"]), (row["algorithm"], str(row["bytes"])))
        self.assertNotIn(None, table)

    def test_a_plot_of_several_cycles_has_one_dot_a_size(self):
        rows = self.rows("all_reduce_perf", "--ranks", "2", "-b", "8", "-e", "64", "-f", "8", "-N", "3", "--plot",
                         self.path("r.svg"))
        self.assertEqual(len(rows), 3 * 2 * 2)
        svg = pathlib.Path(self.path("r.svg")).read_text()
        self.assertEqual(svg.count('class="dot"'), 2 * 2 * 2)  # two panels, two curves, two sizes

    def test_the_other_names_of_the_json_flag(self):
        for flag in ["-J", "--report-to-json-file"]:
            self.printed("allr", "--ranks", "2", "-b", "8", "-e", "8", flag, self.path("other.json"))
            self.assertEqual(len(json.loads(pathlib.Path(self.path("other.json")).read_text())["results"]), 2)

    def test_a_terminal_sees_progress(self):
        ran, said = run_on_a_terminal([TRELLIS, "bench", "allr", "--ranks", "2", "-b", "8", "-e", "8", *QUICK])
        self.assertEqual(ran.returncode, 0)
        self.assertIn("1/2 allr 8 B", said)
        self.assertTrue(said.endswith("\r\033[K"), said)


class Jobs(Case):
    def test_under_launch(self):
        ran = subprocess.run([TRELLIS, "launch", "-n", "3", "--raw", "--", TRELLIS, "bench", "all_reduce", "-b", "8K",
                              "-e", "8K", "--check", *QUICK], capture_output=True, text=True)
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))
        self.assertEqual(ran.stdout.count("# Collective test starting"), 1)  # rank 0 alone prints

    def test_as_many_ranks_as_were_launched(self):
        alone = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29999"}
        self.assert_fails(2, "2 ranks are asked for", "allr", "--ranks", "2", environment=alone)
        self.assertIn("8192", self.printed("allr", "-b", "8K", "-e", "8K", environment=alone))

    def test_more_ranks_than_cores(self):
        rows = self.rows("all_reduce", "--ranks", "9", "-b", "4K", "-e", "4K", "--check")
        self.assertEqual([(row["ranks"], row["wrong"]) for row in rows], [(9, 0)] * 2)

    def test_a_killed_rank_ends_it_and_is_named(self):
        running = subprocess.Popen([TRELLIS, "bench", "all_reduce_perf", "--ranks", "3", "-b", "8K", "-e", "8K", "-N", "0"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        pids = {}
        for line in running.stdout:
            found = re.match(r"#  Rank +(\d+) Group +0 Pid +(\d+) ", line)
            if found:
                pids[int(found[1])] = int(found[2])
            if not line.startswith("#"):
                break
        os.kill(pids[1], signal.SIGKILL)
        _, said = running.communicate(timeout=60)
        self.assertEqual(running.returncode, 1)
        self.assertRegex(said, r"^trellis: [^\n]*rank 1[^\n]*\n$")
        self.assertEqual([pid for pid in pids.values() if os.path.exists(f"/proc/{pid}")], [])

    def test_an_interruption_keeps_the_rows_that_are_done(self):
        results = self.path("results.json")
        words = [TRELLIS, "bench", "all_reduce_perf", "-b", "8", "-e", "64", "-f", "8", "-N", "0", "-J", results]
        launch = [TRELLIS, "launch", "-n", "2", "--raw", "--"]
        for how in ([*words, "--ranks", "2"], [*words, "--ranks", "2", "--threads"], [*launch, *words]):
            for number in (signal.SIGINT, signal.SIGTERM):
                with self.subTest(how=how, signal=number):
                    out, said, status = self.interrupted(how, number)
                    self.assertEqual(status, 1, said)
                    kept = json.loads(pathlib.Path(results).read_text())
                    os.unlink(results)
                    rows = len(re.findall(r"^ +(8|64) .*\n", out, re.M))
                    self.assertGreater(rows, 0)
                    self.assertEqual((kept["interrupted"], len(kept["results"])), (f"{rows} rows are there", 2 * rows))
                    self.assertIn("# Avg bus bandwidth", out)
                    self.assertIn(f"trellis: interrupted: {rows} rows are there\n", said)

    def test_an_interruption_ends_a_row_that_waits_for_a_rank(self):
        def stop(out):
            for rank, pid in re.findall(r"^#  Rank +(\d+) Group +0 Pid +(\d+) ", out, re.M):
                pids.append(pid)
                if rank == "1":
                    os.kill(int(pid), signal.SIGSTOP)
        pids = []
        out, said, status = self.interrupted([TRELLIS, "bench", "allr", "--ranks", "2", "-b", "8", "-e", "8", "-N", "0",
                                              "-T", "600"], signal.SIGINT, stop)
        self.assertEqual(status, 1)
        self.assertRegex(said, r"^trellis: interrupted: \d+ rows are there\n$")
        self.assertEqual((len(pids), [pid for pid in pids if os.path.exists(f"/proc/{pid}")]), (2, []))

    def interrupted(self, words, number, first=lambda out: None):
        """Sends a signal when it has printed a row. Returns its output, what it said of errors, and its status."""
        running = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(running.kill)
        out = ""
        for line in running.stdout:
            out += line
            if re.match(" +8 ", line):
                break
        first(out)
        running.send_signal(number)
        with running:
            return out + running.stdout.read(), running.stderr.read(), running.wait(300)

    def test_no_rank_outlives_its_parent(self):
        running = subprocess.Popen([TRELLIS, "bench", "all_reduce_perf", "--ranks", "2", "-b", "8K", "-e", "8K", "-N", "0"],
                                   stdout=subprocess.PIPE, text=True)
        pids = []
        for line in running.stdout:
            pids += re.findall(r" Pid +(\d+) ", line)
            if not line.startswith("#"):
                break
        running.kill()
        running.stdout.close()
        running.wait()
        deadline = time.monotonic() + 30
        alive = pids
        while alive and time.monotonic() < deadline:
            alive = [pid for pid in pids if os.path.exists(f"/proc/{pid}") and state(pid) != "Z"]
            time.sleep(0.01)
        self.assertEqual((len(pids), alive), (2, []))


def state(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"


class Devices(Case):
    def test_a_simulated_core_has_right_values_and_the_simulators_time(self):
        common = ["all_reduce", "--ranks", "4", "-b", "4K", "-e", "256K", "-f", "8", "--style", "nccom", "--algorithm", "ring"]
        rows = self.rows(*common, "--check", "--device", "sim:trn2.48xlarge")
        priced = self.rows(*common, "--no-interval", "--on", "sim:trn2.48xlarge")
        self.assertEqual([row["wrong"] for row in rows], [0, 0, 0])
        for ran, said in zip(rows, priced):
            self.assertAlmostEqual(ran["time_us"], said["time_us"], places=3)

    def test_native_collectives_are_reported_or_why_they_are_not_used(self):
        library = pathlib.Path(os.environ["TRELLIS_BINARY_DIR"]) / "libnrt/libnrt.so.1"
        if not library.exists():
            self.skipTest(f"{library} is not built")
        common = ["--device", "neuron", "--threads", "--ranks", "2", "-b", "4K", "-e", "4K", "-c", "1"]
        neuron = {"environment": {"TRELLIS_LIBNRT": str(library), "NEURON_RT_LOG_LEVEL": "QUIET"}}
        rows = self.rows("all_reduce_perf", *common, **neuron)
        self.assertEqual([(row["algorithm"], row["wrong"]) for row in rows], [("native", 0)] * 2)
        neuron["environment"]["NEURON_RT_ROOT_COMM_ID"] = f"127.0.0.1:{program.free_port()}"
        processes = [word for word in common if word != "--threads"]
        rows = self.rows("all_reduce_perf", *processes, **neuron)
        self.assertEqual([(row["algorithm"], row["wrong"]) for row in rows], [("native", 0)] * 2)
        del neuron["environment"]["NEURON_RT_ROOT_COMM_ID"]
        out = self.printed("all_reduce_perf", *processes, **neuron)
        self.assertIn("expected one NEURON_RT_ROOT_COMM_ID for all", out)
        out = self.printed("broadcast_perf", *common, **neuron)
        self.assertIn("# Not native: native collectives have no broadcast", out)

    def test_what_does_not_go_with_a_device(self):
        for arguments, words in [(["--device", "abacus"], "known are host, neuron, sim:MACHINE"),
                                 (["--device", "sim:trn2.48xlarge", "--on", "sim:trn2.48xlarge"], "--on simulates them"),
                                 (["--device", "sim:trn2.48xlarge", "-C", "1"], "is simulated")]:
            with self.subTest(arguments=arguments):
                ran = bench("all_reduce", *arguments)
                self.assertEqual(ran.returncode, 2)
                self.assertIn(words, ran.stderr)


class Mistakes(Case):
    def test_one_line_each(self):
        self.assert_fails(2, "did you mean 'all_reduce'?", "al_reduce")
        self.assert_fails(2, "did you mean '--minbytes'?", "allr", "--minbyte", "8")
        self.assert_fails(2, "'5x' is no size", "allr", "-b", "5x")
        self.assert_fails(2, "no operation", "-b", "8")
        self.assert_fails(2, "--cudagraph 1: expected 0; there are no graphs", "all_reduce_perf", "-G", "1")
        self.assert_fails(2, "root 5: expected 0 or 1", "broadcast", "--ranks", "2", "--root", "5")
        self.assert_fails(2, "root 1: expected 0\n", "broadcast", "--ranks", "1", "--root", "1")
        self.assert_fails(2, "of memory, and", "allr", "--ranks", "2", "-b", "8T", "-e", "8T")
        self.assert_fails(2, "no algorithm is called 'rung'", "allr", "--ranks", "2", "--algorithm", "rung")
        self.assert_fails(2, "counts for 3 blocks", "allgv", "--ranks", "2", "--variable-size-op-metadata", self.three())
        self.assert_fails(1, "No such file", "allgv", "--variable-size-op-metadata", self.path("none"))

    # A reader of the table from a pipe would take its heading for a start.
    def test_nothing_is_printed_before_a_complaint(self):
        small = ["--ranks", "2", "-b", "8", "-e", "8", *QUICK]
        no, wrong = self.path("no.schedule"), self.path("wrong.schedule")
        pathlib.Path(no).write_text("no schedule\n")
        subprocess.run([TRELLIS, "schedule", "convert", "all_reduce", "-a", "ring", "--dims", "2", "--to", "text", "-o", wrong],
                       check=True)
        right = pathlib.Path(wrong).read_text()
        pathlib.Path(wrong).write_text(right.replace("recv_reduce out[1] = in[1] from 0", "recv out[1] from 0"))
        for status, words, arguments in [
                (2, "no algorithm is called 'nope'", ["allr", "--algorithm", "nope"]),
                (2, "it serves other collectives", ["allr", "--algorithm", "binomial"]),
                (2, "there are 4 lanes", ["allr", "--algorithm", "ring*99", "--in-place"]),
                (1, "trellis: cannot read '/nowhere.schedule': No such file", ["allr", "--algorithm", "file:/nowhere.schedule"]),
                (2, "expected 'trellis schedule 1'", ["allr", "--algorithm", "file:" + no]),
                (2, "is wrong: ", ["allr", "--algorithm", "file:" + wrong]),
                (2, "permute source 0 is given twice", ["permute", "--custom-src-target-pairs", "0:1,0:1"]),
                (2, "permute target 5 is not a rank", ["permute", "--custom-src-target-pairs", "0:5"])]:
            for place in [[], ["--threads"], ["--on", "sim:ring:2"]]:
                simulated = place[:1] == ["--on"]
                if simulated and ("file:" in arguments[-1] or "*99" in " ".join(arguments)):
                    continue
                with self.subTest(arguments=arguments, place=place):
                    ran = bench(*arguments, *(small[:-len(QUICK)] if simulated else small), *place)
                    self.assertEqual((ran.returncode, ran.stdout), (status, ""), ran.stderr)
                    self.assertIn(words, ran.stderr)

    def test_given_schedules_are_checked(self):
        """One sends memory that nobody has written, one is numbered against its waits; both are right."""
        rubbish = ("collective all_reduce\nranks 2\npieces 1\nchannels 1\n"
                   "rank 0 scratch 1 like 0\n0 send in[0] to 1 tag 0\n1 recv_reduce out[0] = in[0] from 1 tag 0\n"
                   "2 send tmp[0] to 1 tag 1\n"
                   "rank 1 scratch 1 like 0\n0 send in[0] to 0 tag 0\n1 recv_reduce out[0] = in[0] from 0 tag 0\n"
                   "2 recv tmp[0] from 0 tag 1\n")
        against = ("collective reduce\nranks 2\npieces 2\nroot 0\nchannels 1\n"
                   "rank 0 scratch 0\n0 recv_reduce out[0] = in[0] from 1 tag 0\n"
                   "1 recv_reduce out[1] = in[1] from 1 tag 1\n"
                   "rank 1 scratch 0\n0 send in[1] to 0 tag 1\n1 send in[0] to 0 tag 0 after 0\n")
        for op, text in [("all_reduce", rubbish), ("reduce", against)]:
            path = self.path("given.txt")
            with open(path, "w") as file:
                file.write("trellis schedule 1\n" + text)
            rows = self.rows(op, "--ranks", "2", "-b", "4096", "-e", "4096", "-d", "fp32", "--check", "--algorithm",
                             "file:" + path)
            self.assertEqual({row["wrong"] for row in rows}, {0})

    def test_what_was_not_checked_is_not_called_right(self):
        for flags in [["--on", "sim:ring:4"], ["-t", "2", "-c", "0"]]:
            text = self.printed("all_reduce_perf", "-b", "8", "-e", "8", *flags)
            self.assertIn("\n# Out of bounds values : N/A\n", text)

    def three(self):
        path = self.path("three.json")
        pathlib.Path(path).write_text("[1, 2, 3]")
        return path

    def test_results_that_cannot_be_written(self):
        for flag in ["--json", "--csv", "--plot"]:
            ran = bench("allr", "--ranks", "2", "-b", "8", "-e", "8", *QUICK, flag, self.path("no/such/folder"))
            self.assertEqual((ran.returncode, ran.stdout), (1, ""))  # before anything is measured
            self.assertRegex(ran.stderr, r"^trellis: cannot write [^\n]+\n$")
        with open("/dev/full", "w") as full:
            ran = subprocess.run([TRELLIS, "bench", "allr", "--ranks", "2", "-b", "8", "-e", "8", *QUICK], stdout=full,
                                 stderr=subprocess.PIPE, text=True)
        self.assertEqual(ran.returncode, 1)
        self.assertIn("No space left on device", ran.stderr)


if __name__ == "__main__":
    unittest.main()
