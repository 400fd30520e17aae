"""The program as a user meets it: help, versions, mistakes, closed pipes and full disks."""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from program import TRELLIS, trellis


def subcommands(*path):
    listed = trellis(*path, "--help").stdout.partition("Subcommands:\n")[2].partition("\nExamples:")[0]
    return [[*path, name] for name in re.findall(r"^  (\w+)", listed, re.MULTILINE)]


def every_command():
    waiting, found = [[]], []
    while waiting:
        found.append(waiting.pop())
        waiting += subcommands(*found[-1])
    return found


class Help(unittest.TestCase):
    def test_version(self):
        ran = trellis("--version")
        self.assertEqual(ran.returncode, 0)
        self.assertRegex(ran.stdout, r"^trellis \d+\.\d+\.\d+\n$")

    def test_a_list_has_a_line_for_each_that_ends_where_it_ends(self):
        self.assertRegex(trellis("--help").stdout, r"\n  sim +Prices a collective or a workload on a simulated machine\n")

    def test_every_command_has_help_with_examples(self):
        for path in every_command():
            for flag in ["-h", "--help"]:
                with self.subTest(path=path, flag=flag):
                    ran = trellis(*path, flag)
                    self.assertEqual((ran.returncode, ran.stderr), (0, ""))
                    self.assertRegex(ran.stdout, r"\nExamples:\n  trellis")

    def test_a_group_without_a_command_is_a_mistake_and_shows_help(self):
        for path in every_command():
            if subcommands(*path):
                with self.subTest(path=path):
                    ran = trellis(*path)
                    self.assertEqual((ran.returncode, ran.stdout), (2, ""))
                    self.assertIn(f"Usage: {' '.join(['trellis', *path])} [", ran.stderr)
                    self.assertIn("Examples:", ran.stderr)


class Mistakes(unittest.TestCase):
    def assert_one_line(self, ran, status, words):
        self.assertEqual((ran.returncode, ran.stdout), (status, ""), ran.stderr)
        self.assertRegex(ran.stderr, r"^trellis: [^\n]+\n$")
        self.assertIn(words, ran.stderr)

    def test_a_mistyped_option(self):
        self.assert_one_line(trellis("--versoin"), 2, "did you mean '--version'?")
        self.assert_one_line(trellis("--hlep=3"), 2, "did you mean '--help'?")
        self.assert_one_line(trellis("sim", "-t"), 2, "has no option '-t'; see `trellis sim --help`")
        self.assert_one_line(trellis("--quite-other"), 2, "see `trellis --help`")

    def test_a_mistyped_command(self):
        for path in every_command():
            if path:
                with self.subTest(path=path):
                    slip = path[-1][:-1] + "_"
                    self.assert_one_line(trellis(*path[:-1], slip), 2, f"did you mean '{path[-1]}'?")
        self.assert_one_line(trellis("quite-other-thing"), 2, "trellis has no")

    def test_a_mistyped_option_of_every_command(self):
        for path in every_command():
            with self.subTest(path=path):
                self.assert_one_line(trellis(*path, "--hepl"), 2, "did you mean '--help'?")

    def test_a_repeatable_option_takes_one_word(self):
        for words in (["train"], ["train", "show"], ["train", "price"], ["train", "search"]):
            ran = trellis(*words, "--set", "model.hidden_size=-3", "/nosuch.yaml")
            self.assertEqual((ran.returncode, ran.stdout), (1, ""), ran.stderr)
            self.assertIn("cannot read '/nosuch.yaml'", ran.stderr)

    def test_a_command_of_the_python_package_says_what_is_missing(self):
        for words in (["nki", "run", "kernels.py:matmul"], ["nki", "--chip", "trn2", "k.py", "--any"], ["simulate", "--", "python", "x"]):
            ran = subprocess.run([TRELLIS, *words], env={**os.environ, "TRELLIS_PYTHON": "/nosuch/python"},
                                 capture_output=True, text=True)
            self.assertEqual((ran.returncode, ran.stdout), (2, ""))
            self.assertIn("'/nosuch/python' is no interpreter that has the packages trellis and", ran.stderr)

    def test_a_number_of_more_than_64_bits_is_not_taken_for_another(self):
        for words in (["core", "run", "cast", "--seed"], ["machine", "search", "ring:4", "all_reduce", "--moves"]):
            for number in ("99999999999999999999", "-99999999999999999999"):
                ran = trellis(*words, number)
                self.assertEqual((ran.returncode, ran.stdout), (2, ""), words)
                self.assertIn(number, ran.stderr)

    def test_a_number_is_in_plain_digits(self):
        for words, value, said in [(["launch", "-n", "010", "--", "true"], "010", "without a 0 before it"),
                                   (["schedule", "show", "all_reduce", "-a", "ring", "-d", "8", "--channels", "010"], "010",
                                    "without a 0 before it"),
                                   (["bench", "allr", "--ranks", "-02"], "-02", "without a 0 before it"),
                                   (["machine", "tune", "ring:4", "--channels", "1,02"], "02", "without a 0 before it"),
                                   (["core", "run", "cast", "--seed", "07"], "07", "without a 0 before it"),
                                   (["bench", "allr", "-n", "0x10"], "0x10", "a whole number"),
                                   (["launch", "-n", "1", "--grace", "", "--", "true"], "--grace ''", "a number"),
                                   (["launch", "-n", "", "--", "true"], "-n,--nproc-per-node ''", "a number")]:
            with self.subTest(words=words):
                ran = trellis(*words)
                self.assert_one_line(ran, 2, value)
                self.assertIn(said, ran.stderr)
        self.assertEqual(trellis("launch", "-n", "1", "--grace", "0.5", "--max-restarts", "0", "--", "true", "").returncode, 0)

    def test_an_option_without_an_effect_is_refused(self):
        schedule = pathlib.Path(tempfile.mkdtemp()) / "r.txt"
        self.addCleanup(shutil.rmtree, schedule.parent)
        trellis("schedule", "convert", "all_reduce", "-a", "ring", "-d", "4", "--to", "text", "-o", schedule)
        ring = ["schedule", "show", "all_reduce", "-d", "8"]
        for flag, words in [("--channels", [*ring, "-a", "ring*4", "--channels", "1"]),
                            ("--segments", [*ring, "-a", "ring/4", "--segments", "1"]),
                            ("--channels", ["schedule", "verify", schedule, "--channels", "1"]),
                            ("--segments", ["schedule", "verify", schedule, "--segments", "1"]),
                            ("--what-if", ["topo", "show", "--hosts", "localhost", "--what-if", "dead:0-1"]),
                            ("--rsh", ["topo", "show", "ring:4", "--rsh", "foo"]),
                            ("--rsh", ["bench", "allr", "--ranks", "1", "-b", "8", "-e", "8", "--rsh", "foo"]),
                            ("--rsh", ["launch", "-n", "1", "--rsh", "foo", "--", "true"]),
                            ("-x", ["launch", "-n", "1", "-x", "FOO", "--", "true"]),
                            ("--published", ["machine", "tune", "ring:4", "--published", "ring:0"]),
                            ("--published rdh:1MB,mesh:8", ["machine", "tune", "ring:4", "--chart", "x.svg", "--published",
                                                            "rdh:1MB,mesh:8"]),
                            ("--name", ["machine", "tune", "ring:4", "--name", "here"])]:
            with self.subTest(words=words):
                self.assert_one_line(trellis(*words), 2, flag)


