"""trellis launch as a user meets it: output, failures, signals, and that nothing stays behind."""
import os
import pty
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from launched import PATIENCE, alive, launch, wait_until
from program import TRELLIS, children, free_port


def shell(ranks, script, *options, **how):
    return launch("-n", ranks, *options, "--", "sh", "-c", script, **how)


def python(ranks, script, *options, **how):
    return launch("-n", ranks, *options, "--", sys.executable, "-c", script, **how)


class Environment(unittest.TestCase):
    def test_torchruns_variables(self):
        names = ["RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "MASTER_ADDR"]
        ran = shell(3, "echo " + " ".join("$" + name for name in names))
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))
        self.assertEqual(sorted(ran.stdout.splitlines()), [f"[{r}] {r} 3 {r} 3 0 127.0.0.1" for r in range(3)])

    def test_a_fresh_secret_for_all(self):
        environment = {k: v for k, v in os.environ.items() if k != "TRELLIS_SECRET"}
        seen = set()
        for _ in range(2):
            lines = shell(2, "echo $TRELLIS_SECRET", env=environment).stdout.splitlines()
            self.assertEqual(len({line.split()[1] for line in lines}), 1)
            seen.add(lines[0].split()[1])
            self.assertEqual(len(lines[0].split()[1]), 32)
        self.assertEqual(len(seen), 2)

    def test_the_port_is_free_and_kept_for_rank_0(self):
        script = ("import os, socket\n"
                  "if os.environ['RANK'] == '0':\n"
                  "    s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)\n"
                  "    s.bind(('127.0.0.1', int(os.environ['MASTER_PORT']))); s.listen(); print('listening')\n")
        ran = python(2, script)
        self.assertEqual((ran.returncode, ran.stdout), (0, "[0] listening\n"), ran.stderr)

    def test_arguments_arrive_as_they_are(self):
        words = ["[1,2]", "--", "bench", "", "a b", "--help", "-n", "[]"]
        ran = launch("-n", 1, "--", sys.executable, "-c", "import sys; print(sys.argv[1:])", *words)
        self.assertEqual(ran.stdout, f"[0] {words}\n", ran.stderr)

    def test_input_goes_to_rank_0(self):
        ran = shell(2, "wc -c", input="12345")
        self.assertEqual(sorted(ran.stdout.splitlines()), ["[0] 5", "[1] 0"])

    def test_pinned_ranks_have_a_core_each(self):
        ran = python(2, "import os; print(*os.sched_getaffinity(0))", "--pin")
        cores = [line.split()[1:] for line in ran.stdout.splitlines()]
        self.assertTrue(all(len(each) == 1 for each in cores), ran.stdout)
        if len(os.sched_getaffinity(0)) > 1:
            self.assertNotEqual(*cores)

    def test_a_limit_of_descriptors_is_that_of_each_rank_alone(self):
        ranks, most = 40, 64  # their pipes need more than that in the launch
        ran = subprocess.run(["sh", "-c", f'ulimit -S -n {most} && exec "$0" launch -n {ranks} -- sh -c "ulimit -S -n"', TRELLIS],
                             capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))
        self.assertEqual(set(ran.stdout.splitlines()), {f"[{r}] {most}" for r in range(ranks)})


