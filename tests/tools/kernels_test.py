"""trellis kernels: what this machine uses, whether it agrees with the truth, how fast it is."""
import functools
import json
import os
import re
import unittest

import program
from program import TRELLIS, trellis
from terminal import interrupted_on_a_terminal, run_on_a_terminal

kernels = functools.partial(trellis, "kernels")


class Case(program.Case):
    trellis = staticmethod(kernels)

    def rows(self, *arguments, key="kernels", **how):
        return json.loads(self.printed(*arguments, "--json", **how))[key]


class List(Case):
    def test_every_kind_is_there(self):
        names = {row["name"] for row in self.rows()}
        for name in ["cast.f32.bf16.stochastic", "reduce.sum.bf16.nearest", "adamw.bf16_stochastic.bf16.f32", "dot.f32",
                     "rms_norm.bf16", "softmax_gradient.f32", "cross_entropy.bf16", "silu.f32", "rotary.bf16",
                     "embedding.f32", "matmul.bf16.f32", "mx_encode.mxfp4_e2m1"]:
            self.assertIn(name, names)
        self.assertEqual(len(names), len(self.rows()))

    def test_the_heading_names_the_machine(self):
        first, empty, header = self.printed().splitlines()[:3]
        self.assertRegex(first, r"^.+: \d+ cores?, L1 \d+ KiB, L2 \d+ KiB, L3 \d+ KiB; twins for \w+$")
        self.assertEqual((empty, header.split()), ("", ["name", "uses"]))

    def test_columns_are_aligned(self):
        lines = self.printed().splitlines()[2:]
        column = lines[0].index("uses")
        for line in lines:
            self.assertEqual((line[column - 1], line[column] != " "), (" ", True), line)

    def test_one_core_when_one_is_allowed(self):
        core = min(os.sched_getaffinity(0))
        self.assertIn(": 1 core, ", self.printed("dot", preexec_fn=lambda: os.sched_setaffinity(0, {core})))

    def test_a_lower_set_of_instructions(self):
        rows = self.rows("cast.f32.bf16", TRELLIS_ISA="vec128")
        self.assertEqual({row["uses"] for row in rows}, {"vec128"})
        self.assertIn("twins for vec128\n", self.printed("dot", TRELLIS_ISA="vec128"))

    def test_a_set_of_instructions_that_is_none(self):
        ran = kernels("dot", TRELLIS_ISA="sse9")
        self.assertEqual((ran.returncode, ran.stdout), (2, ""))
        self.assertRegex(ran.stderr, r"^trellis: TRELLIS_ISA=sse9: expected a set of instructions that this CPU has: vec128")

    def test_a_prefix(self):
        self.assertEqual({row["name"] for row in self.rows("rotary")}, {"rotary.f32", "rotary.bf16"})
        self.assertTrue(all(row["name"].startswith("cast.f32.b") for row in self.rows("cast.f32.b")))

    def test_names_that_nothing_has(self):
        self.assert_fails(2, "no kernel's name begins with 'sofmax'; did you mean 'softmax'?", "sofmax")
        self.assert_fails(2, "no kernel's name begins with 'cast.f32.bf17'; did you mean 'cast.f32.bf16'?", "cast.f32.bf17")
        self.assert_fails(2, "adamw, axpy, cast,", "quite-other")
        self.assert_fails(2, "'embedding' is timed; there are some of ", "embedding", "--speed")
        self.assert_fails(2, "has no argument 'axpy'", "cast", "axpy")


class Check(Case):
    def test_everything_agrees(self):
        rows = self.rows("--check")
        self.assertEqual([row["name"] for row in rows], [row["name"] for row in self.rows()])
        self.assertEqual([row["name"] for row in rows if row["agrees"] is not True], [])

    def test_a_verdict_ends_the_table(self):
        self.assertRegex(self.printed("matmul", "--check"), r"\n3 kernels agree with their truth\n$")
        self.assertRegex(self.printed("dot.f32", "--check"), r"\ndot\.f32 +\w+ +yes\n\n1 kernel agrees with its truth\n$")


