"""trellis schedule, as a user meets it: what each command prints, which mistakes it names, and how it ends."""
import functools
import json
import os
import pathlib
import re
import resource
import subprocess
import unittest
import xml.etree.ElementTree as xml

import program
from program import TRELLIS, trellis, without_origin

SVG = "{http://www.w3.org/2000/svg}"
RING = ["all_reduce", "--algorithm", "ring", "--dims", "4"]
schedule = functools.partial(trellis, "schedule", timeout=300)


class Case(program.Case):
    trellis = staticmethod(schedule)

    def written(self, name, *arguments):
        path = self.new_folder() / name
        path.write_text(self.printed(*arguments))
        return str(path)


class Mistakes(Case):
    def test_each_is_named_in_one_line(self):
        for words, *arguments in [
            ("4xx4 is not a shape: expected sizes like 8 or 4x4x4", "show", *RING[:-1], "4xx4"),
            ("0 is not a shape", "show", *RING[:-1], "0"),
            ("99999999999 is not a shape", "show", *RING[:-1], "99999999999"),
            ("expected at most 16777216", "show", *RING[:-1], "4096x8192"),
            ("no --dims", "show", *RING[:-2]),
            ("no --algorithm: all_reduce is served by", "show", "all_reduce", "--dims", "4"),
            ("did you mean 'ring'?", "show", "all_reduce", "-a", "rin", "-d", "4"),
            ("ring does not serve barrier: barrier is served by", "show", "barrier", "-a", "ring", "-d", "4"),
            ("did you mean 'all_reduce'?", "draw", "all_reduec"),
            ("root 9 is not a rank: expected 0 to 3", "show", "broadcast", *RING[1:], "--root", "9"),
            ("--root 0: all_reduce has no root", "show", *RING, "--root", "0"),
            ("--peer 0: only send_recv has a peer", "show", "broadcast", *RING[1:], "--peer", "0"),
            ("--pairs 0:1: only permute has pairs", "show", *RING, "--pairs", "0:1"),
            ("--levels ring: ring has no levels", "show", *RING, "--levels", "ring"),
            ("--root goes with a collective", "verify", "some.txt", "--root", "0"),
            ("--folded excludes --all", "verify", "--all", "--folded"),
            ("--channel x: expected all", "draw", *RING, "--channel", "x"),
            ("--channel 1: expected all, or 0 to 0", "draw", *RING, "--channel", "1"),
            ("no --pairs", "show", "permute", "-a", "direct", "-d", "4"),
            ("'1-2' in '0:1,1-2' is not a pair", "show", "permute", "-a", "direct", "-d", "4", "--pairs", "0:1,1-2"),
            ("0 channels: expected 1 to", "show", *RING, "--channels", "0"),
            ("--rank 4: expected 0 to 3", "show", *RING, "--rank", "4"),
            ("too large to show", "show", *RING[:-1], "100000"),
            ("--dims goes with a collective", "verify", "some.txt", "--dims", "4"),
            ("'x' in '1,x' is not a count of ranks", "verify", "--all", "--ranks", "1,x"),
            ("'0' in '0' is not a count of ranks", "verify", "--all", "--ranks", "0"),
            ("'4..2' in '4..2' is not a count of ranks", "verify", "--all", "--ranks", "4..2"),
            ("expected at most 16777216", "verify", "--all", "--ranks", "1..2000000000"),
            ("more than 4096 counts", "verify", "--all", "--ranks", "1..16777216"),
            ("--all takes no schedule", "verify", "all_reduce", "--all"),
            ("--all tries every --dims by itself", "verify", "--all", "--dims", "4"),
            ("--all: ring does not serve barrier", "verify", "--all", "-a", "ring", "--collective", "barrier"),
            ("nothing to verify", "verify"),
            ("--to xml: expected text or msccl-xml", "convert", *RING, "--to", "xml"),
            ("--colours red: expected data", "draw", *RING, "--colours", "red"),
            ("'b' is not a range", "draw", *RING, "--rounds", "b"),
            ("the schedule has rounds 1..6", "draw", *RING, "--rounds", "7..9"),
            ("65 ranks are too many to draw", "draw", *RING[:-1], "65"),
            ("some of the 126 rounds, as with --rounds 1..4", "draw", *RING[:-1], "64"),
        ]:
            with self.subTest(arguments):
                self.assert_fails(2, words, *arguments)

    def test_a_file_that_is_not_there(self):
        for command in [["show"], ["verify"], ["draw"], ["convert", "--to", "text"]]:
            with self.subTest(command):
                self.assert_fails(1, "cannot read 'no/such.txt': No such file", *command, "no/such.txt")

    def test_a_file_that_holds_no_schedule(self):
        for text in ["", "hello\n", "<algo>", "{", "{}", "\0\1\2", "trellis schedule 1\nranks x\n"]:
            path = self.new_folder() / "bad.txt"
            path.write_text(text)
            for command in [["show"], ["verify"], ["draw"], ["convert", "--to", "text"]]:
                with self.subTest(text=text, command=command):
                    self.assert_fails(2, f"{path}: ", *command, str(path))

    def test_a_file_without_end(self):
        self.assert_fails(1, "cannot read '/dev/zero': it holds more than 1 GiB", "verify", "/dev/zero")

    def test_no_memory(self):
        def little():
            resource.setrlimit(resource.RLIMIT_AS, (300 << 20, 300 << 20))

        if "asan" in TRELLIS or "tsan" in TRELLIS:
            self.skipTest("a sanitizer needs more address space than this leaves")
        ran = schedule("verify", "/dev/zero", preexec_fn=little)
        self.assertEqual((ran.returncode, ran.stdout), (1, ""))
        self.assertRegex(ran.stderr, r"^trellis: not enough memory [^\n]+\n$")

    def test_a_full_disk(self):
        for command in [["show", *RING], ["draw", *RING], ["convert", *RING, "--to", "text"]]:
            with self.subTest(command):
                self.assert_fails(1, "No space left on device", *command, "-o", "/dev/full")

    def test_a_closed_pipe(self):
        for command in ["show all_gather -a ring -d 512", "list", "draw all_gather -a ring -d 32", "list --json"]:
            with self.subTest(command):
                ran = subprocess.run(f"'{TRELLIS}' schedule {command} | head -1", shell=True, capture_output=True, text=True)
                self.assertEqual(len(ran.stdout.splitlines()), 1)
                self.assertNotIn("terminate", ran.stderr)


