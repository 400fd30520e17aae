"""trellis topo: this host as it is, machines that hwloc is told of, and that ranks run where it says."""
import json
import os
import re
import subprocess
import sys
import unittest
import xml.etree.ElementTree

import program
from program import TRELLIS, trellis

BIG = {"HWLOC_SYNTHETIC": "pack:2 l3:4 core:8 pu:2"}


class Case(program.Case):
    def topo(self, *arguments, **environment):
        return json.loads(self.printed("topo", "show", "--json", *arguments, **environment))


def threads(part):
    own = [part["number"]] if part["kind"] == "thread" and part["usable"] else []
    return own + [t for inner in part.get("parts", []) for t in threads(inner)]


class Hosts(Case):
    """Hosts by a script in ssh's place."""

    def setUp(self):
        self.shell = program.remote_shell(
            self.new_folder(), '[ "$1" = away ] && exit 255\n'
            'case $1 in big*) export HWLOC_SYNTHETIC="pack:2 l3:4 core:8 pu:2";; esac\n')

    def test_hosts_that_are_alike_are_shown_once(self):
        out = self.printed("topo", "show", "--hosts", "small,big0,big1", "-n", "2", "--rsh", self.shell)
        alone = self.printed("topo", "show", "-n", "2")
        big = self.printed("topo", "show", "-n", "2", **BIG)
        self.assertEqual(out, f"small:\n{alone}\nbig0, big1:\n{big}")
        told = json.loads(self.printed("topo", "show", "--json", "--hosts", "small,big0", "--rsh", self.shell))
        self.assertEqual(told["big0"]["whole"], self.topo(**BIG)["whole"])

    def test_a_host_that_does_not_answer_is_named(self):
        ran = trellis("topo", "show", "--hosts", "small,away", "--rsh", self.shell)
        self.assertEqual((ran.returncode, ran.stderr.count("\n")), (2, 1), ran.stderr)
        self.assertIn("host away: ", ran.stderr)


class Host(Case):
    def test_it_has_the_threads_that_we_have(self):
        host = self.topo()
        self.assertEqual(sorted(threads(host["whole"])), sorted(os.sched_getaffinity(0)))
        self.assertEqual((host["machine"], host["here"], host["ranks"]), ("host", True, []))

    def test_it_follows_taskset(self):
        first = min(os.sched_getaffinity(0))
        ran = subprocess.run([sys.executable, "-c", f"import os; os.sched_setaffinity(0, [{first}]);"
                              f"os.execv({TRELLIS!r}, [{TRELLIS!r}, 'topo', 'show', '--json', '-n', '1'])"],
                             capture_output=True, text=True)
        host = json.loads(ran.stdout)
        self.assertEqual((threads(host["whole"]), host["ranks"][0]["threads"]), ([first], [first]))

    def test_text(self):
        text = self.printed("topo", "show", "host", "-n", "1")
        self.assertRegex(text, r"^host: [^\n]*\bcores?, \d+ threads?[^\n]*\n1 rank, on a core each\n\n")
        self.assertEqual(len(re.findall(r"core \d+: thread[^\n]*  rank 0$", text, re.MULTILINE)), 1)

    def test_nothing_is_said_of_a_sys_that_is_absent(self):
        hidden = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs none /sys && exec "$@"', "sh"]
        if subprocess.run([*hidden, "true"], capture_output=True).returncode:
            self.skipTest("needs root")
        ran = subprocess.run([*hidden, TRELLIS, "topo", "show", "--json"], capture_output=True, text=True)
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))
        self.assertEqual(sorted(threads(json.loads(ran.stdout)["whole"])), sorted(os.sched_getaffinity(0)))

    def test_slips(self):
        for words, arguments in [("did you mean 'host'?", ["hots"]), ("-n goes with host", ["trn2.48xlarge", "-n", "2"]),
                                 ("-n 0: expected 1 to", ["-n", "0"]), ("--equal needs -n", ["--equal"])]:
            for command in ["show", "draw"]:
                self.assert_fails(2, words, "topo", command, *arguments)


class Described(Case):
    def test_ranks_fill_one_l3_before_another(self):
        for ranks, caches in [(1, 1), (8, 1), (9, 4), (32, 4), (33, 8), (64, 8)]:
            placed = self.topo("-n", ranks, **BIG)["ranks"]
            self.assertEqual(len({rank["cores"][0] for rank in placed}), ranks)
            self.assertLessEqual(len({rank["l3"][0] for rank in placed}), caches)
            self.assertEqual([rank["cores"][0] for rank in placed], sorted(rank["cores"][0] for rank in placed))
        self.assertEqual(self.topo("-n", 65, **BIG)["ranks"], [])

    def test_a_picture(self):
        path = self.new_folder() / "big.svg"
        self.assertEqual(self.printed("topo", "draw", "-n", 6, "-o", path, **BIG), "")
        svg = path.read_text()
        self.assertEqual((svg.count('class="core"'), svg.count(">rank ")), (64, 6))