class Output(unittest.TestCase):
    def test_an_empty_name_of_a_file_is_refused(self):
        for words in (["sim", "all_reduce", "-m", "ring:4", "-o"], ["topo", "draw", "ring:4", "-o"],
                      ["schedule", "show", "all_reduce", "-a", "ring", "-d", "4", "-o"],
                      ["core", "profile", "cast", "-o"], ["machine", "tune", "ring:4", "--chart"],
                      ["bench", "allr", "--on", "sim:ring:4", "--json"],
                      ["sim", "all_reduce", "-m", "ring:4", "--figures"]):
            with self.subTest(words=words):
                ran = trellis(*words, "")
                self.assertEqual((ran.returncode, ran.stdout), (2, ""))
                self.assertRegex(ran.stderr, rf"^trellis: \S*{words[-1]}\S* '': expected a value\n$")

    def test_a_full_disk(self):
        for arguments in [["--help"], ["--version"]]:
            with open("/dev/full", "w") as full:
                ran = subprocess.run([TRELLIS, *arguments], stdout=full, stderr=subprocess.PIPE, text=True)
            self.assertEqual(ran.returncode, 1)
            self.assertRegex(ran.stderr, r"^trellis: [^\n]*No space left on device\n$")

    def test_errors_end_as_they_must_where_standard_error_cannot_be_written(self):
        with tempfile.TemporaryDirectory() as folder:
            for words, status in [(["foo"], 2), ([], 2), (["sim", "/nosuch.txt"], 1), (["schedule", "verify", "/nosuch"], 1),
                                  (["doctor", folder], 2), (["train", "/nosuch.yaml"], 1), (["bench", "foo_perf"], 2),
                                  (["launch", "-n", "1", "--", "/nosuch"], 1)]:
                usual = trellis(*words)
                self.assertEqual(usual.returncode, status, (words, usual.stderr))
                for closing in ("2>&-", "2>/dev/full", ">&- 2>&-", "<&- >&- 2>&-"):
                    with self.subTest(words=words, closing=closing):
                        ran = subprocess.run(["sh", "-c", f'exec "$@" {closing}', "sh", TRELLIS, *words], capture_output=True)
                        self.assertEqual(ran.returncode, status)

    def test_what_is_printed_goes_into_no_other_file(self):
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder) / "page.html"
            words = ["sim", "all_reduce", "-m", "ring:4", "-b", "1KiB", "-o", page]
            usual = trellis(*words)
            self.assertEqual(usual.returncode, 0, usual.stderr)
            whole = page.read_text()
            for closing in (">&-", "<&- >&-"):
                ran = subprocess.run(["sh", "-c", f'exec "$@" {closing}', "sh", TRELLIS, *words], capture_output=True, text=True)
                self.assertEqual(ran.returncode, 1)
                self.assertIn("cannot write standard output", ran.stderr)
                self.assertEqual(len(page.read_text()), len(whole))

    def test_a_closed_pipe(self):
        reader, writer = os.pipe()
        os.close(reader)
        ran = subprocess.run([TRELLIS, "--help"], stdout=writer, stderr=subprocess.PIPE, text=True)
        os.close(writer)
        self.assertIn(ran.returncode, (-13, 1))  # SIGPIPE where it is not ignored
        self.assertNotIn("terminate", ran.stderr)

    def test_a_closed_pipe_ends_a_benchmark_silently(self):
        reader, writer = os.pipe()
        os.close(reader)
        ran = subprocess.run([TRELLIS, "bench", "all_reduce", "-b", "8", "-e", "8", "--ranks", "2"], stdout=writer,
                             stderr=subprocess.PIPE, text=True)
        os.close(writer)
        self.assertEqual((ran.returncode, ran.stderr), (128 + 13, ""))


if __name__ == "__main__":
    unittest.main()