class Nodes(unittest.TestCase):
    """Several launches of this machine that take themselves for nodes."""

    def setUp(self):
        self.port = free_port()
        self.started = []

    def tearDown(self):
        for one in self.started:
            one.kill()
            one.communicate()

    def start(self, node, script, ranks=2, nodes=2, secret="s"):
        command = [TRELLIS, "launch", "-n", str(ranks), "--nnodes", str(nodes), "--node-rank", str(node),
                   "--master-addr", "127.0.0.1", "--master-port", str(self.port), "--", "sh", "-c", script]
        one = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env={**os.environ, "TRELLIS_SECRET": secret})
        self.started.append(one)
        return one

    def two_that_run(self):
        both = [self.start(node, "echo here; exec sleep 600") for node in range(2)]
        for one in both:
            self.assertIn("here", one.stdout.readline())
        return both

    def ends(self, *started):
        return [(one.communicate(timeout=PATIENCE), one.returncode) for one in started]

    def test_the_second_counts_on(self):
        script = "echo $RANK $WORLD_SIZE $LOCAL_RANK $GROUP_RANK $MASTER_ADDR:$MASTER_PORT"
        ended = self.ends(self.start(1, script), self.start(0, script))
        for node, ((said, complaints), status) in zip((1, 0), ended):
            self.assertEqual((status, complaints), (0, ""))
            self.assertEqual(sorted(said.splitlines()), [f"[{r}] {r} 4 {r % 2} {node} 127.0.0.1:{self.port}"
                                                         for r in (2 * node, 2 * node + 1)])

    def test_one_may_be_through_before_the_others(self):
        for first in (0, 1):
            self.setUp()
            script = f"[ $GROUP_RANK = {first} ] || sleep 1; echo done"
            for (said, complaints), status in self.ends(self.start(0, script), self.start(1, script)):
                self.assertEqual((status, complaints, said.count("done")), (0, "", 2))

    def test_a_failure_on_one_ends_the_others(self):
        for failing in (0, 3):
            self.setUp()
            script = f"[ $RANK = {failing} ] && sleep 0.3 && exit 7; exec sleep 600"
            ended = self.ends(self.start(0, script), self.start(1, script))
            here, there = ended if failing == 0 else ended[::-1]
            self.assertEqual([status for _, status in ended], [7, 7], ended)
            self.assertRegex(here[0][1], rf"rank {failing} \(process [0-9]+\) exited with status 7")
            self.assertIn(f"rank {failing} on node {failing // 2} exited with status 7; ending the 2 ranks here",
                          there[0][1])

    def test_one_that_is_told_to_end_ends_the_others(self):
        one, other = self.two_that_run()
        other.terminate()
        (_, complaints), status = self.ends(one)[0]
        self.assertEqual(status, 128 + signal.SIGTERM)
        self.assertIn("the launch of node 1 was told to end by SIGTERM", complaints)
        self.assertEqual(self.ends(other)[0][1], 128 + signal.SIGTERM)

    def test_different_numbers_of_ranks_are_named(self):
        two, three = self.start(0, "exec sleep 600"), self.start(1, "exec sleep 600", ranks=3)
        for (_, complaints), status in self.ends(two, three):
            self.assertEqual(status, 1)
            self.assertIn(" of 2 nodes with 3 ranks each", complaints)

    def test_another_secret_is_named(self):
        self.start(0, "exec sleep 600")
        (_, complaints), status = self.ends(self.start(1, "exec sleep 600", secret="another"))[0]
        self.assertEqual(status, 1)
        self.assertIn("a store with another secret", complaints)

    def test_node_0_is_killed(self):
        one, other = self.two_that_run()
        one.kill()
        (_, complaints), status = self.ends(other)[0]
        self.assertNotEqual(status, 0)
        self.assertRegex(complaints, "the launch of node 0 (was killed|at .* has ended); ending the 2 ranks here")

    def test_another_node_is_killed(self):
        one, other = self.two_that_run()
        other.kill()
        (_, complaints), status = self.ends(one)[0]
        self.assertEqual(status, 128 + signal.SIGKILL)
        self.assertIn("the launch of node 1 was killed; ending the 2 ranks here", complaints)

    def test_a_launch_that_is_stopped_ends_the_job(self):
        for stopped in (0, 1):
            with self.subTest(stopped=stopped):
                self.setUp()
                both = self.two_that_run()
                both[stopped].send_signal(signal.SIGSTOP)
                ended = self.ends(*both)
                self.assertEqual([status for _, status in ended], [1, 1], ended)
                self.assertRegex(ended[stopped][0][1], r"the launch \(process [0-9]+\) has been stopped for 3 s")
                self.assertIn(f"the launch of node {stopped} has been stopped", ended[1 - stopped][0][1])

    def test_a_node_that_stands_still_ends_the_job(self):
        """The process that keeps its ranks, and speaks with the other nodes."""
        for still in (0, 1):
            with self.subTest(still=still):
                self.setUp()
                both = self.two_that_run()
                keeper = children(both[still].pid)[0]
                os.kill(keeper, signal.SIGSTOP)
                try:
                    (_, complaints), status = self.ends(both[1 - still])[0]
                finally:
                    os.kill(keeper, signal.SIGCONT)
                self.assertEqual(status, 1)
                self.assertRegex(complaints, f"the launch of node {still} .*has not (been heard|answered) for 4 s.*"
                                             "; ending the 2 ranks here")
                self.assertNotEqual(self.ends(both[still])[0][1], 0)

    def test_one_that_waits_for_the_others_can_be_told_to_end(self):
        one = self.start(0, "exec sleep 600")
        self.assertIn("waiting for the launches of 2 nodes", one.stderr.readline())
        one.send_signal(signal.SIGINT)
        self.assertEqual(self.ends(one)[0][1], 128 + signal.SIGINT)


