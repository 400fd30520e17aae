"""trellis launch --hosts: the launches of several hosts, by a script in the place of ssh."""
import os
import pathlib
import signal
import subprocess
import tempfile
import unittest

from launched import PATIENCE, alive, launch, wait_until
from program import TRELLIS, free_port, remote_shell, trellis


class Hosts(unittest.TestCase):
    """Two hosts, which are this one: the remote shell is a script, as ssh would be."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.shell = remote_shell(self.folder.name)
        self.port = str(free_port())

    def words(self, hosts, *words):
        return ["--hosts", hosts, "--rsh", str(self.shell), "--master-addr", "127.0.0.1", "--master-port", self.port, *words]

    def start(self, *words):
        return subprocess.Popen([TRELLIS, "launch", *self.words("a:2,b:2"), "--", *words], stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True, stdin=subprocess.DEVNULL)

    def test_ranks_are_on_every_host(self):
        ran = launch(*self.words("a,b", "-n", "2"), "--", "sh", "-c", "echo $RANK $LOCAL_RANK $WORLD_SIZE $TRELLIS_HOST; pwd")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        here = os.getcwd()
        self.assertEqual(sorted(ran.stdout.splitlines()),
                         sorted([f"[{r}] {r} {r % 2} 4 {'ab'[r // 2]}" for r in range(4)] + [f"[{r}] {here}" for r in range(4)]))

    def test_variables_words_and_the_secret_arrive_and_the_secret_is_not_in_a_command_line(self):
        secret = "of this test"
        remote_shell(self.folder.name, 'case "$*" in *"of this"*) exit 9;; esac\n')
        script = 'echo "$NCCL_DEBUG|$OWN|$HIDDEN|$TRELLIS_SECRET|$1"'
        ran = launch(*self.words("a:1,b:1", "-x", "OWN", "--raw"), "--", "sh", "-c", script, "_", "it's \"two\" words",
                     env={**os.environ, "NCCL_DEBUG": "a b", "OWN": "mine", "HIDDEN": "no", "TRELLIS_SECRET": secret})
        self.assertEqual(ran.returncode, 0, ran.stderr)
        shown = [line.split("|") for line in ran.stdout.splitlines()]
        # The remote shell is started from here, so that it has all variables; ssh's would not.
        self.assertEqual([(s[0], s[1], s[3], s[4]) for s in shown], [("a b", "mine", secret, "it's \"two\" words")] * 2)

    def test_a_collective_runs_across_them(self):
        ran = launch(*self.words("a:1,b:1"), "--", TRELLIS, "bench", "all_reduce_perf", "-b", "1K", "-e", "1K",
                     "-n", "2", TRELLIS_INTERFACE="lo")  # there may be no other
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
        self.assertIn("0 OK", ran.stdout)

    def test_bench_starts_itself_on_hosts(self):
        hosts = pathlib.Path(self.folder.name) / "hosts"
        hosts.write_text("localhost slots=2\n")
        ran = trellis("bench", "allr", "--hosts-file", hosts, "-b", "1kb", "-e", "1kb", timeout=PATIENCE)
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
        self.assertIn("# Out of bounds values : 0 OK", ran.stdout)
        ran = trellis("bench", "allr", "-slocalhost", "--ranks", "2", "-b", "1kb", "-e", "1kb", timeout=PATIENCE)
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
        ran = trellis("bench", "allr", "--ranks", "3", "--hosts", "a", "b")
        self.assertEqual((ran.returncode, ran.stderr.count("\n")), (2, 1), ran.stderr)
        self.assertIn("3 ranks on 2 hosts", ran.stderr)

    def test_the_first_failure_ends_all_and_is_the_status(self):
        ran = launch(*self.words("a:2,b:2"), "--", "sh", "-c", "[ $RANK = 3 ] && exit 7; sleep 1000")
        self.assertEqual(ran.returncode, 7, ran.stderr)
        self.assertIn("rank 3", ran.stderr)

    def test_a_host_that_cannot_be_reached_ends_all(self):
        ran = launch(*self.words("a:1,away:1"), "--", "sleep", "1000")
        self.assertEqual(ran.returncode, 255, ran.stderr)
        self.assertIn("host away: the launch there ended with status 255", ran.stderr)

    def test_a_shell_that_fails_without_a_word_is_named_with_its_host(self):
        for status in (1, 7, 1, 7):  # it may have ended before the launch tells it something, or not
            silent = remote_shell(self.folder.name, f"exit {status}\n")
            ran = launch("--hosts", "one,two", "-n", "2", "--rsh", silent, "--", "true")
            self.assertEqual((ran.returncode, ran.stdout), (status, ""), ran.stderr)
            self.assertRegex(ran.stderr, rf"^trellis launch: host (one|two): the launch there ended with status {status} "
                                         rf"\(remote shell: '{silent}'\)\n$")

    def test_signals_reach_every_rank_and_nothing_stays(self):
        for how in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            with self.subTest(how=how):
                job = self.start("sh", "-c", "echo at $$; exec sleep 1000")
                pids = [int(job.stdout.readline().split()[-1]) for _ in range(4)]
                job.send_signal(how)
                self.assertNotEqual(job.wait(PATIENCE), 0)
                self.assertTrue(wait_until(lambda: not any(alive(pid) for pid in pids)))
                job.stdout.close()

    def test_mistakes_are_named(self):
        for words, said in [(["--hosts", "a"], "a has no slots"),
                            (["--hosts", "a:2", "--nnodes", "2"], "--nnodes does not go with --hosts"),
                            (["--hosts", "localhost:1,b:1"], "the first host is localhost"),
                            (["--hosts-file", "/nowhere"], "/nowhere"), ([], "no ranks to start")]:
            ran = launch(*words, "--", "true")
            self.assertEqual((ran.returncode, ran.stderr.count("\n")), (2, 1), ran.stderr)
            self.assertIn(said, ran.stderr)


if __name__ == "__main__":
    unittest.main()