class List(Case):
    def test_json_has_each_pair_that_is_served(self):
        rows = json.loads(self.printed("list", "--json"))["algorithms"]
        self.assertIn(("ring", "all_reduce"), [(row["algorithm"], row["collective"]) for row in rows])
        self.assertTrue(all(row["constraint"] and row["summary"] for row in rows))

    def test_one_collective(self):
        rows = json.loads(self.printed("list", "--collective", "broadcast", "--json"))["algorithms"]
        self.assertEqual({row["collective"] for row in rows}, {"broadcast"})
        self.assertIn("ring", self.printed("list", "--collective", "broadcast"))
        self.assert_fails(2, "did you mean 'broadcast'?", "list", "--collective", "brodcast")


class Show(Case):
    def test_what_is_shown_can_be_read_again(self):
        path = self.written("ring.txt", "show", *RING)
        again = self.printed("show", path)
        self.assertEqual(again.splitlines()[1:], pathlib.Path(path).read_text().splitlines()[1:])

    def test_the_facts_come_first(self):
        lines = self.printed("show", *RING).splitlines()
        self.assertEqual(lines[0], "# all_reduce by ring on 4")
        self.assertEqual(lines[1], "# 4 ranks, 48 steps, 24 transfers, a longest chain of 6")

    def test_one_rank_is_the_same_alone_and_among_all(self):
        path = self.written("ring.txt", "show", *RING)
        alone = self.printed("show", *RING, "--rank", "2").splitlines()[1:]
        self.assertEqual(alone, self.printed("show", path, "--rank", "2").splitlines()[1:])

    def test_one_rank_of_very_many(self):
        lines = self.printed("show", "barrier", "-a", "dissemination", "-d", "1000000", "--rank", "999999").splitlines()
        self.assertIn("rank 999999 of 1000000: ", lines[1])


