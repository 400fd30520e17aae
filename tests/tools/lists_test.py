"""What there is, and what words mean: help, machine list, chip list, schedule explain, completion, manual pages."""
import json
import shutil
import subprocess
import unittest

from program import Case, trellis


class Lists(Case):
    def test_machines(self):
        text = self.printed("machine", "list")
        self.assertRegex(text, r"^machine +chip +chips +ranks ")
        self.assertRegex(text, r"\ntrn2\.48xlarge +trn2 +16 +64 .* torus 4x4 of neuronlink +clos of efa +2025\n")
        rows = json.loads(self.printed("machine", "list", "--json"))["machines"]
        self.assertEqual(len(rows), len(text.splitlines()) - 1)
        for row in rows:
            ran = trellis("topo", "show", row["machine"], "--json")
            self.assertEqual((ran.returncode, json.loads(ran.stdout)["ranks"]), (0, row["ranks"]))

    def test_chips(self):
        text = self.printed("chip", "list")
        self.assertRegex(text, r"^chip +cores +HBM \(GiB\) +HBM rate ")
        for row in json.loads(self.printed("chip", "list", "--json"))["chips"]:
            self.assertEqual(trellis("core", "check", "cast", "--chip", row["chip"]).returncode, 0, row)
            self.assertIn(f"\n{row['chip']} ", text)


class Explain(Case):
    def test_each_part_of_a_config(self):
        text = self.printed("schedule", "explain", "hierarchical", "dims=4x4x4x4", "channels=4", "segments=16")
        for words in ("hierarchical dims=4x4x4x4 channels=4 segments=16\n", "256 ranks: 4 neighbours in a row, 4 of these",
                      "4 shares that travel at the same time", "16 pieces, one after another",
                      "hierarchical@4x4x4x4*4/16"):
            self.assertIn(words, text)

    def test_both_forms_mean_the_same(self):
        words = json.loads(self.printed("schedule", "explain", "hierarchical(mesh,ring)@4x2^1.0*2/3", "--json"))
        again = json.loads(self.printed("schedule", "explain", words["short form"], "--json"))
        self.assertEqual({**words, "made_by": 0}, {**again, "made_by": 0})
        self.assertTrue(words["level 1"].startswith("mesh: "))
        self.assertIn("1, 0", words["order"])

    def test_the_steps_that_it_names_are_there(self):
        command = json.loads(self.printed("schedule", "explain", "torus dims=2x2 channels=2", "--json"))["its steps"]
        ran = subprocess.run(["sh", "-c", command.replace("trellis", '"$TRELLIS"', 1)], capture_output=True, text=True)
        self.assertEqual(ran.returncode, 0, ran.stderr)

    def test_each_algorithms_steps_are_there_once_the_words_in_capitals_are_filled_in(self):
        listed = json.loads(self.printed("schedule", "list", "--json"))["algorithms"]
        for name in sorted({row["algorithm"] for row in listed}):
            command = json.loads(self.printed("schedule", "explain", name, "--json"))["its steps"]
            command = command.replace("DIMS", "4").replace("PARTS", "direct,direct").replace("trellis", '"$TRELLIS"', 1)
            ran = subprocess.run(["sh", "-c", command], capture_output=True, text=True)
            self.assertEqual(ran.returncode, 0, (command, ran.stderr))

    def test_what_is_none(self):
        self.assert_fails(2, "did you mean 'ring'?", "schedule", "explain", "rign")
        self.assert_fails(2, "is no algorithm config", "schedule", "explain", "ring", "chanels=2")

    def test_what_no_schedule_has_is_refused_as_schedule_show_refuses_it(self):
        for config, said in (("ring@4x4^9.0", "order 9.0: expected each of 0 to 1 once, for dims 4x4"),
                             ("ring@4x4^0", "order 0: expected each of 0 to 1 once, for dims 4x4"),
                             ("ring@4x4~3.2.1", "a numbering of 3 ranks: expected 16"),
                             ("ring@3~3.2.1", "rank 3 in a numbering: expected each of 0 to 2 once"),
                             ("ring@2x2^1.0~0.1.2.3", "expected one of the two")):
            for words in (["explain", config], ["show", "all_reduce", "-a", config]):
                self.assert_fails(2, said, "schedule", *words)
        self.assert_fails(2, "order 9.0: expected each of 0 to 1 once\n", "schedule", "explain", "ring^9.0")
        for config in ("ring^1.0", "ring~2.0.1", "ring@2x2^1.0*2"):
            self.printed("schedule", "explain", config)


