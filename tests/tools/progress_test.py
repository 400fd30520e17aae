"""Long work says that it goes on, in a log as on a terminal, and ends at once with what it has when it is asked to."""
import os
import pty
import re
import signal
import subprocess
import time
import unittest

from program import TRELLIS, Case, await_handler
from terminal import interrupted_on_a_terminal

LONG = ["schedule", "verify", "--all", "--ranks", "1..64", "--jobs", "1"]  # a minute of work on any host


class Progress(Case):
    def began(self, words=LONG, **how):
        ran = subprocess.Popen([TRELLIS, *words], stdout=subprocess.PIPE, text=True, **how)
        self.addCleanup(ran.stdout.close)
        self.addCleanup(ran.kill)
        return ran

    def assert_ends_at_once(self, ran):
        ran.send_signal(signal.SIGINT)
        said = ran.communicate(timeout=300)[0]
        self.assertEqual(ran.returncode, 1)
        self.assertRegex(said, r"\n\d+ proved.*\ninterrupted: \d+ requests were not tried\n$")

    def test_a_log_gets_a_line_every_ten_seconds(self):
        began = time.monotonic()
        ran = self.began(stderr=subprocess.PIPE, env=os.environ | {"TRELLIS_PROGRESS": "1"})
        self.addCleanup(ran.stderr.close)
        self.assertRegex(ran.stderr.readline(), r"^trellis: \d+ of \d+ requests, \d+ s, about \d+ (s|min) left\n$")
        self.assertGreater(time.monotonic() - began, 8)
        ran.send_signal(signal.SIGINT)
        ran.wait(300)
        self.assertEqual(ran.returncode, 1)

    def test_a_terminal_sees_a_line_that_is_erased(self):
        reader, writer = pty.openpty()
        ran = self.began(stderr=writer)
        os.close(writer)
        said = b""
        while b"left" not in said:
            said += os.read(reader, 4096)
        self.assertRegex(said.decode(), r"\r\x1b\[K\d+ of \d+ requests, \d+ s, about \d+ (s|min) left")
        self.assert_ends_at_once(ran)
        said = b""
        try:
            while part := os.read(reader, 65536):
                said += part
        except OSError:  # how a terminal ends that nobody writes to any more
            pass
        self.assertTrue(said.endswith(b"\r\x1b[K"), said)
        os.close(reader)

    def test_a_core_program_says_how_much_it_has_run(self):
        saved = self.new_folder() / "c.bin"
        status, out, said = interrupted_on_a_terminal(
            [TRELLIS, "core", "run", "matmul", "-p", "M=8192", "-p", "K=8192", "-p", "N=2048", "--save", f"c={saved}"],
            r"(simulated, [^\0]*){3}")
        self.assertEqual((status, out), (1, ""))
        self.assertRegex(said, r"matmul: \d+ of \d+ instructions, [\d.]+ us simulated, \d+ s")
        self.assertRegex(said, r"\r\x1b\[Ktrellis: interrupted: matmul takes longer than [\d.]+ [um]s; \d+ of \d+ instructions "
                               rf"were run, and not written: {saved}\r\n$")
        self.assertFalse(saved.exists())
        done = [tuple(map(int, pair)) for pair in re.findall(r"(\d+) of (\d+) instructions", said)]
        self.assertEqual(len({of for _, of in done}), 1)
        self.assertTrue(all(number <= of for number, of in done), done)

    def test_a_sweep_ends_while_it_is_prepared(self):
        status, out, said = interrupted_on_a_terminal([TRELLIS, "machine", "tune", "trn1.32xlarge x 64"], r"\[K[a-z_]+ of all: ")
        self.assertEqual(status, 1, said)
        self.assertRegex(out + said, r"interrupted before there was a result\r\n$|(^|\n)interrupted: \d+ of \d+ points are done")

    def test_a_schedule_that_is_written_out_ends_at_once(self):
        ran = subprocess.Popen([TRELLIS, "sim", "all_to_all", "-m", "trn2.48xlarge x 32", "--unfolded", "-a", "direct"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(ran.kill)
        await_handler(ran, signal.SIGINT)
        time.sleep(1)
        ran.send_signal(signal.SIGINT)
        said = "".join(ran.communicate(timeout=300))
        self.assertEqual(ran.returncode, 1, said)
        self.assertIn("interrupted", said)


if __name__ == "__main__":
    unittest.main()