class Verify(Case):
    def test_a_request_is_proved_in_words(self):
        text = self.printed("verify", *RING, "--in-place")
        self.assertRegex(text, r"^all_reduce by ring on 4, in place: proved; 4 ranks, 48 steps, 24 transfers\n")
        proof = json.loads(self.printed("verify", *RING, "--json"))["proofs"][0]
        self.assertEqual((proof["ok"], proof["ranks"], proof["sampled"], proof["fault"]), (True, 4, [], ""))

    def test_what_is_refused_says_why(self):
        self.assert_fails(2, "2 channels", "verify", "barrier", "-a", "dissemination", "-d", "4", "--channels", "2")

    def test_damage_is_found(self):
        good = self.printed("convert", *RING, "--to", "text")
        for old, new, words in [
            (r"recv_reduce out\[(\d)\] = in\[(\d)\]", r"recv out[\1]", "ends wrong"),
            (r"( after \d+)", r"", "rank "),
            (r"to 1 tag 0", r"to 2 tag 0", "rank "),
        ]:
            with self.subTest(new):
                path = self.new_folder() / "bad.txt"
                path.write_text(re.sub(old, new, good, count=1))
                ran = schedule("verify", str(path))
                self.assertEqual((ran.returncode, ran.stderr), (1, ""))
                self.assertIn(": FAULT\n  ", ran.stdout)
                self.assertIn(words, ran.stdout)
                self.assertEqual(schedule("verify", str(path), "--json").returncode, 1)

    def test_several_files(self):
        good = self.written("good.txt", "convert", *RING, "--to", "text")
        self.assertEqual(self.printed("verify", good, good).count(": proved; "), 2)

    def test_one_bad_file_does_not_hide_the_others(self):
        good = self.written("good.txt", "convert", *RING, "--to", "text")
        broken, faulty = self.new_folder() / "broken.txt", self.new_folder() / "faulty.txt"
        broken.write_text("hello\n")
        faulty.write_text(pathlib.Path(good).read_text().replace("to 1 tag 0", "to 2 tag 0"))
        for status, bad in [(2, str(broken)), (1, str(faulty)), (1, "no/such.txt")]:
            with self.subTest(bad):
                ran = schedule("verify", good, bad, good)
                self.assertEqual((ran.returncode, ran.stderr), (status, ""))
                self.assertEqual(ran.stdout.count(": proved; "), 2)
                self.assertIn(f"{bad}: FAULT\n  ", ran.stdout)
                ran = schedule("verify", good, bad, good, "--json")
                self.assertEqual((ran.returncode, ran.stderr), (status, ""))
                proofs = json.loads(ran.stdout)["proofs"]
                self.assertEqual([proof["ok"] for proof in proofs], [True, False, True])
                self.assertEqual([bool(proof["fault"]) for proof in proofs], [False, True, False])
        self.assertEqual(schedule("verify", "no/such.txt", str(broken), str(faulty)).returncode, 2)

    def test_json_is_json_whatever_a_file_holds(self):
        good = self.written("good.txt", "convert", *RING, "--to", "text")
        odd, name = self.new_folder() / "odd.txt", self.new_folder() / os.fsdecode(b"n\xff.txt")
        odd.write_bytes(b"trellis schedule 1\n\xff\n")
        name.write_bytes(b"hello\n")
        ran = schedule("verify", "--json", good, str(odd), str(name), good)
        self.assertEqual((ran.returncode, ran.stderr), (2, ""))
        proofs = json.loads(ran.stdout)["proofs"]
        self.assertEqual([proof["ok"] for proof in proofs], [True, False, False, True])
        self.assertIn("line 2: found '\ufffd'", proofs[1]["fault"])
        for status, path, words in [(1, "no/such.txt", "No such file"), (2, str(odd), "line 2: found '\ufffd'")]:
            ran = schedule("verify", "--json", path)
            self.assertEqual((ran.returncode, ran.stderr), (status, ""))
            [proof] = json.loads(ran.stdout)["proofs"]
            self.assertFalse(proof["ok"])
            self.assertIn(words, proof["fault"])

    def test_a_fault_of_the_head_has_file_and_line(self):
        path = self.new_folder() / "head.txt"
        path.write_text(self.printed("convert", "broadcast", *RING[1:], "--to", "text").replace("root 0", "root 7"))
        line = path.read_text().splitlines().index("root 7") + 1
        self.assert_fails(2, f"{path}: line {line}: root 7 is not a rank: expected 0 to 3", "verify", str(path))

    def test_order_by_way_of_another_rank_counts_against_the_list(self):
        path = self.new_folder() / "order.txt"
        path.write_text("trellis schedule 1\ncollective broadcast\nranks 2\npieces 1\nroot 0\nchannels 1\n"
                        "rank 0 scratch 2 like 0 0\n0 recv tmp[1] from 1 tag 0\n1 copy out[0] = tmp[0] after 0\n"
                        "2 copy tmp[0] = in[0]\n3 send tmp[0] to 1 tag 0 after 2\n"
                        "rank 1 scratch 0\n0 recv out[0] from 0 tag 0\n1 send out[0] to 0 tag 0 after 0\n")
        self.assertIn(": proved; ", self.printed("verify", str(path)))

    def test_what_takes_too_long_to_prove_is_refused_in_seconds(self):
        path, most = self.new_folder() / "large.txt", 16_777_215
        ranks = "".join(f"rank {r} scratch 0\n0 send in[0..{most - 2}] to {1 - r} tag 0\n"
                        f"1 send in[{most - 1}] to {1 - r} tag 1\n"
                        f"2 recv_reduce out[0..{most - 2}] = in[0..{most - 2}] from {1 - r} tag 0\n"
                        f"3 recv_reduce out[{most - 1}] = in[{most - 1}] from {1 - r} tag 1\n" for r in [0, 1])
        path.write_text(f"trellis schedule 1\ncollective all_reduce\nranks 2\npieces {most}\nchannels 1\n{ranks}")
        ran = schedule("verify", str(path))
        self.assertEqual((ran.returncode, ran.stderr), (1, ""))
        self.assertIn("neither proved nor faulty", ran.stdout)

    def test_sizes_are_claimed_only_as_far_as_they_are_proved(self):
        self.assertIn("whatever the data and its size\n", self.printed("verify", *RING))
        path = self.new_folder() / "even.txt"
        path.write_text(re.sub(r"\n(pieces \d+)\n", r"\n\1\neven\n", self.printed("convert", *RING, "--to", "text")))
        self.assertIn("whatever the data, for counts that divide evenly\n", self.printed("verify", str(path)))

    def test_large_machines_are_folded(self):
        for arguments in [["-d", "100000"], ["-d", "8", "--folded"]]:
            text = self.printed("verify", "barrier", "-a", "dissemination", *arguments)
            self.assertIn("proved when small, sampled at this size", text)
            self.assertIn("\n  sampled: ", text)
            self.assertIn("\n  the result and deadlock are proved on the small machine only\n", text)

    def test_all_is_the_same_with_any_number_of_threads(self):
        def rows(jobs):
            ran = schedule("verify", "--all", "--ranks", "1..4", "--algorithm", "ring", "--jobs", jobs, "--json")
            self.assertEqual((ran.returncode, ran.stderr), (0, ""))
            found = json.loads(ran.stdout)
            return [{k: v for k, v in row.items() if k != "time_us"} for row in found["proofs"]], found["faults"]

        self.assertEqual(rows("1"), rows("3"))
        self.assertTrue(all(row["failed"] == 0 and row["proved"] > 0 for row in rows("2")[0]))

    def test_all_as_a_table(self):
        text = self.printed("verify", "--all", "--ranks", "2,3", "--algorithm", "ring", "--collective", "all_reduce")
        self.assertRegex(text, r"^algorithm +collective +proved +does not apply +refused +failed +steps +time")
        self.assertRegex(text, r"\n\d+ proved, \d+ do not apply, \d+ refused, 0 failed\n$")


