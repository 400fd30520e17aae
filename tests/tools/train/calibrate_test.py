"""trellis calibrate: finds the figures that measurements were made with, and refuses what they do not tell."""
import json
import pathlib
import tempfile
import unittest

import program
from small_run import CONFIG, sets, trellis

MODEL = {"data__seq_length": 512, "model__hidden_size": 512, "model__num_attention_heads": 8,
         "model__num_key_value_heads": 8, "model__intermediate_size": 1024, "model__num_layers": 4,
         "precision__type": "mixed_precision", "distributed_strategy__sequence_parallel": "true",
         "data__micro_batch_size": 1}
SIZES = [1 << k for k in range(10, 29, 3)]


class Calibrate(program.Case):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, text):
        (self.folder / name).write_text(text)
        return self.folder / name

    # Rows of steps that take what the program says with these changes.
    def steps(self, what_if, machines=("trn1.32xlarge", "trn1.32xlarge x 2"), tensors=(2, 8), factor=1.0):
        keys = {key.replace("__", "."): value for key, value in MODEL.items()}
        head = ["config", "machine", "step_seconds", *keys, "distributed_strategy.tensor_model_parallel_size",
                "data.global_batch_size"]
        rows = [",".join(head)]
        for machine in machines:
            for tensor in tensors:
                for batch in (64, 256):
                    own = {"distributed_strategy__tensor_model_parallel_size": tensor, "data__global_batch_size": batch}
                    done = trellis("train", "price", CONFIG, "-m", machine, "--json", *sets(**MODEL, **own),
                                   *(word for change in what_if for word in ("--what-if", change)))
                    self.assertEqual(done.returncode, 0, done.stderr)
                    rows.append(",".join(map(str, [CONFIG, machine, json.loads(done.stdout)["time_ps"] * 1e-12 * factor,
                                                   *keys.values(), tensor, batch])))
        return self.write("steps.csv", "\n".join(rows) + "\n")

    def test_finds_the_figures_of_steps_and_the_file_makes_prices_with_them(self):
        figures = self.folder / "mine.figures"
        rows = self.steps(["step.exposed.tensor=0.4"], tensors=(1, 2, 8), factor=1.1)
        done = trellis("calibrate", rows, "--json", "-o", figures)
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads(done.stdout)
        by_key = {f["key"]: f for f in found["figures"]}
        self.assertAlmostEqual(by_key["step.level"]["value"], 1.06 * 1.1, delta=0.05)
        self.assertAlmostEqual(by_key["step.exposed.tensor"]["value"], 0.44, delta=0.12)
        self.assertTrue(all(by_key[key]["identified"] for key in ("step.level", "step.exposed.tensor")), by_key)
        self.assertRegex(by_key["step.hosts"]["why_not"], "^its whole range changes times by ")
        self.assertLess(found["errors"]["fitted"]["worst"], 0.05)
        self.assertLess(found["errors"]["fitted"]["median"], found["errors"]["before"]["median"] / 3)
        self.assertGreaterEqual(found["errors"]["left_out"]["worst"], found["errors"]["fitted"]["worst"])
        text = figures.read_text()
        self.assertIn("steps.csv (sha256 ", text)
        self.assertIn("step.exposed.tensor = ", text)
        self.assertIn("# step.hosts stays as it was: ", text)
        again = json.loads(trellis("calibrate", rows, "--json", "--figures", figures).stdout)
        self.assertLess(again["errors"]["before"]["median"], 0.03)
        wide = trellis("train", "price", CONFIG, "--figures", self.write("bad", "step.hots = 0.1 0..1 | assumed | x\n"))
        self.assertEqual(wide.returncode, 2)
        self.assertIn("did you mean 'step.hosts'?", wide.stderr)

    # Steps that were priced by programs are met by programs, and not by formulas.
    def test_operations_by_programs(self):
        keys = {**MODEL, "distributed_strategy__tensor_model_parallel_size": 2, "data__global_batch_size": 64}
        price = trellis("train", "price", CONFIG, "-m", "trn1.32xlarge", "--json", "--times", "programs", *sets(**keys))
        seconds = json.loads(price.stdout)["time_ps"] * 1e-12
        head, cells = ",".join(key.replace("__", ".") for key in keys), ",".join(map(str, keys.values()))
        rows = self.write("steps.csv", f"config,machine,step_seconds,{head}\n{CONFIG},trn1.32xlarge,{seconds},{cells}\n")
        def before(*more):
            done = trellis("calibrate", rows, "--json", *more)
            return json.loads(done.stdout)["measurements"][0]["error_before"]
        self.assertAlmostEqual(before("--times", "programs"), 0, delta=1e-9)
        self.assertGreater(abs(before()), 0.01)

    def test_says_which_figure_lies_outside_of_what_was_assumed(self):
        rows = self.steps([], tensors=(1, 2, 8), factor=1.3)
        found = {f["key"]: f for f in json.loads(trellis("calibrate", rows, "--json").stdout)["figures"]}
        self.assertTrue(found["step.level"]["outside_assumed"], found)
        self.assertRegex(trellis("calibrate", rows).stdout, r"step\.level .*: outside of the [\d.]+ to [\d.]+ that was assumed")
        usual = {f["key"]: f for f in json.loads(
            trellis("calibrate", self.steps([], machines=["trn1.32xlarge"], tensors=[1]), "--json").stdout)["figures"]}
        self.assertFalse(usual["step.level"]["outside_assumed"])

    def test_leaves_what_the_steps_do_not_tell(self):
        done = trellis("calibrate", self.steps([], machines=["trn1.32xlarge"], tensors=[1]), "--json")
        found = {f["key"]: f for f in json.loads(done.stdout)["figures"]}
        self.assertNotIn("step.hosts", found)
        self.assertNotIn("step.exposed.tensor", found)
        self.assertTrue(found["step.level"]["identified"])

    def test_reads_what_nccom_test_prints(self):
        rows = ["    size(B)    count(elems)     type    time:avg(us)    algbw(GB/s)    busbw(GB/s)"]
        for size in SIZES:
            done = trellis("sim", "all_reduce", "-m", "trn1.32xlarge", "-b", size, "--json", "--no-interval", "--what-if",
                           "era.2025.launch=60us")
            rows.append(f"{size} {size // 4} fp32 {json.loads(done.stdout)['time_us']} 0 0")
        table = self.write("nccom.txt", "\n".join(rows) + "\nAvg bus bandwidth: 1.0GB/s\n")
        figures = self.folder / "mine.figures"
        done = trellis("calibrate", table, "-m", "trn1.32xlarge", "--collective", "all_reduce", "--era", "2025",
                       "-o", figures)
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        self.assertIn("left out of the fit", done.stdout)
        self.assertIn("= ", figures.read_text())
        used = trellis("sim", "all_reduce", "-m", "trn1.32xlarge", "-b", SIZES[0], "--json", "--no-interval",
                       "--figures", figures)
        self.assertEqual(used.returncode, 0, used.stderr)
        measured = float(rows[1].split()[3])
        self.assertAlmostEqual(json.loads(used.stdout)["time_us"], measured, delta=0.15 * measured)

    # Rows that name their machine: units of its figures are its own, whatever machine is the usual one.
    def test_figures_of_the_rows_own_machine_read_back(self):
        times = [(size, 1.3 * json.loads(trellis("sim", "all_reduce", "-m", "ring:4", "-b", size, "--json",
                                                 "--no-interval").stdout)["time_us"]) for size in SIZES]
        rows = self.write("own.csv", "machine,collective,bytes,time_us\n" +
                          "".join(f"ring:4,all_reduce,{size},{us}\n" for size, us in times))
        figures = self.folder / "mine.figures"
        done = trellis("calibrate", rows, "-o", figures)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"ring\.latency +500 ns -> ")
        used = trellis("sim", "all_reduce", "-m", "ring:4", "-b", 1024, "--figures", figures)
        self.assertEqual(used.returncode, 0, used.stderr)
        again = trellis("calibrate", rows, "--figures", figures)
        self.assertEqual(again.stderr, "")
        self.assertIn("own.csv:8 ", again.stdout)

    def test_no_figure_is_fitted_below_nothing(self):
        what_if = [word for change in ("era.2025.reduce=0.1us", "era.2025.handshake=0.7us", "neuronlink.latency=150ns")
                   for word in ("--what-if", change)]
        rows = ["bytes,time_us,collective,algorithm"]
        for size in (1 << k for k in range(10, 21, 3)):
            done = trellis("sim", "all_reduce", "-m", "trn1.32xlarge", "--era", "2025", "-a", "ring", "-b", size, "--json",
                           "--no-interval", *what_if)
            self.assertEqual(done.returncode, 0, done.stderr)
            rows.append(f"{size},{0.97 * json.loads(done.stdout)['time_us']},all_reduce,ring")
        figures = self.folder / "mine.figures"
        done = trellis("calibrate", self.write("fast.csv", "\n".join(rows) + "\n"), "-m", "trn1.32xlarge", "--era", "2025",
                       "--json", "-o", figures)
        self.assertEqual(done.returncode, 0, done.stderr)
        for figure in json.loads(done.stdout)["figures"]:
            self.assertGreaterEqual(min(figure["value"], figure["low"]), 0, figure)
        self.assertNotRegex(figures.read_text(), r"= -|\.\.-")

    def test_so_few_ranks_are_refused(self):
        table = self.write("one.csv", "bytes,time_us,collective\n1024,30,all_reduce\n")
        for ranks in ("0", "-1"):
            self.assert_fails(2, "--ranks", "calibrate", table, "-m", "trn1.32xlarge", "-n", ranks)

    def test_a_number_of_ranks_that_is_none_is_refused(self):
        for ranks in ("2.7", "1e300", "4294967298"):
            rows = "".join(f"1024,30,all_reduce,{n}\n" for n in ("2", ranks))
            table = self.write("ranks.csv", "bytes,time_us,collective,ranks\n" + rows)
            done = trellis("calibrate", table, "-m", "trn2.48xlarge")
            self.assertEqual(done.returncode, 2, done.stdout)
            self.assertIn(f"ranks.csv:3: ranks is {float(ranks):.17g}: expected a whole number from 0 to", done.stderr)

    def test_says_which_row_is_wrong(self):
        for text, said in (("config,step_ms\nx.yaml,12\n", "bad.csv:2: "), ("size(B) time(us)\n1024 soon\n", "bad.csv:2: "),
                           ("config,step_ms\n", "no row of measurements"), ("bytes,time_us,collective\n64,3,all_reduc\n", "all_reduc"),
                           ("[{\"id\": 3}]", "bad.csv")):
            done = trellis("calibrate", self.write("bad.csv", text), "-m", "trn1.32xlarge")
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(said, done.stderr, text)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)


if __name__ == "__main__":
    unittest.main()
