"""trellis machine tune, trellis machine search and trellis bench --on: tables, charts, explanations, and going on."""
import functools
import json
import re
import shlex
import signal
import subprocess
import time
import unittest
import xml.etree.ElementTree as xml

import program
from program import TRELLIS, without_origin


def interrupted(words, points, size):
    """What comes of a command that gets a SIGINT when its file of points has grown so large: status, output, errors.
    It has one thread, so that it is far from its end by then."""
    started = subprocess.Popen([TRELLIS, *words, "--threads", "1"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True)
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and (not points.exists() or points.stat().st_size < size):
        time.sleep(0.02)
    started.send_signal(signal.SIGINT)
    out, err = started.communicate(timeout=120)
    return started.returncode, out, err


def regions_in(text):
    """Bytes, config and time of each line of a table of regions."""
    units = {"B": 0, "KiB": 10, "MiB": 20, "GiB": 30}
    lines = re.findall(r"from +(\S+) (\S+) +(?:\((\d+) B\) +)?(\S.*?)  +(\S+ \S+)\n", text)
    return [(int(exact) if exact else int(size) << units[unit], config, time) for size, unit, exact, config, time in lines]


trellis = functools.partial(program.trellis, timeout=300)


class Case(program.Case):
    trellis = staticmethod(trellis)

    def setUp(self):
        self.folder = self.new_folder()


class Tune(Case):
    def test_a_table_that_the_library_takes_and_a_chart(self):
        table, chart = self.folder / "table.txt", self.folder / "chart.svg"
        text = self.printed("machine", "tune", "full:4", "--collectives", "all_reduce,all_gather", "--sizes", "8..1MB",
                            "--rows", "-o", table, "--chart", chart)
        self.assertIn("all_reduce on 4 ranks (all of 4)", text)
        lines = without_origin(table.read_text()).splitlines()
        self.assertEqual(lines[1], "machine full:4")
        self.assertEqual(lines[-1], "end")
        self.assertEqual({line.split()[1] for line in lines[2:-1]}, {"4"})
        first = next(line for line in lines if line.startswith("all_reduce 4 0 ")).split()[3]
        row = self.printed("bench", "allr", "--ranks", "4", "-b", "16", "-e", "16", "-n", "2", "--style", "nccom", "--show-algorithm",
                           TRELLIS_SELECTIONS=str(table), TRELLIS_MACHINE="full:4").splitlines()[1]
        self.assertEqual(row.split()[-1], first)
        root = xml.parse(chart).getroot()
        words = " ".join(root.itertext())
        self.assertIn("all_gather on 4 ranks", words)
        self.assertTrue(root.tag.endswith("svg"))

    def test_published_family_changes_places_once_and_in_order(self):
        text = self.printed("machine", "tune", "trn2.48xlarge", "--collectives", "all_reduce", "--algorithms",
                            "mesh,rdh,kangaring", "--sizes", "1KB..1GB")
        names = [config.split()[0] for _, config, _ in regions_in(text)]
        self.assertEqual(names, ["mesh", "rdh", "kangaring"], text)

    def test_times_are_those_of_the_sizes_beside_them(self):
        for sizes in ("1KB,256MB", "1KB..256MB"):
            text = self.printed("machine", "tune", "ring:8", "--collectives", "all_reduce", "--sizes", sizes)
            regions = regions_in(text)
            self.assertGreaterEqual(len(regions), 3, text)
            for size, config, shown in regions:
                answer = self.printed("sim", "all_reduce", "--machine", "ring:8", "-a", config, "--bytes", size)
                self.assertIn(f": {shown} by ", answer.splitlines()[0], text)

    def test_borders_hardly_depend_on_where_samples_lie(self):
        words = ["machine", "tune", "ring:8", "--collectives", "all_reduce", "--algorithms", "direct,bine,ring", "--sizes"]
        few, many = regions_in(self.printed(*words, "1KB,256MB")), regions_in(self.printed(*words, "1KB..256MB"))
        self.assertGreaterEqual(len(many), 2)
        self.assertEqual([config.split()[0] for _, config, _ in few], [config.split()[0] for _, config, _ in many])
        for (size, *_), (other, *_) in zip(few, many):
            self.assertLess(abs(size - other), 0.05 * other)  # prices have steps, and may cross more than once

    def test_another_file_is_not_taken_for_points(self):
        points = self.folder / "points"
        words = ["machine", "tune", "ring:8", "--collectives", "all_reduce", "--sizes", "8", "--points", points]
        points.write_text("a letter\n")
        done = trellis(*words)
        self.assertEqual(done.returncode, 2)
        self.assertIn("something else is in this file", done.stderr)
        self.assertEqual(points.read_text(), "a letter\n")
        points.unlink()
        trellis(*words)
        lines = points.read_text().splitlines()
        lines[1] = " ".join(w + "^" if i == 2 else w for i, w in enumerate(lines[1].split()))
        points.write_text("\n".join(lines) + "\n")
        done = trellis(*words)
        self.assertEqual(done.returncode, 2)
        self.assertIn("points: damaged: ", done.stderr)

    def test_points_are_not_priced_again(self):
        points = self.folder / "points"
        words = ["machine", "tune", "ring:8", "--collectives", "all_reduce", "--sizes", "8..64KB", "--points", points]
        first = self.printed(*words)
        size = points.stat().st_size
        self.assertEqual(self.printed(*words), first)
        self.assertEqual(points.stat().st_size, size)
        points.write_text(points.read_text()[: size // 2])  # within a line, most likely
        self.assertEqual(self.printed(*words), first)

    def test_values_given_twice_are_tried_once(self):
        table = self.folder / "table.txt"
        words = ["machine", "tune", "ring:8", "--collectives", "all_reduce", "--sizes", "64KB", "--algorithms", "ring,ring",
                 "--channels", "1,1", "--segments", "1", "--points", self.folder / "points"]
        self.assertNotIn("interrupted", self.printed(*words))
        self.assertNotIn("interrupted", self.printed(*words, "-o", table))
        self.assertIn("all_reduce 8 0 ring", table.read_text())

    def test_interrupted_it_gives_what_it_has_and_goes_on(self):
        points = self.folder / "points"
        words = ["machine", "tune", "trn2.48xlarge", "--collectives", "all_reduce", "--points", str(points)]
        status, out, err = interrupted(words, points, 500)
        self.assertEqual((status, err), (1, ""))
        self.assertRegex(out, r"interrupted: \d+ of \d+ points are done")
        self.assertIn("all_reduce on 64 ranks", out)

    def test_an_interruption_leaves_the_former_table_and_chart_or_none(self):
        for former in (None, "all_reduce 64 0 ring\nend\n"):
            points, table, chart = (self.folder / name for name in ("points", "table.txt", "chart.svg"))
            points.unlink(missing_ok=True)
            for path in (table, chart):
                if former:
                    path.write_text(former)
            words = ["machine", "tune", "trn2.48xlarge", "--collectives", "all_reduce", "--points", str(points)]
            status, out, err = interrupted([*words, "-o", str(table), "--chart", str(chart)], points, 500)
            self.assertEqual((status, err), (1, ""))
            self.assertIn(f"{table} and {chart} were not written, as points are missing", out)
            self.assertEqual([path.read_text() if path.exists() else None for path in (table, chart)], [former] * 2)

    def test_ranks_share_a_sweep_and_the_first_has_it_all(self):
        points = self.folder / "points"
        words = ["machine", "tune", "ring:8", "--collectives", "all_reduce,all_gather", "--sizes", "8..64KB"]
        alone = self.printed(*words)
        ran = trellis("launch", "-n", "3", "--", TRELLIS, *words, "--points", points)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        lines = [line.split("] ", 1)[-1] for line in ran.stdout.splitlines()]
        self.assertEqual([line for line in lines if "  from" in line],
                         [line for line in alone.splitlines() if "  from" in line])
        parts = [self.folder / name for name in ("points", "points.1", "points.2")]
        self.assertEqual([part for part in parts if not part.exists()], [])  # a rank that comes late has nothing to price
        size = points.stat().st_size
        self.assertEqual(self.printed(*words, "--points", points), alone)
        self.assertEqual(points.stat().st_size, size)  # nothing was left to price, or to join
        for part in parts[1:]:
            self.assertEqual(set(part.read_text().splitlines()) - set(points.read_text().splitlines()), set())
        ran = trellis("machine", "tune", "ring:8", RANK="0", WORLD_SIZE="2")
        self.assertEqual(ran.returncode, 2)
        self.assertIn("--points FILE says where they share", ran.stderr)

    def test_what_is_wrong_is_told_before_anything_is_priced(self):
        words = ["machine", "tune", "ring:8", "--collectives", "all_reduce", "--sizes", "8..64KB"]
        chart = self.folder / "chart.svg"
        self.assert_fails(2, "--published foo: expected a name and where it begins", *words, "--published", "foo", "--chart", chart)
        self.assertFalse(chart.exists())
        for option in ("-o", "--chart"):
            self.assert_fails(1, "cannot write '/nonexistent/x.svg'", *words, option, "/nonexistent/x.svg")

    def test_a_part_of_a_sweep_is_joined_by_a_later_run(self):
        points = self.folder / "points"
        words = ["machine", "tune", "ring:8", "--collectives", "all_reduce", "--sizes", "8..64KB", "--points", points]
        self.assertEqual(self.printed(*words, RANK="1", WORLD_SIZE="2"), "")  # as if rank 0 had been lost
        self.assertFalse(points.exists())
        part = (self.folder / "points.1").read_text()
        self.printed(*words)
        self.assertEqual(set(part.splitlines()) - set(points.read_text().splitlines()), set())

    def test_the_library_runs_what_the_table_of_a_machine_says(self):
        table = self.folder / "table.txt"
        self.printed("machine", "tune", "trn1.32xlarge", "--groups", "inner-8", "--collectives",
                     "all_reduce,all_gather", "--sizes", "1KB,64KB,1MB", "--algorithms", "torus,hierarchical,bine",
                     "-o", table)
        rules = [line.split() for line in table.read_text().splitlines() if line.startswith("all_")]
        self.assertTrue(all(rule[1] == "8" and rule[4] == "dims=2x4" for rule in rules), rules)
        for operation in ["all_reduce", "all_gather"]:
            for size in [4096, 262144]:
                wanted = [" ".join(rule[3:]) for rule in rules if rule[0] == operation and int(rule[2]) <= size][-1]
                text = self.printed("bench", operation + "_perf", "-t", "8", "-b", size, "-e", size, "-n", "2", "-w",
                                    "1", "-c", "1", "--show-algorithm", TRELLIS_SELECTIONS=str(table),
                                    TRELLIS_MACHINE="trn1.32xlarge", TRELLIS_TRANSPORT="loopback")
                self.assertIn(wanted, text)

    def test_published_regions_stand_beside_ours(self):
        chart = self.folder / "chart.svg"
        self.printed("machine", "tune", "ring:4", "--collectives", "all_reduce", "--sizes", "8..1MB", "--chart", chart,
                     "--published", "mesh:0,ring:64KB")
        words = " ".join(xml.parse(chart).getroot().itertext())
        self.assertIn("published: mesh", words)
        ran = trellis("machine", "tune", "ring:4", "--published", "mesh")
        self.assertEqual(ran.returncode, 2)

    def test_explanations(self):
        text = self.printed("machine", "tune", "trn2.48xlarge", "--explain", "all_reduce", "64KB", "--channels", "1",
                            "--segments", "1")
        self.assertIn("all_reduce of 64 KiB on 64 ranks of trn2.48xlarge", text)
        self.assertRegex(text, r"\d+% ")
        self.assertRegex(text, r"nothing is faster than \S+ us by latency")

    def test_slips(self):
        for words, arguments in [("no machine is called 'trn9'", ["tune", "trn9"]),
                                 ("has no group 'inner-5': expected all", ["tune", "ring:4", "--groups", "inner-5"]),
                                 ("expected sizes like 8..16MB", ["tune", "ring:4", "--sizes", "64..8"]),
                                 ("did you mean 'all_reduce'?", ["tune", "ring:4", "--collectives", "al_reduce"]),
                                 ("--chart goes without --explain", ["tune", "ring:4", "--explain", "all_reduce", "64KB", "--chart", "c.svg"]),
                                 ("machine is required", ["tune"]),
                                 ("all_to_all is not synthesised: expected all_gather",
                                  ["search", "ring:4", "all_to_all", "--synthesise"]),
                                 ("--show: '0': expected a number above 0", ["search", "ring:4", "allr", "--show", "0"]),
                                 ("--threads: Value -1 not in range 0 to 1024", ["tune", "ring:4", "--threads", "-1"]),
                                 ("ring:4 has no era '1999': it has no chip", ["search", "ring:4", "allr", "--era", "1999"]),
                                 ("op is required", ["search", "ring:4"])]:
            self.assert_fails(2, words, "machine", *arguments)


class Search(Case):
    def test_what_is_found_is_proved_and_can_be_read(self):
        found = self.folder / "found.txt"
        text = self.printed("machine", "search", "full:4/clos:2", "all_gather_perf", "--bytes", "16MB", "--levels", "2",
                            "--algorithms", "ring,direct,mesh", "-o", found)
        self.assertIn("compositions tried", text)
        self.assertRegex(text, r"hierarchical levels=\(.*\) dims=")
        self.assertEqual(trellis("schedule", "verify", found).returncode, 0)
        again = shlex.split(text.splitlines()[-1])
        self.assertEqual(again[:3], ["trellis", "schedule", "verify"])
        self.printed(*again[1:])

    def test_interrupted_it_gives_what_it_has_and_goes_on(self):
        points = self.folder / "points"
        words = ["machine", "search", "trn1.32xlarge", "all_reduce", "--bytes", "1MB", "--levels", "2", "--moves",
                 "300000", "--synthesise", "--points", str(points)]
        status, out, err = interrupted(words, points, 3000)
        self.assertEqual(status, 1, out + err)
        self.assertIn("then interrupted", out)
        self.assertIn("interrupted: these are the fastest so far, and not proved", out)
        size = points.stat().st_size
        whole = self.printed(*words)
        self.assertGreater(points.stat().st_size, size)
        self.assertIn(" over ", points.read_text())
        size = points.stat().st_size
        self.assertEqual(self.printed(*words), whole)
        self.assertEqual(points.stat().st_size, size)
        points.unlink()
        self.assertEqual(self.printed(*words), whole)

    def test_interrupted_it_ends_and_writes_no_schedule(self):
        found, points = self.folder / "found.schedule", self.folder / "points"
        words = ["machine", "search", "trn2.48xlarge x 4", "all_reduce", "--bytes", "64MB", "--points", str(points), "-o",
                 str(found)]
        for size in (1, 2000):
            status, out, err = interrupted(words, points, size)
            self.assertEqual((status, err), (1, ""), out)
            self.assertIn("then interrupted\n", out)
            self.assertIn(f"interrupted: these are the fastest so far, and not proved; {found} was not written", out)
            self.assertFalse(found.exists())

    # What `trellis sim` chooses is one of the algorithms as they are: a gain is over that, too.
    def test_the_gain_is_over_what_sim_chooses(self):
        for machine in ("full:4/clos:2", "trn2.3xlarge x 2"):
            chosen = json.loads(self.printed("sim", "all_reduce", "-m", machine, "-b", "64MB", "--no-interval", "--json"))
            text = self.printed("machine", "search", machine, "all_reduce", "--bytes", "64MB", "--levels", "2",
                                "--algorithms", "ring", "--moves", "20000")
            fixed = json.loads(self.printed("sim", "all_reduce", "-m", machine, "-b", "64MB", "--no-interval", "--json",
                                            "-a", re.search(r"^fixed .*\n(\S.*?)  ", text, re.MULTILINE)[1]))
            self.assertLessEqual(fixed["time_ps"], chosen["time_ps"], text)

    # It has other channels, segments and shapes than a table's own at times.
    def test_a_table_is_nowhere_slower_than_what_sim_chooses(self):
        for machine, size in (("full:4/clos:2", "64MB"), ("trn2.3xlarge x 2", "64MB"), ("torus:4x2", "64KB")):
            chosen = json.loads(self.printed("sim", "all_reduce", "-m", machine, "-b", size, "--no-interval", "--json"))
            text = self.printed("machine", "tune", machine, "--collectives", "all_reduce", "--sizes", size)
            time, unit = re.search(r" ([0-9.]+) ([num]?s)$", text, re.MULTILINE).groups()
            picoseconds = float(time) * {"ns": 1e3, "us": 1e6, "ms": 1e9, "s": 1e12}[unit]
            self.assertLessEqual(picoseconds, chosen["time_ps"] * 1.0005, text)  # four digits are printed

    def test_a_schedule_is_made_for_a_machine_with_a_dead_link_and_the_library_runs_it(self):
        for name in ["found.schedule", "found.xml"]:
            found = self.folder / name
            text = self.printed("machine", "search", "torus:4x2", "all_reduce", "--bytes", "16MB", "--levels", "2",
                                "--algorithms", "ring,direct", "--what-if", "dead:0-1", "--synthesise", "-o", found)
            self.assertRegex(text, r"synthesised, \d+ pieces?.*: ")
            self.assertRegex(text, r"found: \d+\.\d% less time")
            self.assertEqual(trellis("schedule", "verify", found).returncode, 0)
            run = self.printed("bench", "all_reduce_perf", "-t", "8", "-b", "64K", "-e", "64K", "-n", "2", "-w", "1",
                               "-c", "1", "--algorithm", f"file:{found}", "--show-algorithm")
            self.assertIn(f"file:{found}", run)
        ran = trellis("bench", "allr", "--ranks", "4", "-b", "64", "-e", "64", "--algorithm", f"file:{found}")
        self.assertNotEqual(ran.returncode, 0)
        self.assertIn("on 8 ranks", ran.stderr)

    def test_a_barrier_has_no_bytes(self):
        self.assertTrue(self.printed("machine", "search", "ring:4", "barrier").startswith("barrier on 4 ranks of ring:4"))
        self.assert_fails(2, "--bytes 8: barrier moves no data", "machine", "search", "ring:4", "barrier",
                          "--bytes", "8")

    def test_orders_and_splits_are_found_and_can_be_made_again(self):
        text = self.printed("machine", "search", "torus:4x2", "all_gather", "--bytes", "64MB", "--levels", "2",
                            "--algorithms", "ring,torus", "--show", "400")
        self.assertRegex(text, r"torus dims=4x2 order=\(1,0\) ")
        self.assertRegex(text, r"split levels=\(.+:\d,.+:\d\)")
        self.printed("schedule", "verify", "all_gather", "-a", "split", "--dims", "4x2", "--levels",
                     "torus:3,hierarchical(ring,ring)@4x2:2")
        self.printed("schedule", "verify", "all_gather", "-a", "torus", "--dims", "4x2", "--order", "1.0")


class Bench(Case):
    def test_tables_of_both_styles(self):
        nccl = self.printed("bench", "all_reduce_perf", "--on", "sim:trn2.48xlarge", "-b", "1M", "-e", "4M", "-f", "2",
                            "--algorithm", "mesh")
        rows = [line.split() for line in nccl.splitlines() if not line.startswith("#") and line.strip()]
        self.assertEqual([row[0] for row in rows], ["1048576", "2097152", "4194304"])
        times = [float(row[5]) for row in rows]
        self.assertEqual(times, sorted(times))
        for row in rows:
            self.assertAlmostEqual(float(row[6]), int(row[0]) / float(row[5]) * 1e-3, delta=0.02 * float(row[6]) + 0.01)
        nccom = self.printed("bench", "allr", "--on", "sim:ring:8", "-b", "1kb", "-e", "1kb", "--style", "nccom")
        self.assertEqual(nccom.splitlines()[1].split()[0], "1024")

    def rows(self, *words):
        path = self.folder / "rows.json"
        self.printed("bench", *words, "--json", path)
        return json.loads(path.read_text())["results"]

    def test_it_says_what_sim_says(self):
        for words in (["-b", "1MiB"], ["-b", "64KiB", "--what-if", "dead:0-4"], ["-b", "1KiB", "--era", "2023"],
                      ["-b", "64KiB", "-a", "rdh*2"]):
            sim = json.loads(self.printed("sim", "all_reduce", "-m", "trn2.48xlarge", *words, "--json"))
            size = [word if word != "-a" else "--algorithm" for word in words]
            row = self.rows("all_reduce", "--on", "sim:trn2.48xlarge", *size, "-e", words[1], "-d", "fp32")[0]
            self.assertEqual((row["algorithm"], row["bytes"]), (sim["config"], sim["bytes"]))
            for key in ("time_us", "time_low_us", "time_high_us"):
                self.assertAlmostEqual(row[key], sim[key], places=5, msg=str(words))
            self.assertLess(row["time_low_us"], row["time_high_us"])

    def test_intervals_can_be_left_out(self):
        words = ["allr", "--on", "sim:ring:8", "-b", "1kb", "-e", "1kb", "--style", "nccom"]
        self.assertNotIn("time_low_us", self.rows(*words, "--no-interval")[0])
        self.assertNotIn("low", self.printed("bench", *words, "--no-interval"))
        self.assertIn("time:low(us)    time:high(us)", self.printed("bench", *words))

    def test_a_barrier_moves_nothing(self):
        words = ["bench", "barrier", "--on", "sim:trn2.48xlarge", "--style", "nccom"]
        text = self.printed(*words, "-b", "1G", "-e", "1G")
        self.assertEqual(text, self.printed(*words, "-b", "8", "-e", "8"))
        self.assertEqual(text.splitlines()[1].split()[:2], ["0", "0"])

    def test_every_root(self):
        rows = self.rows("broadcast_perf", "--on", "sim:ring:4", "-b", "1M", "-e", "1M", "-r", "all")
        self.assertEqual(sorted({row["root"] for row in rows}), [0, 1, 2, 3])

    def test_interrupted_it_gives_the_rows_that_are_done(self):
        path = self.folder / "rows.json"
        words = ["bench", "allr", "--on", "sim:trn2.48xlarge", "-b", "8", "-e", "1G", "-i", "64K", "--style", "nccom",
                 "--json", path]
        with subprocess.Popen([TRELLIS, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True) as run:
            rows = [run.stdout.readline() for _ in range(2)][1:]
            run.send_signal(signal.SIGINT)
            rest, complaint = run.communicate(timeout=300)
        rows += rest.splitlines()[:-1]
        self.assertEqual(run.returncode, 1)
        self.assertRegex(complaint, r"interrupted: \d+ of \d+ rows are there")
        self.assertEqual(len(json.loads(path.read_text())["results"]), len(rows))

    def test_slips(self):
        for words, flags in [("--streams goes with ranks that run", ["--streams", "2"]),
                             *((f"{flag} goes with ranks that run", [flag, value]) for flag, value in
                               [("-m", "4"), ("-n", "20"), ("-w", "5"), ("-c", "1"), ("-T", "9"), ("-N", "1"), ("-R", "1"),
                                ("-u", "1"), ("-a", "1"), ("-C", "1"), ("-M", "1"), ("-s", "node0"), ("--rsh", "ssh"),
                                ("--inside", "2"), ("--transport", "libfabric"), ("--provider", "tcp"), ("--seed", "2"),
                                ("--interpret-up-to", "8")]),
                             ("-w goes with ranks that run", ["--warmup_iters", "5"]),
                             ("--no-pin goes with ranks that run", ["--no-pin"]),
                             ("root 9: expected 0 to 3", ["--root", "9"]),
                             ("5 ranks of ring:4: expected 1 to 4", ["--ranks", "5"]),
                             ("no figure 'wire'", ["--what-if", "wire=1"]),
                             ("era", ["--era", "1999"])]:
            self.assert_fails(2, words, "bench", "broadcast", "--on", "sim:ring:4", *flags)
        gone = trellis("bench", "allr", "--on", "sim:./gone.machine")
        self.assertEqual(gone.stderr, "trellis: cannot read './gone.machine': No such file or directory\n")
        for words, place in [("expected sim:MACHINE", "elsewhere"), ("no machine is called 'trn9'", "sim:trn9")]:
            self.assert_fails(2, words, "bench", "allr", "--on", place)


if __name__ == "__main__":
    unittest.main()