class Convert(Case):
    def test_there_and_back(self):
        first = self.written("a.xml", "convert", "all_gather", "-a", "ring", "-d", "4", "--to", "msccl-xml")
        xml.parse(first)
        text = self.written("a.txt", "convert", first, "--to", "text")
        again = self.written("b.xml", "convert", text, "--to", "msccl-xml")
        # Steps may move to other thread blocks; their number is the same, and they are still right.
        steps = [len(list(xml.parse(path).iter("step"))) for path in [first, again]]
        self.assertEqual(*steps)
        self.assertEqual(self.printed("verify", first, text, again).count(": proved; "), 3)

    def test_what_is_wrong_is_written_only_when_asked(self):
        path, out = self.new_folder() / "racy.txt", self.new_folder() / "out.txt"
        path.write_text(re.sub(r" after \d+", "", self.printed("convert", *RING, "--to", "text"), count=1))
        for command in [["convert", "--to", "text"], ["convert", "--to", "msccl-xml"], ["draw"]]:
            with self.subTest(command):
                self.assert_fails(1, f"{path}: rank ", *command, str(path), "-o", str(out.with_suffix(".svg")))
                self.assert_fails(1, "nothing is written without --unproved", *command, str(path))
                self.assertFalse(out.with_suffix(".svg").exists())
                self.assertNotEqual(self.printed(*command, str(path), "--unproved"), "")

    def test_what_the_format_cannot_say(self):
        self.assert_fails(2, "", "convert", "broadcast", "-a", "ring", "-d", "4", "--to", "msccl-xml")

    def test_standard_input(self):
        text = self.printed("convert", *RING, "--to", "text")
        self.assertEqual(self.printed("convert", "-", "--to", "text", input=text), text)


