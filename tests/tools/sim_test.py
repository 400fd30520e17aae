"""trellis sim, as a user types it."""
import functools
import html.parser
import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import unittest

import program
from program import TRELLIS, without_origin

STEP = pathlib.Path(os.environ["TRELLIS_SOURCE_DIR"]) / "examples/step.txt"
RING = ["sim", "all_reduce", "--machine", "ring:16", "-a", "ring", "--bytes", "64MiB"]
trellis = functools.partial(program.ended, timeout=300)


def priced(*words):
    return json.loads(trellis(*words, "--json").stdout)


class Tags(html.parser.HTMLParser):
    """Whether every element that is opened is closed, and what it would load."""
    EMPTY = {"meta", "input", "br", "link"}

    def __init__(self, page):
        super().__init__()
        self.open, self.loads = [], []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.loads += [value for key, value in attributes if key in ("src", "href")]
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, tag


class Sim(program.Case):
    def test_folded_is_unfolded(self):
        for machine, algorithm in (("ring:16", "ring"), ("torus:4x4", "torus"), ("trn2.48xlarge", "kangaring")):
            words = ["sim", "all_reduce", "--machine", machine, "-a", algorithm, "--bytes", "16MiB"]
            self.assertEqual(priced(*words)["time_us"], priced(*words, "--unfolded")["time_us"], machine)

    def test_the_interval_holds_the_time(self):
        one = priced(*RING)
        low, high = sorted(value for key, value in one.items() if key in ("time_low_us", "time_high_us"))
        self.assertLessEqual(low, one["time_us"])
        self.assertGreaterEqual(high, one["time_us"])

    def test_a_slower_algorithm_or_figure_that_takes_too_long_is_left_out(self):
        """50 days are the longest time that is counted: the fastest takes 22, another one 99, and ring's slowest end 56."""
        long = ["sim", "all_reduce", "--machine", "ring:8", "--bytes", "100000000GB"]
        self.assertRegex(trellis(*long).stdout, "left out .* a time of 99.42 days")
        self.assertIn("not all figures were tried at the ends of their ranges", trellis(*long, "-a", "ring", status=1).stdout)

    def test_it_answers_for_each_launch_or_for_the_one_that_is_named(self):
        words = ["sim", "all_reduce", "-m", "trn2.48xlarge", "-n", "16", "-b", "64KiB"]
        each = priced(*words)
        self.assertEqual((each["launch"], each["era"]), ("device", "2025"))
        self.assertEqual([one["launch"] for one in each["launches"]], ["graph", "host"])
        for one in each["launches"]:
            named = priced(*words, "-a", each["config"], "--launch", one["launch"])
            self.assertEqual((named["era"], named["time_us"]), (one["era"], one["time_us"]))
            self.assertNotIn("launches", named)
            self.assertTrue(one["time_low_us"] < one["time_us"] < one["time_high_us"], one)
        self.assertLess(each["time_us"] + 50, each["launches"][0]["time_us"])
        self.assertLess(each["launches"][0]["time_us"] + 200, each["launches"][1]["time_us"])
        self.assertRegex(trellis(*words).stdout, r"launched +on the device \(era 2025\); by a graph: .*; by the host: ")
        self.assertRegex(trellis(*words, "--launch", "host").stdout, r"launched +by the host \(era 2026-host\)\n")
        self.assertNotIn("launch", priced(*RING))
        for more, why in ((["--launch", "device", "--era", "2026-host"], "in era 2026-host: nothing is known of that"),
                          (["--launch", "graph", "--era", "2023"], "expected --era 2026-graph"),
                          (["--launch", "moon"], "--launch: moon not in {device,graph,host}")):
            self.assertIn(why, trellis(*words, *more, status=2).stderr)

    def test_what_may_as_well_be_faster_is_a_draw(self):
        close = priced("sim", "all_reduce", "-m", "trn2.48xlarge", "-b", "32MiB")
        self.assertIn("rdh", " ".join(close["draw_with"]))
        self.assertRegex(trellis("sim", "all_reduce", "-m", "trn2.48xlarge", "-b", "32MiB").stdout,
                         r"a draw with   .*: their intervals overlap")
        self.assertNotIn("draw_with", priced("sim", "all_reduce", "-m", "torus:4x4", "-b", "32MiB"))
        tuned = trellis("machine", "tune", "trn2.48xlarge", "--explain", "all_reduce", "10MiB", "--algorithms",
                        "rdh,kangaring").stdout
        self.assertIn("a draw with rdh: the model's own error leaves open which is faster", tuned)

    def test_damage_costs_time(self):
        self.assertGreater(priced(*RING, "--what-if", "slow:0-1:0.5")["time_us"], priced(*RING)["time_us"] * 1.5)
        self.assertEqual(priced(*RING, "--what-if", "slow:0-1:0.5")["what_if"], ["slow:0-1:0.5"])

    def test_explains(self):
        self.assertIn("time goes to", trellis(*RING, "--explain").stdout)

    def test_an_interval_can_be_left_out(self):
        whole, without = trellis(*RING).stdout, trellis(*RING, "--no-interval").stdout
        self.assertIn("  between  ", whole)
        self.assertEqual(without, re.sub(r"  between  .*\n", "", whole))

    def refused(self, *words):
        return trellis(*words, status=2).stderr

    def test_what_nothing_would_look_at_is_refused(self):
        self.assertIn("--channels needs --algorithm", self.refused("sim", "all_reduce", "--channels", "2"))
        self.assertIn("all_reduce has no root", self.refused("sim", "all_reduce", "--root", "1"))
        self.assertIn("no --pairs", self.refused("sim", "permute", "-m", "ring:4"))
        self.assertIn("--ranks 999999999999: expected a whole number",
                      self.refused("sim", "all_reduce", "-m", "ring:4", "-n", "999999999999"))
        self.assertIn("--within 200: expected percent", self.refused("sim", "all_reduce", "-m", "ring:4", "--within", "200"))
        self.assertIn("--within can't be combined with --algorithm",
                      self.refused("sim", "all_reduce", "-m", "ring:4", "-a", "ring", "--within", "2"))
        self.assertIn("expected a name that ends in .svg", self.refused("topo", "draw", "ring:4", "-o", "ring.pdf"))
        self.assertIn("root 9", self.refused("sim", "broadcast", "-m", "ring:4", "--root", "9"))
        self.assertIn("says it, too", self.refused("sim", "all_reduce", "-m", "torus:4x4", "-a", "torus@4x4", "-d", "4x4"))

    def test_a_host_without_accelerators_is_its_cores(self):
        core = "<object type='Core'><object type='PU'/></object>"
        package = f"<object type='Package'><object type='NUMANode'/>{4 * core}</object>"
        network = "<object type='PCIDev' pci_busid='3'><object type='OSDev' osdev_type='2'/></object>"
        folder = self.new_folder()
        host = folder / "host.xml"
        host.write_text(f"<topology version='2.0'><object type='Machine'>{2 * package}{network}</object></topology>")
        text = trellis("topo", "show", host).stdout
        self.assertRegex(text, r"memory +switch +4 .*\nlinks +switch +2 ")
        self.assertRegex(text, r"links\.host\.rate +40 GB/s +assumed +20 GB/s to 100 GB/s")
        self.assertIn("<svg", trellis("topo", "draw", host).stdout)
        one = priced("sim", "all_reduce", "-m", host, "-b", "8MiB")
        four = priced("sim", "all_reduce", "-m", f"{host} x 4", "-b", "8MiB")
        self.assertEqual((one["ranks"], four["ranks"]), (8, 32))
        self.assertGreater(four["time_us"], one["time_us"])
        self.assertGreater(one["time_high_us"], 2 * one["time_low_us"])

    def test_a_misspelt_figure_of_a_machine_file_is_found(self):
        folder = self.new_folder()
        path = folder / "rack.machine"
        path.write_text("# a rack\nlike trn2.48xlarge\nneuronlink.rte = 72 GB/s | documented | ours\n")
        self.assertIn("line 3: no machine like this asks for a figure 'neuronlink.rte': did you mean "
                      "'neuronlink.rate'?", self.refused("sim", "all_reduce", "-m", path))

    def test_near_ends_are_reached_sooner(self):
        near, far = (priced("sim", "send_recv", "-m", "ring:16", "--peer", peer)["time_us"] for peer in (1, 8))
        self.assertLess(near, far)

    def test_a_barrier_moves_no_bytes(self):
        words = ("sim", "barrier", "-m", "ring:4")
        self.assertEqual(priced(*words)["bytes"], 0)
        self.assertIn("--bytes 8: barrier moves no data", self.refused(*words, "-b", "8"))
        path = self.new_folder() / "barrier.schedule"
        trellis("schedule", "convert", "barrier", "-a", "dissemination", "-d", "4", "--to", "text", "-o", path)
        self.assertIn("--bytes 8: barrier moves no data", self.refused("sim", path, "-m", "ring:4", "-b", "8"))

    def test_a_way_in_one_word_is_its_options(self):
        words = ("sim", "all_reduce", "-m", "torus:4x4", "-b", "1MiB")
        config = priced(*words, "-a", "torus@4x4^1.0*2")
        self.assertEqual(config["time_us"],
                         priced(*words, "-a", "torus", "-d", "4x4", "--order", "1.0", "--channels", "2")["time_us"])
        self.assertEqual(config["config"], "torus dims=4x4 order=(1,0) channels=2")

    def test_a_schedule_from_a_file_is_priced(self):
        folder = self.new_folder()
        path = folder / "ring.schedule"
        path.write_text(trellis("schedule", "show", "all_reduce", "-a", "ring", "-d", "16").stdout)
        machine = ("-m", "ring:16", "-b", "16MiB")
        time = priced("sim", "all_reduce", *machine, "-a", "ring")["time_us"]
        self.assertEqual(priced("sim", path, *machine)["time_us"], time)
        self.assertEqual(priced("sim", "all_reduce", *machine, "-a", f"file:{path}")["time_us"], time)
        step = folder / "step.txt"
        step.write_text(f"ranks 16\nall_reduce a 16MiB by file:{path}\n")
        self.assertEqual(priced("sim", step, "-m", "ring:16")["time_us"], time)
        self.assertIn("--bytes goes with a collective", self.refused("sim", step, *machine))
        for named in ([path], ["all_reduce", "-a", f"file:{path}"]):
            self.assertIn("--within 5: the file", self.refused("sim", *named, *machine, "--within", "5"))
        self.assertIn("not of all_gather", self.refused("sim", "all_gather", *machine, "-a", f"file:{path}"))

    def test_noise_is_the_same_for_the_same_seed_and_only_adds(self):
        words = ("sim", "all_reduce", "-m", "trn2.48xlarge", "-b", "64KiB", "-a", "rdh", "--noise", 5)
        first, again, other = priced(*words), priced(*words), priced(*words, "--seed", 9)
        self.assertEqual(first["noise"], again["noise"])
        self.assertNotEqual(first["noise"], other["noise"])
        self.assertGreater(first["noise"]["least_us"], first["time_us"])
        self.assertIn("has no software", self.refused("sim", "all_reduce", "-m", "ring:4", "--noise", "1"))

    def test_a_step_with_noise(self):
        folder = self.new_folder()
        step, page = folder / "step.txt", folder / "step.html"
        step.write_text("ranks 64\nall_reduce a 64KiB by rdh\ncompute b 20us after a\nall_reduce c 64KiB by rdh after b\n")
        words = ("sim", step, "-m", "trn2.48xlarge", "--noise", 3)
        first, again, other = priced(*words), priced(*words), priced(*words, "--seed", 9)
        self.assertEqual(first["noise"], again["noise"])
        self.assertNotEqual(first["noise"], other["noise"])
        self.assertEqual(first["noise"]["runs"], 3)
        self.assertGreater(first["noise"]["least_us"], first["time_us"])
        self.assertIn("with noise     ", trellis(*words).stdout)
        self.assertIn("has no software", self.refused("sim", STEP, "-m", "torus:4x4", "--tflops", "80", "--noise", "1"))
        trellis(*words, "-o", page)
        self.assertIn("<td>with noise</td>", page.read_text())

    def test_what_comes_through_a_pipe_is_read_once(self):
        ring = ["-m", "ring:8", "-b", "1MiB"]
        schedule = trellis("schedule", "show", "all_reduce", "-a", "ring", "-d", 8).stdout
        time = priced("sim", "all_reduce", *ring, "-a", "ring")["time_us"]

        def piped(text, *words):
            done = trellis(*words, "--json", input=text)
            self.assertEqual(done.stderr, "")
            return json.loads(done.stdout)["time_us"]

        for source in ("-", "/dev/stdin"):
            self.assertEqual(piped(schedule, "sim", source, *ring), time)
        self.assertEqual(piped(schedule, "sim", "all_reduce", "-a", "file:/dev/stdin", *ring), time)
        msccl = trellis("schedule", "convert", "all_reduce", "-a", "ring", "-d", 8, "--to", "msccl-xml").stdout
        with tempfile.NamedTemporaryFile("w", suffix=".xml") as file:
            file.write(msccl)
            file.flush()
            self.assertEqual(piped(msccl, "sim", "/dev/stdin", *ring), priced("sim", file.name, *ring)["time_us"])
        step = "ranks 8\nall_reduce a 1MiB by ring@8\n"
        self.assertEqual(piped(step, "sim", "-", "-m", "ring:8"), time)

    def test_a_step_is_as_sure_as_its_figures(self):
        step = priced("sim", STEP, "--machine", "trn2.48xlarge", "-a", "ring")
        self.assertLess(step["time_low_us"], step["time_us"])
        self.assertGreater(step["time_high_us"], step["time_us"])
        self.assertTrue(step["sensitive_to"])

    def test_a_step_is_played(self):
        folder = self.new_folder()
        page = folder / "step.html"
        done = trellis("sim", STEP, "--machine", "trn2.48xlarge", "-a", "ring", "-o", page)
        self.assertIn("gradients", done.stdout)
        text = page.read_text()
        self.assertTrue(text.lower().startswith("<!"))
        for words in ("Result", "a rank computes", "nothing hides it", "of the time: ", "What the answer is sensitive to"):
            self.assertIn(words, text)

    def written(self, name, *words):
        folder = self.new_folder()
        path = folder / name
        trellis(*words, "-o", path)
        return path.read_bytes()

    def test_a_page_stands_alone_and_says_it_in_words(self):
        page = self.written("ring.html", *RING, "--what-if", "slow:2-3:0.1", "--explain").decode()
        self.assertRegex(page, r"<title>[^<]* with slow:2-3:0.1")
        tags = Tags(page)
        self.assertEqual((tags.open, tags.loads), ([], []))
        text = re.sub(r"<[^>]+>", " ", page.split("<script")[0])
        for words in ("Result", "bound by latency", "bound by bandwidth", "bound by bisection", "Phases",
                      "sum over ring", "copy over ring", "of the time: chip 2 waits for its send to chip 3 over ring x+",
                      "ring x+ of chip 2: 5.00 GB/s", "% used"):
            self.assertIn(words, text)
        self.assertRegex(page, r'class="wire u5"')

    def test_traces_have_a_row_for_each_rank_and_link(self):
        trace = self.written("ring.pftrace", *RING, "--unfolded")
        for rank in range(16):
            for name in (f"chip {rank}", f"ring x+ of chip {rank}"):
                self.assertIn(bytes([len(name)]) + name.encode(), trace)  # a text of protobuf begins with its length

    def test_what_is_not_shown_is_said(self):
        folder = self.new_folder()
        path = folder / "ring.pftrace"
        self.assertIn("1 of 16 ranks were simulated", trellis(*RING, "-o", path).stdout)
        self.assertIn("The timeline shows 2 ranks of 16",
                      trellis(*RING, "--unfolded", "--show", "3,5", "-o", path).stdout)
        self.assertIn(b"chip 5", path.read_bytes())
        self.assertIn("rank 5 was not simulated", self.refused(*RING, "--show", "5", "-o", path))
        self.assertIn("--show 99: expected ranks 0 to ", self.refused(*RING, "--show", "99", "-o", path))

    def test_machines_are_files_as_well(self):
        folder = self.new_folder()
        astra = folder / "network.yml"
        astra.write_text("topology: [ Ring ]\nnpus_count: [ 8 ]\nbandwidth: [ 50.0 ]\nlatency: [ 500.0 ]\n")
        own = folder / "rack.machine"
        own.write_text("level ring wire 4\ncluster switch net\nwire.rate = 10 GB/s | documented | here\n"
                       "wire.latency = 1 us | documented | here\nnet.rate = 5 GB/s | documented | here\n"
                       "net.latency = 5 us | documented | here\n")
        for machine, ranks in ((astra, 8), (own, 4), (f"{own} x 3", 12)):
            one = priced("sim", "all_reduce", "-m", machine, "-b", "8MiB", "-a", "ring")
            self.assertEqual(one["ranks"], ranks)
            self.assertEqual(json.loads(trellis("topo", "show", machine, "--json").stdout)["ranks"], ranks)
            self.assertTrue(trellis("topo", "draw", machine).stdout.endswith("</svg>\n"))
        slow = priced("sim", "all_reduce", "-m", own, "-a", "ring", "--what-if", "wire.rate=1GB/s", "-b", "8MiB")
        fast = priced("sim", "all_reduce", "-m", own, "-a", "ring", "-b", "8MiB")
        self.assertGreater(slow["time_us"], 5 * fast["time_us"])

    def test_collectives_at_once_slow_each_other(self):
        tasks = {t["task"]: t for t in priced("sim", STEP, "--machine", "trn2.48xlarge", "-a", "ring", "--tasks")["tasks"]}
        took = {name: t["end_ps"] - t["start_ps"] for name, t in tasks.items()}
        self.assertGreater(took["sums2"], 1.5 * took["sums"])
        self.assertGreater(took["gradients2"], took["gradients1"])

    def test_blocks_of_their_own_sizes(self):
        def table(op, *words):
            return trellis("bench", op, "--on", "sim:trn2.48xlarge", "--ranks", 4, "-b", "64K", "-e", "4M", "-f", 8,
                           "--algorithm", "direct", *words).stdout

        folder = self.new_folder()
        counts = folder / "counts.json"
        for op in ("all_gather_v", "reduce_scatter_v", "all_to_all_v"):
            counts.write_text('{"counts": [1, 1, 1, 1]}')
            self.assertEqual(*map(without_origin, (table(op, "--variable-size-op-metadata", counts), table(op))))
            counts.write_text('{"counts": [4, 0, 1, 1]}')
            self.assertNotEqual(table(op, "--variable-size-op-metadata", counts), table(op))

    def test_sizes_are_read_as_by_bench(self):
        self.assertEqual(priced("sim", "all_reduce", "-m", "ring:4", "-a", "ring", "-b", "1M")["bytes"], 1 << 20)
        self.assertEqual(priced("sim", "all_reduce", "-m", "ring:4", "-a", "ring", "-b", "64kb")["bytes"], 1 << 16)

    def test_interrupted_it_gives_what_it_has(self):
        words = ["sim", "all_reduce", "-m", "torus:32x32x16", "-a", "torus", "-b", "1GiB", "--unfolded"]
        with subprocess.Popen([TRELLIS, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
            program.await_handler(run, signal.SIGINT)
            run.send_signal(signal.SIGINT)
            out, complaint = run.communicate(timeout=300)
        self.assertEqual((run.returncode, complaint), (1, ""))
        self.assertIn("interrupted", out)

    def test_parameters_alone_refuse_what_goes_with_a_machine(self):
        goal = self.new_folder() / "two.goal"
        goal.write_text("num_ranks 2\nrank 0 {\nl1: send 8b to 1 tag 1\n}\nrank 1 {\nl1: recv 8b from 0 tag 1\n}\n")
        words = ["sim", goal, "-m", "loggp:L=2500"]
        self.printed(*words)
        for option in (["--noise", "3"], ["--tasks", "--json"], ["--unfolded"], ["--figures", goal]):
            self.assert_fails(2, f"{option[0]} goes with a machine", *words, *option)
        self.assert_fails(2, "--seed", *words, "--seed", "2")
        self.assert_fails(2, "--seed", "sim", "all_reduce", "-m", "ring:4", "--seed", "2")

    def test_bad_input_is_named(self):
        for words, complaint in ((["sim", "all_reduce", "--machine", "trn9"], "trn9"),
                                 (["sim", "all_reduce", "--machine", "ring:4", "--what-if", "dead:0-9"], "9"),
                                 (["sim", "all_reduce", "--machine", "ring:"], "no sizes are given: expected some like 8"),
                                 (["sim", "all_reduce", "--machine", "ring:0"], "expected sizes like 8"),
                                 (["sim", "all_reduce", "--bytes", "many"], "many"),
                                 (["sim", "all_redce"], "did you mean 'all_reduce'?"),
                                 (["sim", "/nowhere.txt"], "/nowhere.txt"),
                                 (["sim", str(STEP), "--explain"], "--explain goes with a collective"),
                                 (["sim", "all_reduce", "--tflops", "3"], "--tflops goes with a file"),
                                 (["sim", "all_reduce", "-m", "ring:4", "-o", "x.png"], ".html or .pftrace"),
                                 (["sim", "all_reduce", "-m", "/nowhere.yml"], "/nowhere.yml"),
                                 (["sim", "all_reduce", "-n", "65"], "65 ranks of trn2.48xlarge: expected 1 to 64"),
                                 (["sim", "all_reduce", "-n", "-1"], "'-1': expected a number above 0"),
                                 (["sim", str(STEP), "--tflops", "0"], "'0': expected a number above 0"),
                                 (["sim", str(STEP), "--memory", "0GB/s"], "--memory 0GB/s: expected a rate above 0"),
                                 (["sim", "all_reduce", "-o", "x.html", "--show", "5-2"], "--show 5-2: expected the"),
                                 (["sim", "all_reduce", "--what-if", "dead:99999999999-1"], "dead:99999999999-1"),
                                 (["topo", "show", "/nowhere.yml"], "/nowhere.yml")):
            done = program.trellis(*words, timeout=60)
            self.assertIn(done.returncode, (1, 2), words)
            self.assertIn(complaint, done.stderr)


if __name__ == "__main__":
    unittest.main()