class Help(Case):
    def test_help_is_help_of_the_command(self):
        self.assertEqual(self.printed("help"), self.printed("--help"))
        self.assertEqual(self.printed("help", "sim"), self.printed("sim", "--help"))
        self.assertEqual(self.printed("help", "schedule", "show"), self.printed("schedule", "show", "--help"))
        self.assert_fails(2, "did you mean 'schedule'?", "help", "shedule")


class Completion(Case):
    def candidates(self, *words):
        return self.printed("completion", "words", "--", *words).split()

    def test_words_by_where_they_stand(self):
        self.assertIn("schedule", self.candidates("sch"))
        self.assertEqual(self.candidates("schedule", "ver"), ["verify"])
        self.assertIn("--machine", self.candidates("sim", "all_reduce", "--mach"))
        self.assertIn("trn2.48xlarge", self.candidates("sim", "all_reduce", "--machine", "trn2"))
        self.assertIn("all_reduce", self.candidates("sim", "all"))
        self.assertIn("ring", self.candidates("schedule", "show", "all_reduce", "-a", "ri"))
        self.assertIn("trn1", self.candidates("core", "run", "matmul", "--chip", ""))
        self.assertIn("matmul", self.candidates("core", "run", "mat"))
        self.assertEqual(self.candidates("help", "machine", "li"), ["list"])
        self.assertEqual(self.candidates("sim", "all_reduce", "-o", "some"), [])  # a file: the shell's own business

    def test_bash_completes(self):
        if not shutil.which("bash"):
            self.skipTest("no bash")
        script = 'PATH="$1:$PATH"; . <(trellis completion bash); COMP_WORDS=(trellis sim all_reduce --machine trn2.48)\n' \
                 'COMP_CWORD=4; _trellis; echo "${COMPREPLY[*]}"'
        folder = self.new_folder()
        (folder / "trellis").symlink_to(__import__("program").TRELLIS)
        ran = subprocess.run(["bash", "-c", script, "bash", folder], capture_output=True, text=True)
        self.assertEqual((ran.stdout, ran.stderr), ("trn2.48xlarge\n", ""))

    def test_the_other_shells_accept_their_scripts(self):
        for shell, flags in (("zsh", ["-n"]), ("fish", ["--no-execute"])):
            text = self.printed("completion", shell)
            self.assertIn("trellis completion words --", text)
            if shutil.which(shell):
                ran = subprocess.run([shell, *flags, "/dev/stdin"], input=text, capture_output=True, text=True)
                self.assertEqual(ran.returncode, 0, ran.stderr)


class Manual(Case):
    def test_a_page_for_each_command(self):
        folder = self.new_folder() / "man1"
        self.assertRegex(self.printed("manual", folder), r"^\d+ pages in ")
        names = {page.name for page in folder.iterdir()}
        for name in ("trellis.1", "trellis-sim.1", "trellis-schedule-verify.1", "trellis-completion.1"):
            self.assertIn(name, names)
        page = (folder / "trellis-sim.1").read_text()
        for line in ('.TH "trellis-sim" 1 "1970-01-01" "trellis ', ".SH SYNOPSIS", ".SH OPTIONS", ".SH EXAMPLES",
                     "\\fB\\-\\-machine\\fR, \\fB\\-m\\fR"):
            self.assertIn(line, page)

    def test_man_reads_them(self):
        if not shutil.which("groff"):
            self.skipTest("no groff")
        folder = self.new_folder()
        self.printed("manual", folder)
        for page in folder.iterdir():
            ran = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-Wbreak", page], capture_output=True, text=True)
            self.assertEqual((ran.returncode, ran.stderr), (0, ""), page)


if __name__ == "__main__":
    unittest.main()