class Output(unittest.TestCase):
    def test_lines_stay_whole(self):
        count = 2000
        ran = python(4, f"import os\nfor i in range({count}): print(os.environ['RANK'] * 100, flush=i % 7 == 0)")
        lines = ran.stdout.splitlines()
        self.assertEqual(len(lines), 4 * count)
        self.assertEqual(set(lines), {f"[{r}] " + str(r) * 100 for r in range(4)})

    def test_streams_stay_apart_and_partial_lines_are_kept(self):
        ran = shell(1, "printf 'no end'; printf 'a\\nerr' >&2")
        self.assertEqual((ran.stdout, ran.stderr), ("[0] no end\n", "[0] a\n[0] err\n"))

    def test_raw(self):
        ran = shell(2, "printf x", "--raw")
        self.assertEqual((ran.returncode, ran.stdout, ran.stderr), (0, "xx", ""))

    def test_colour_on_terminals(self):
        terminal, its_end = pty.openpty()
        ran = subprocess.run([TRELLIS, "launch", "-n", "1", "--", "echo", "x"], stdout=its_end, timeout=PATIENCE)
        os.close(its_end)
        self.assertEqual(ran.returncode, 0)
        self.assertEqual(os.read(terminal, 100), b"\x1b[31m[0]\x1b[0m x\r\n")
        os.close(terminal)

    def test_a_reader_that_leaves_ends_the_job(self):
        started = subprocess.Popen([TRELLIS, "launch", "-n", "2", "--", "yes"], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        self.assertIn(started.stdout.readline(), [b"[0] y\n", b"[1] y\n"])
        started.stdout.close()
        self.assertEqual(started.wait(PATIENCE), 128 + signal.SIGPIPE)
        started.stderr.close()

    def test_a_full_disk(self):
        with open("/dev/full", "w") as full:
            ran = subprocess.run([TRELLIS, "launch", "-n", "2", "--", "yes"], stdout=full, stderr=subprocess.PIPE,
                                 text=True, timeout=PATIENCE)
        self.assertEqual(ran.returncode, 1)
        self.assertIn("No space left on device", ran.stderr)


class Failure(unittest.TestCase):
    def test_the_first_one_ends_the_rest_and_is_named(self):
        began = time.monotonic()
        ran = shell(3, 'if [ $RANK = 1 ]; then exit 7; fi; sleep 1000')
        self.assertEqual(ran.returncode, 7)
        self.assertRegex(ran.stderr,
                         r"^trellis launch: rank 1 \(process \d+\) exited with status 7; ending the other 2\n$")
        self.assertLess(time.monotonic() - began, PATIENCE / 2)

    def test_a_signal_is_named(self):
        ran = shell(2, 'if [ $RANK = 0 ]; then kill -SEGV $$; fi; sleep 1000')
        self.assertEqual(ran.returncode, 128 + signal.SIGSEGV)
        self.assertRegex(ran.stderr, r"rank 0 \(process \d+\) was killed by signal 11 \(SIGSEGV\)")

    def test_who_ignores_the_end_is_killed_after_the_grace(self):
        with tempfile.TemporaryDirectory() as folder:
            ran = shell(2, f'if [ $RANK = 0 ]; then while [ ! -e {folder}/ignores ]; do sleep 0.1; done; exit 3; fi; '
                           f'trap "" TERM; touch {folder}/ignores; while :; do sleep 0.1; done', "--grace", 0.5)
        self.assertEqual(ran.returncode, 3)
        self.assertRegex(ran.stderr, r"rank 1 \(process \d+\) ignored the request to end: killed")

    def test_a_program_that_is_not_there(self):
        ran = launch("-n", 3, "--", "/no/such/program")
        self.assertEqual((ran.returncode, ran.stdout), (1, ""))
        self.assertEqual(ran.stderr, "trellis: cannot run '/no/such/program': No such file or directory\n")

    def test_mistakes(self):
        environment = {k: v for k, v in os.environ.items() if k != "TRELLIS_SECRET"}
        for arguments, words in [(["--", "true"], "no ranks to start: expected -n RANKS"),
                                 (["-n", 0, "--", "true"], "-n 0: expected 1 to"),
                                 (["-n", 2], "no program"),
                                 (["-n", 2, "--nnodes", 2, "--node-rank", 2, "--", "true"], "--node-rank 2"),
                                 (["-n", 2, "--nnodes", 2, "--", "true"], "--master-addr"),
                                 (["-n", 2, "--nnodes", 2, "--master-addr", "a", "--", "true"], "TRELLIS_SECRET"),
                                 (["-n", 2, "--rawe", "--", "true"], "did you mean '--raw'?")]:
            with self.subTest(arguments):
                ran = launch(*arguments, env=environment)
                self.assertEqual((ran.returncode, ran.stdout), (2, ""), ran.stderr)
                self.assertIn(words, ran.stderr)


class Ends(unittest.TestCase):
    """Ranks with a child of their own each, which left their process group or not; the ids of all are in a folder."""

    SCRIPT = ("import os, signal, subprocess, sys, time\n"
              "subprocess.Popen(['sleep', '1000'])\n"
              "away = subprocess.Popen(['sleep', '1000'], start_new_session=True)\n"
              "for s in [signal.SIGUSR1, signal.SIGTERM, signal.SIGINT, signal.SIGHUP]:\n"
              "    def heard(number, frame):\n"
              "        open(f'{sys.argv[1]}/heard.{os.environ[\"RANK\"]}.{number}', 'w').close()\n"
              "        if number != signal.SIGUSR1: sys.exit(0)\n"
              "    signal.signal(s, heard)\n"
              "open(f'{sys.argv[1]}/rank.{os.getpid()}.{away.pid}', 'w').close()\n"
              "while True: time.sleep(0.05)\n")

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.started = subprocess.Popen(
            [TRELLIS, "launch", "-n", "2", "--", sys.executable, "-c", self.SCRIPT, self.folder.name],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertTrue(wait_until(lambda: len(self.seen("rank")) == 2))
        ranks = [int(name.split(".")[1]) for name in self.seen("rank")]
        self.away = [int(name.split(".")[2]) for name in self.seen("rank")]
        self.below = ranks + self.away + [pid for rank in ranks for pid in children(rank)]
        self.assertEqual(len(set(self.below)), 6)

    def tearDown(self):
        if self.started.poll() is None:
            self.started.kill()
        self.started.communicate(timeout=PATIENCE)
        for pid in self.below:
            if alive(pid):
                os.kill(pid, signal.SIGKILL)
        self.folder.cleanup()

    def seen(self, what):
        return [name for name in os.listdir(self.folder.name) if name.startswith(what + ".")]

    def assert_nothing_left(self):
        self.assertTrue(wait_until(lambda: not any(map(alive, self.below))), [p for p in self.below if alive(p)])

    def test_signals_that_end(self):
        self.started.send_signal(signal.SIGTERM)
        self.assertEqual(self.started.wait(PATIENCE), 0, "all ranks ended well")
        self.assertEqual(len(self.seen("heard")), 2)
        self.assert_nothing_left()

    def test_interrupted(self):
        self.started.send_signal(signal.SIGINT)
        self.started.wait(PATIENCE)
        self.assertEqual(sorted(name.split(".")[2] for name in self.seen("heard")), ["2", "2"])
        self.assert_nothing_left()

    def test_signals_that_do_not_end(self):
        self.started.send_signal(signal.SIGUSR1)
        self.assertTrue(wait_until(lambda: len(self.seen("heard")) == 2))
        self.assertIsNone(self.started.poll())
        self.assertTrue(all(map(alive, self.below)))

    def test_launch_is_killed(self):
        self.started.kill()
        self.assert_nothing_left()

    def test_the_process_between_is_killed(self):
        os.kill(children(self.started.pid)[0], signal.SIGKILL)
        self.assertEqual(self.started.wait(PATIENCE), 1)
        self.assertIn("SIGKILL", self.started.stderr.read())
        self.assert_nothing_left()

    def test_a_rank_is_killed(self):
        os.kill(self.below[0], signal.SIGKILL)
        self.assertEqual(self.started.wait(PATIENCE), 128 + signal.SIGKILL)
        self.assert_nothing_left()


if __name__ == "__main__":
    unittest.main()