class Draw(Case):
    def drawn(self, *arguments):
        return xml.fromstring(self.printed("draw", *arguments))

    def groups(self, svg, kind):
        return [g for g in svg.iter(SVG + "g") if g.get("class") == kind]

    def test_each_transfer_and_rank_is_there_once(self):
        svg = self.drawn(*RING)
        self.assertEqual(len(self.groups(svg, "t")), 24)
        self.assertEqual(len(self.groups(svg, "r")), 4)
        titles = [g.find(SVG + "title").text for g in self.groups(svg, "t")]
        self.assertIn("round 1, channel 0: rank 0 step 0 (send in[3] to 1)", titles[0])

    def test_everything_lies_within_the_picture(self):
        for arguments in [RING, [*RING, "--channels", "2"], ["all_reduce", "-a", "ring", "-d", "16"], [*RING, "--down"],
                          ["broadcast", "-a", "ring", "-d", "1"], ["all_to_all", "-a", "direct", "-d", "16"],
                          ["all_reduce", "-a", "ring", "-d", "32", "--rounds", "2..5"]]:
            svg = self.drawn(*arguments)
            wide, high = float(svg.get("width")), float(svg.get("height"))
            for item in svg.iter():
                for x, y, w, h in [("x", "y", "width", "height"), ("cx", "cy", "r", "r"), ("x2", "y2", "", "")]:
                    if x in item.attrib:
                        self.assertTrue(0 <= float(item.get(x)) + float(item.get(w, 0)) <= wide, (arguments, item.attrib))
                        self.assertTrue(0 <= float(item.get(y)) + float(item.get(h, 0)) <= high, (arguments, item.attrib))

    def test_labels_do_not_overlap(self):
        for arguments in [RING, [*RING, "--channels", "2", "--segments", "2"], ["all_to_all", "-a", "direct", "-d", "8"]]:
            boxes = []
            for group in self.groups(self.drawn(*arguments), "t"):
                box = group.find(SVG + "rect").attrib
                boxes.append([float(box[key]) for key in ["x", "y", "width", "height"]])
            for i, (x, y, w, h) in enumerate(boxes):
                for other_x, other_y, other_w, other_h in boxes[:i]:
                    apart = x >= other_x + other_w or other_x >= x + w or y >= other_y + other_h or other_y >= y + h
                    self.assertTrue(apart, arguments)

    def test_a_send_with_two_ends_has_one_box_and_two_tails(self):
        svg = self.drawn("all_gather", "-a", "kangaring", "-d", "2x4")
        tails = [len([p for p in g.iter(SVG + "path") if p.get("class") == "wire"]) for g in self.groups(svg, "t")]
        self.assertEqual((sum(tails), set(tails)), (112, {1, 2}))
        self.assertIn("one read, sent to two", [text.text for text in svg.iter(SVG + "text")])

    def test_a_thicket_shows_its_first_channel(self):
        torus = ["all_reduce", "-a", "torus", "-d", "4x4"]
        self.assertEqual(len(self.groups(self.drawn(*torus), "t")), 192)
        self.assertEqual(len(self.groups(self.drawn(*torus, "--channel", "all"), "t")), 768)
        self.assertIn("channel 0 of 4; --channel all", self.printed("draw", *torus))

    def test_it_stands_alone(self):
        text = self.printed("draw", *RING)
        self.assertNotRegex(text.replace('xmlns="http://www.w3.org/2000/svg"', ""), r"https?:|<script|href|url\(|@import")

    def test_some_rounds(self):
        svg = self.drawn("all_reduce", "-a", "ring", "-d", "8", "--rounds", "3..4")
        self.assertEqual(len(self.groups(svg, "t")), 16)

    def test_names_from_files_cannot_break_out(self):
        text = self.printed("convert", *RING, "--to", "text").replace("algorithm ring", "algorithm <b>&\"x\"")
        path = self.new_folder() / "odd.txt"
        path.write_text(text)
        ran = schedule("draw", str(path))
        if ran.returncode == 0:
            xml.fromstring(ran.stdout)

    def test_what_cannot_be_followed(self):
        path = self.new_folder() / "bad.txt"
        path.write_text(self.printed("convert", *RING, "--to", "text").replace("to 1 tag 0", "to 2 tag 0"))
        self.assert_fails(2, "the schedule is faulty and can't be drawn: rank ", "draw", str(path))

    def test_a_file_of_ours(self):
        path = self.new_folder() / "ring.svg"
        self.assertEqual(self.printed("draw", *RING, "-o", str(path)), "")
        self.assertEqual(*map(without_origin, (path.read_text(), self.printed("draw", *RING))))


if __name__ == "__main__":
    unittest.main()
