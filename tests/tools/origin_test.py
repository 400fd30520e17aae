"""Every page, JSON, CSV, trace, picture and table says what made it: two files can be told apart, and made again."""
import json
import os
import pathlib
import re
import subprocess
import unittest

from program import TRELLIS, Case, ended, trellis

EXAMPLE = os.path.join(os.environ["TRELLIS_SOURCE_DIR"], "examples", "llama.yaml")
SIM = ["sim", "all_reduce", "-m", "torus:2x2", "-b", "1KiB"]


class Origin(Case):
    def made_by(self, *words, **how):
        return json.loads(self.printed(*words, "--json", **how))["made_by"]

    def test_what_a_result_depends_on(self):
        plain = self.made_by(*SIM)
        self.assertRegex(plain["program"], r"^trellis \d+\.\d+\.\d+$")
        self.assertEqual(plain["command"], "trellis sim all_reduce -m torus:2x2 -b 1KiB --json")
        self.assertEqual((plain["machine"], plain["date"]), ("torus:2x2", "1970-01-01T00:00:00Z"))
        self.assertRegex(plain["figures"], r"^sha256 [0-9a-f]{16}$")
        self.assertNotIn("seed", plain)
        self.assertNotIn("host", plain)

    def test_two_what_ifs_are_told_apart(self):
        plain, slow, dead = self.made_by(*SIM), self.made_by(*SIM, "--what-if", "slow:0-1:0.5"), \
            self.made_by(*SIM, "--what-if", "torus.latency=3us")
        self.assertEqual(slow["machine"], "torus:2x2, what if slow:0-1:0.5")
        self.assertEqual(slow["figures"], plain["figures"])
        self.assertNotEqual(dead["figures"], plain["figures"])

    def test_noise_names_its_seed(self):
        words = ["sim", "all_reduce", "-m", "trn2.48xlarge", "-a", "ring", "-b", "1KiB", "--no-interval", "--noise", "2"]
        self.assertEqual(self.made_by(*words, "--seed", "7")["seed"], "7")
        self.assertRegex(self.made_by(*words)["era"], r"^\d+")

    def test_host_and_date_unless_bytes_must_be_the_same(self):
        there = {name: value for name, value in os.environ.items() if name != "SOURCE_DATE_EPOCH"}
        made = json.loads(ended(*SIM, "--json", env=there).stdout)["made_by"]
        self.assertTrue(made["host"].startswith(os.uname().nodename))
        self.assertRegex(made["date"], r"^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
        self.assertEqual(json.loads(self.printed(*SIM, "--json", SOURCE_DATE_EPOCH="86400"))["made_by"]["date"],
                         "1970-01-02T00:00:00Z")

    def test_a_date_that_is_none_is_refused(self):
        for date in ("abc", "-5", "1.5", " 5", "253402300800", "99999999999999999999"):
            self.assert_fails(2, f"SOURCE_DATE_EPOCH={date}: expected seconds since 1970, from 0 to 253402300799", *SIM,
                              SOURCE_DATE_EPOCH=date)
        self.assertEqual(self.made_by(*SIM, SOURCE_DATE_EPOCH="253402300799")["date"], "9999-12-31T23:59:59Z")
        self.assertIn("host", self.made_by(*SIM, SOURCE_DATE_EPOCH=""))

    def test_the_command_can_be_given_to_a_shell(self):
        folder = self.new_folder()
        command = self.made_by("sim", "all_reduce", "-m", "torus:2x2", "-b", "1KiB", "-a", "torus dims=2x2")["command"]
        self.assertIn("-a 'torus dims=2x2'", command)
        (folder / "trellis").symlink_to(TRELLIS)
        again = subprocess.run(["sh", "-c", command], capture_output=True, text=True,
                               env=os.environ | {"PATH": f"{folder}:{os.environ['PATH']}"})
        self.assertEqual(json.loads(again.stdout)["made_by"]["command"], command)

    def test_files_of_each_kind(self):
        folder = self.new_folder()
        files = {"page.html": [*SIM, "--what-if", "slow:0-1:0.5", "-o"], "trace.pftrace": [*SIM, "-o"],
                 "core.html": ["core", "profile", "cast", "-o"],
                 "pipeline.html": ["train", "draw", EXAMPLE, "-o"], "picture.svg": ["topo", "draw", "torus:2x2", "-o"],
                 "table.txt": ["machine", "tune", "ring:4", "--collectives", "broadcast", "--sizes", "1KB", "-o"]}
        for name, words in files.items():
            with self.subTest(name):
                ended(*words, name, cwd=folder)
                text = (folder / name).read_bytes().decode(errors="replace")
                self.assertIn(words[0], text)
                self.assertRegex(text, rf"trellis {words[0]} [^\n<]*-o {re.escape(name)}")
                self.assertIn("1970-01-01T00:00:00Z", text)
        self.assertIn("slow:0-1:0.5", (folder / "page.html").read_text())

    def test_tables_of_bench(self):
        folder = self.new_folder()
        words = ["bench", "all_reduce_perf", "--on", "sim:ring:4", "-b", "1K", "-e", "1K", "--no-interval", "--csv", "r.csv",
                 "--json", "r.json"]
        text = ended(*words, cwd=folder).stdout
        self.assertIn("command: trellis bench all_reduce_perf --on sim:ring:4", text)
        self.assertEqual(json.loads((folder / "r.json").read_text())["made_by"]["machine"], "ring:4")
        self.assertIn("# machine: ring:4\n", (folder / "r.csv").read_text())

    def test_a_table_with_its_origin_is_still_a_table(self):
        folder = self.new_folder()
        ended("machine", "tune", "ring:4", "--collectives", "all_reduce", "--sizes", "1KB", "--name", "host", "-o", "t.txt",
              cwd=folder)
        self.assertIn("# command: trellis machine tune ring:4", (folder / "t.txt").read_text())
        ended("bench", "all_reduce", "--ranks", "4", "-b", "1K", "-e", "1K", "-n", "2", cwd=folder, TRELLIS_SELECTIONS="t.txt")

    def test_the_same_command_writes_the_same_bytes(self):
        folder = self.new_folder()
        for name in ("page.html", "trace.pftrace"):
            ended(*SIM, "-o", name, cwd=folder)
            first = (folder / name).read_bytes()
            ended(*SIM, "-o", name, cwd=folder)
            self.assertEqual((folder / name).read_bytes(), first)


if __name__ == "__main__":
    unittest.main()