class Started(Case):
    """Ranks run where it says they would. Of a machine that is only described they are kept nowhere."""

    def places(self, *options, **environment):
        ran = trellis("launch", "-n", 2, *options, "--", sys.executable, "-c",
                      "import os; print(*sorted(os.sched_getaffinity(0)))", **environment)
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))
        return sorted([int(word) for word in line.split()[1:]] for line in ran.stdout.splitlines())

    def test_by_bench(self):
        placed = self.topo("-n", 2)["ranks"]
        for flags in [[], ["--threads"]]:
            text = self.printed("bench", "all_reduce_perf", "--ranks", 2, "-b", 8, "-e", 8, "-n", 1, *flags)
            if placed:
                self.assertEqual(re.findall(r"\[thread (\d+)\]", text), [str(rank["threads"][0]) for rank in placed])
            else:
                self.assertEqual(re.findall(r"\[thread[^]]*\]", text)[0::2], re.findall(r"\[thread[^]]*\]", text)[1::2])

    def test_by_launch(self):
        everywhere = [sorted(os.sched_getaffinity(0))] * 2
        for options, asked in [([], ["--equal"]), (["--pin"], [])]:
            placed = self.topo("-n", 2, *asked)["ranks"]
            if placed:
                self.assertEqual(self.places(*options), sorted(sorted(rank["threads"]) for rank in placed))
        self.assertEqual(self.places("--no-pin"), everywhere)
        self.assertEqual(self.places(**BIG), everywhere)

    def test_threads_are_as_many_as_cores(self):
        environment = {k: v for k, v in os.environ.items() if k != "OMP_NUM_THREADS"}
        cores = len(self.topo("-n", 1, "--equal")["ranks"][0]["cores"])
        for option, each in [("--pin", 1), ("--no-pin", max(1, cores // 2))]:
            ran = trellis("launch", "-n", 2, option, "--", "sh", "-c", "echo $OMP_NUM_THREADS", env=environment)
            self.assertEqual({line.split()[1] for line in ran.stdout.splitlines()}, {str(each)})

    def test_pin_and_no_pin(self):
        self.assert_fails(2, "--no-pin", "launch", "-n", 2, "--pin", "--no-pin", "--", "true")


class Simulated(Case):
    def test_every_machine_is_shown_and_drawn(self):
        for machine in ["trn1.32xlarge", "trn2.48xlarge", "trn2.48xlarge x 4", "trn2u", "gpu.hgx", "torus:4x4x4",
                        "fattree:4x8x16", "dragonfly:4x8x33", "torus:16x32x32"]:
            text = self.printed("topo", "show", machine)
            self.assertTrue(text.startswith(machine + ": "), text[:60])
            drawn = xml.etree.ElementTree.fromstring(self.printed("topo", "draw", machine))
            self.assertEqual(drawn.tag, "{http://www.w3.org/2000/svg}svg")

    def test_figures_have_marks_and_sources(self):
        shown = json.loads(self.printed("topo", "show", "trn2.48xlarge", "--json"))
        figures = {f["figure"]: f for f in shown["figures"]}
        self.assertEqual((shown["ranks"], shown["chips"]), (64, 16))
        self.assertEqual(figures["neuronlink.rate"]["mark"], "fitted")
        self.assertTrue(figures["neuronlink.rate"]["records"])
        self.assertTrue(all(f["source"] or f["records"] for f in figures.values()))

    def test_damage_is_shown(self):
        self.assertIn("what if", self.printed("topo", "show", "ring:4", "--what-if", "slow:0-1:0.5"))
        self.assertIn("dead", self.printed("topo", "draw", "ring:4", "--what-if", "dead:0-1"))

    def test_one_links_damage_is_not_that_of_all(self):
        def links(machine, *more):
            return json.loads(self.printed("topo", "show", machine, "--json", *more))["links"]
        for machine, damage in [("torus:4x4", "dead:15-14"), ("ring:4", "slow:3-0:0.5"), ("ring:4", "slow:0-1:0.5"),
                                ("trn2.48xlarge x 2", "nic:127:0.5")]:
            self.assertEqual(links(machine, "--what-if", damage), links(machine), damage)


if __name__ == "__main__":
    unittest.main()
