"""The oracle itself catches faults, and the verifier agrees with it on some damaged schedules; tools/soak has many."""
import contextlib
import io
import os
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from oracle import why_wrong  # noqa: E402
from damage import compare  # noqa: E402
from text import parse  # noqa: E402

TRELLIS = os.environ["TRELLIS"]
RING = """trellis schedule 1
collective all_reduce
ranks 2
pieces 2
channels 1
rank 0 scratch 0
0 send in[1] to 1 tag 0
1 recv_reduce out[0] = in[0] from 1 tag 0
2 send out[0] to 1 tag 1 after 1
3 recv out[1] from 1 tag 1
rank 1 scratch 0
0 send in[0] to 0 tag 0
1 recv_reduce out[1] = in[1] from 0 tag 0
2 send out[1] to 0 tag 1 after 1
3 recv out[0] from 0 tag 1
"""
# Passes everything except proofs to the real program.
LENIENT = """#!{python}
import json, subprocess, sys
if "verify" in sys.argv:
    print(json.dumps({{"proofs": [{{"ok": True, "fault": ""}} for _ in sys.argv[4:]]}}))
else:
    sys.exit(subprocess.run(["{trellis}", *sys.argv[1:]]).returncode)
"""


class Oracle(unittest.TestCase):
    def assert_wrong(self, words, old, new, text=RING):
        self.assertIn(old, text)
        self.assertIn(words, why_wrong(parse(text.replace(old, new, 1))) or "right")

    def test_it_knows_what_is_right(self):
        self.assertIsNone(why_wrong(parse(RING)))

    def test_it_catches_faults(self):
        self.assert_wrong("race", " after 1", "")
        self.assert_wrong("never starts", "0 send in[1] to 1 tag 0\n1 recv_reduce out[0] = in[0] from 1 tag 0",
                          "0 recv_reduce out[0] = in[0] from 1 tag 0\n1 send in[1] to 1 tag 0 after 0",
                          RING.replace("0 send in[0] to 0 tag 0\n1 recv_reduce out[1] = in[1] from 0 tag 0",
                                       "0 recv_reduce out[1] = in[1] from 0 tag 0\n1 send in[0] to 0 tag 0 after 0"))
        self.assert_wrong("holds", "recv_reduce out[0] = in[0]", "recv out[0]")
        self.assert_wrong("one end", "tag 1 after 1", "tag 2 after 1")
        self.assert_wrong("different size", "3 recv out[1]", "3 recv out[0]")
        self.assert_wrong("writes to the input", "recv out[1]", "recv in[1]")
        self.assert_wrong("beyond", "send in[1]", "send in[2]")
        self.assert_wrong("root", "pieces 2", "pieces 2\nroot 1")

    def test_in_place_halves_overlap(self):
        in_place = RING.replace("channels", "in_place\nchannels")
        self.assertIn("race", why_wrong(parse(in_place)))  # rank 0 may receive into a place it still sends from
        text = in_place.replace("3 recv out[1] from 1 tag 1", "3 recv out[1] from 1 tag 1 after 0")
        self.assertIsNone(why_wrong(parse(text.replace("3 recv out[0] from 0 tag 1", "3 recv out[0] from 0 tag 1 after 0"))))

    def test_the_verifier_agrees_on_damaged_schedules(self):
        self.assertEqual(compare(TRELLIS, 600, seed=3, most_victims=40), 0)

    def test_a_verifier_that_accepts_all_is_found_out(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        lenient = pathlib.Path(folder.name) / "lenient"
        lenient.write_text(LENIENT.format(python=sys.executable, trellis=TRELLIS))
        lenient.chmod(0o755)
        with contextlib.redirect_stdout(io.StringIO()) as said:
            self.assertEqual(compare(str(lenient), 100, seed=3, most_victims=5), 1)
        self.assertIn("\nverify: proved\noracle: ", said.getvalue())


if __name__ == "__main__":
    unittest.main()
