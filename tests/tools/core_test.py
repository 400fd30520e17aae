"""trellis core: run, show, check and profile, as a user types them."""
import functools
import json
import unittest

import program

SMALL = ["-p", "M=256", "-p", "K=256", "-p", "N=512"]
trellis = functools.partial(program.ended, "core", timeout=300)


class Core(program.Case):
    def test_list_names_programs_instructions_and_chips(self):
        self.assertIn("flash_attention", trellis("list").stdout)
        self.assertIn("nc_matmul", trellis("list", "instructions").stdout)
        self.assertEqual(trellis("list", "chips").stdout.split(), ["ideal", "inf2", "trn1", "trn2", "trn3"])

    def test_run_computes_and_times_alike(self):
        whole = json.loads(trellis("run", "matmul", *SMALL, "--json").stdout)
        timed = json.loads(trellis("run", "matmul", *SMALL, "--timing-only", "--json").stdout)
        self.assertEqual(whole["time_ps"], timed["time_ps"])
        self.assertEqual([c["wrong"] for c in whole["compared"]], [0])
        self.assertEqual(timed["compared"], [])

    def test_a_program_runs_from_its_text(self):
        folder = self.new_folder()
        text, a, b, c = (folder / name for name in ("p.txt", "a", "b", "c"))
        trellis("show", "matmul", *SMALL, "-o", text)
        self.assertIn("no fault found", trellis("check", text).stdout)
        a.write_bytes(b"\x80\x3f" * (256 * 256))  # ones, in bf16
        b.write_bytes(b"\x80\x3f" * (256 * 512))
        run = trellis("run", text, "--input", f"a={a}", "--input", f"b={b}", "--save", f"c={c}", "--json")
        self.assertEqual(c.read_bytes(), b"\x80\x43" * (256 * 512))  # 256
        self.assertEqual(json.loads(run.stdout)["time_ps"],
                         json.loads(trellis("run", "matmul", *SMALL, "--json").stdout)["time_ps"])

    def test_check_finds_a_race(self):
        folder = self.new_folder()
        text = folder / "p.txt"
        shown = trellis("show", "matmul", *SMALL).stdout
        text.write_text(shown.replace(" wait ring4>=1", ""))
        done = trellis("check", text, status=1)
        self.assertIn("and no semaphore puts them in order", done.stdout)

    def test_profile_writes_what_the_name_says(self):
        folder = self.new_folder()
        for name, start in (("p.html", b"<!"), ("p.pftrace", b"\x0a")):
            path = folder / name
            done = trellis("profile", "matmul", *SMALL, "-o", path)
            self.assertTrue(path.read_bytes().lower().startswith(start), path.read_bytes()[:20])
            self.assertIn("tensor", done.stdout)

    def test_a_program_of_two_cores_is_held_against_the_peak_of_two(self):
        text = self.new_folder() / "two.txt"
        peaks = []
        for cores in ("cores=1", "cores=2"):
            text.write_text(trellis("show", "matmul", *SMALL).stdout.replace("cores=1", cores, 1))
            peaks.append(json.loads(trellis("profile", text, "--json").stdout)["flops_per_second_peak"])
        self.assertEqual(peaks[1], 2 * peaks[0])

    def test_sizes_too_large_are_refused_as_they_were_given(self):
        for size in ("1000000000000", "4294971392", "2147483648"):
            done = trellis("run", "matmul", "-p", f"M={size}", status=2)
            self.assertIn(f"M={size}; expected a whole number from 1 to 2147483647", done.stderr)
        self.assertIn("the HBM of trn2 has", trellis("run", "matmul", "-p", "M=268435456", status=2).stderr)
        for figure, said in (("dma.rings=4294967296", "dma.rings is 4294967296"),
                             ("sbuf.partitions=4294967424", "sbuf.partitions is 4294967424"),
                             ("dma.rings=1000000", "dma.rings is 1000000: expected at most 256"),
                             ("hbm.bytes=1e30", "hbm.bytes")):
            self.assertIn(said, trellis("run", "matmul", *SMALL, "--what-if", figure, status=2).stderr)

    def test_what_if_changes_a_figure(self):
        plain = json.loads(trellis("run", "matmul", *SMALL, "--timing-only", "--json").stdout)
        slow = json.loads(trellis("run", "matmul", *SMALL, "--timing-only", "--what-if", "dma.start=5us", "--json").stdout)
        self.assertGreater(slow["time_ps"], plain["time_ps"] + 4_000_000)

    def test_a_run_that_takes_no_time_has_no_shares(self):
        text = self.new_folder() / "p.txt"
        text.write_text("program p cores=1\nregister_move sync to=1 value=2\n")
        done = trellis("run", text, "--chip", "ideal")
        self.assertIn("0.000 us, 1 instructions", done.stdout)
        self.assertNotIn("nan", done.stdout)

    def test_bad_input_is_named(self):
        for words, complaint in ((["run", "matmull"], "no program 'matmull'"),
                                 (["run", "matmul", "-p", "Q=3"], "no parameter 'Q'"),
                                 (["run", "matmul", "-p", "M=100"], "multiples of 128"),
                                 (["run", "matmul", "--chip", "trn9"], "no 'trn9' among the chips"),
                                 (["run", "matmul", "--what-if", "dma.strat=1us"], "no figure 'dma.strat'"),
                                 (["run", "matmul", "--timing-only", "--input", "a=x"], "--input needs a run that computes"),
                                 (["run", "matmul", "--timing-only", "--save", "c=x"], "--save needs a run that computes"),
                                 (["profile", "matmul", "-o", "x.png"], "expected a name that ends in")):
            self.assertIn(complaint, trellis(*words, status=2).stderr)


if __name__ == "__main__":
    unittest.main()