class Speed(Case):
    # The fastest kernel to time. Under a sanitizer the fractions mean nothing, but are printed in the same way.
    ONE = "dot.f32"
    # What is timed from memory touches six times the last cache, which may be half a gigabyte.
    SMALL = ("--last-cache", "32MiB")

    def assert_speeds(self, rows):
        self.assertEqual([row["regime"] for row in rows if row["threads"] == 1], ["L1", "L2", "memory"])
        for row in rows:
            self.assertEqual(row["name"], self.ONE)
            self.assertGreater(row["fraction_of_limit"], 0)
            self.assertGreater(row["speed_GBps"], 0)

    def test_a_table_and_nothing_on_standard_error(self):
        text = self.printed(self.ONE, "--speed", *self.SMALL)
        self.assertRegex(text, r"\nname +sources +L1 +L2 +memory.* +loop's speed +loop\n")
        self.assertEqual(len(re.findall(r"^dot\.f32 .*[MG]B/s", text, re.MULTILINE)), text.count("dot.f32"))

    def test_each_number_of_threads_beside_a_loop_with_as_many(self):
        text = self.printed(self.ONE, "--speed", "--threads", "1,2", *self.SMALL)
        self.assertIn("From memory; the limit is the best plain loop", text)
        self.assertRegex(text, r"\nname +sources +threads +speed +limit +of the limit +loop\n")
        row = r"^dot\.f32 +2 +(\d+) +[\d.]+ [MGT]B/s +[\d.]+ [MGT]B/s +\d+\.\d\d +limit\.read\d?$"
        self.assertEqual(re.findall(row, text, re.MULTILINE), ["1", "2"])

    def test_numbers_of_threads_that_are_none(self):
        self.assert_fails(2, "--threads", self.ONE, "--speed", "--threads", "0")
        self.assert_fails(2, "--threads", self.ONE, "--speed", "--threads", "two")
        self.assert_fails(2, "--speed", self.ONE, "--threads", "2")

    def test_last_caches_that_are_none(self):
        self.assert_fails(2, "--last-cache 1: expected at least the ", self.ONE, "--speed", "--last-cache", "1")
        self.assert_fails(2, "'many'", self.ONE, "--speed", "--last-cache", "many")
        self.assert_fails(2, "--last-cache", self.ONE, "--last-cache", "32MiB")

    def test_an_interruption_gives_what_was_timed(self):
        status, out, said = interrupted_on_a_terminal([TRELLIS, "kernels", "--speed", "--json", *self.SMALL], r"[2-9]/\d+ ")
        whole = json.loads(out)
        self.assertEqual(status, 1)
        self.assertTrue(all(row["speed_GBps"] > 0 for row in whole["kernels"]))
        self.assertGreater(len(whole["kernels"]), 0)
        self.assertRegex(whole["interrupted"], rf"^{len(whole['kernels'])} of \d+ timings are there$")
        self.assertTrue(said.endswith(f"trellis: interrupted: {whole['interrupted']}\r\n"), said)

    def test_one_document_also_with_the_check(self):
        whole = json.loads(self.printed(self.ONE, "--speed", "--check", "--json", *self.SMALL))
        self.assertEqual(set(whole), {"checks", "kernels", "made_by"})
        self.assert_speeds(whole["kernels"])
        self.assertEqual([(row["name"], row["agrees"]) for row in whole["checks"]], [(self.ONE, True)])

    def test_a_terminal_sees_progress(self):
        ran, said = run_on_a_terminal([TRELLIS, "kernels", self.ONE, "--check", "--json"])
        self.assertEqual(ran.returncode, 0)
        self.assertIn("1/1 dot.f32", said)
        self.assertTrue(said.endswith("\r\033[K"), said)  # the line is left empty
        self.assertEqual(json.loads(ran.stdout)["kernels"][0]["agrees"], True)


if __name__ == "__main__":
    unittest.main()
