"""trellis train: trained to a falling loss by one rank and by launched ones, killed and resumed, refused, shown, priced."""
import csv
import os
import pathlib
import re
import signal
import subprocess
import time
import unittest

import program
from program import TRELLIS
from small_run import CONFIG, TEXT, sets, trellis


class Train(program.Case):
    def setUp(self):
        self.root = self.new_folder()

    def command(self, ranks, run, restarts=0, grace=60, **more):
        launch = [TRELLIS, "launch", "-n", str(ranks), "--grace", str(grace), "--max-restarts", str(restarts), "--"]
        return [*(launch if ranks > 1 else []), TRELLIS, "train", CONFIG,
                *sets(**{"exp_manager__exp_dir": self.root / run}, **more)]

    def train(self, ranks, run, **more):
        ran = subprocess.run(self.command(ranks, run, **more), capture_output=True, text=True, timeout=600)
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
        return ran.stdout

    def losses(self, run):
        with open(self.root / run / "llama" / "metrics.csv", newline="") as file:
            return [(row["step"], row["loss"]) for row in csv.DictReader(file)]

    def tags(self, run):
        return sorted(tag.parent.name for tag in (self.root / run / "llama/checkpoints").glob("step_*/done"))

    def test_one_rank_and_launched_ones_come_to_the_same_losses(self):
        said = self.train(1, "one", trainer__max_steps=25)
        self.assertIn("step 25/25  loss", said)
        one = [float(loss) for _, loss in self.losses("one")]
        self.assertLess(one[-1], one[0] - 0.5)
        self.assertIn("<svg", (self.root / "one/llama/loss.svg").read_text())
        self.assertTrue(list((self.root / "one/llama/tensorboard").glob("events.out.tfevents.*")))
        self.train(2, "two", trainer__max_steps=25, distributed_strategy__tensor_model_parallel_size=2)
        for a, b in zip(one, [float(loss) for _, loss in self.losses("two")], strict=True):
            self.assertAlmostEqual(a, b, places=4)

    def test_parameters_have_one_norm_however_experts_are_shared_out(self):
        config = pathlib.Path(os.environ["TRELLIS_SOURCE_DIR"]) / "examples/mixtral.yaml"
        norms = []
        for ranks in (1, 2):
            words = sets(exp_manager__exp_dir=self.root / str(ranks), exp_manager__log_parameter_norm="true", trainer__max_steps=1,
                         model__num_layers=1, distributed_strategy__expert_model_parallel_size=ranks)
            launch = [TRELLIS, "launch", "-n", "2", "--"] if ranks > 1 else []
            ran = subprocess.run([*launch, TRELLIS, "train", config, *words], capture_output=True, text=True,
                                 timeout=600)
            self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
            [path] = (self.root / str(ranks)).glob("*/metrics.csv")
            with open(path, newline="") as file:
                norms.append([float(row["parameter_norm"]) for row in csv.DictReader(file)])
        self.assertGreater(norms[0][0], 1)
        self.assertAlmostEqual(norms[0][0], norms[1][0], places=2)

    def test_a_killed_run_resumes_to_the_bit(self):
        more = {"exp_manager__checkpoint_callback_params__every_n_train_steps": 2, "exp_manager__resume_if_exists": "true",
                "exp_manager__async_checkpointing": "true", "precision__type": "bf16SR", "trainer__max_steps": 100}
        self.train(2, "whole", **more)
        killed = 0
        for least in (5, 40):
            job = subprocess.Popen(self.command(2, "cut", **more), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            tags = self.root / "cut/llama/checkpoints"
            while job.poll() is None and not any(int(done.parent.name[5:]) >= least for done in tags.glob("step_*/done")):
                time.sleep(0.01)
            job.send_signal(signal.SIGKILL)
            killed += job.wait() == -signal.SIGKILL
        self.assertGreater(killed, 0)
        deadline = time.monotonic() + 240
        while list(self.processes()):  # launch's own death ends its ranks
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)
        self.train(2, "cut", **more)
        self.assertEqual(self.losses("cut"), self.losses("whole"))

    def processes(self):
        """The ranks of this test's jobs, whose command lines have its folder: a process, and its environment."""
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                command, words = (process / "cmdline").read_bytes(), (process / "environ").read_bytes().split(b"\0")
            except OSError:
                continue
            if str(self.root).encode() in command and b"launch" not in command:
                yield int(process.name), words

    def process_of(self, rank):
        for process, words in self.processes():
            if f"RANK={rank}".encode() in words:
                return process
        raise AssertionError(f"no process of rank {rank}")

    def test_a_job_that_lost_a_rank_comes_back_by_itself(self):
        """It goes on until it is told to end, so that it is there when its ranks are killed."""
        more = {"exp_manager__checkpoint_callback_params__every_n_train_steps": 3, "exp_manager__resume_if_exists": "true",
                "precision__type": "bf16SR", "model__optim__sched__max_steps": 60}
        self.train(2, "whole", **more, trainer__max_steps=60)
        job = subprocess.Popen(self.command(2, "lost", restarts=3, **more, trainer__max_steps=10**9),
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.addCleanup(job.kill)

        def await_checkpoint(least):
            end = time.monotonic() + 240
            while not any(int(tag.removeprefix("step_")) >= least for tag in self.tags("lost")):
                self.assertIsNone(job.poll())
                self.assertLess(time.monotonic(), end)
                time.sleep(0.01)

        newest = 0
        for rank in (0, 1):
            await_checkpoint(newest + 1)  # so these are the ranks of the last start
            os.kill(self.process_of(rank), signal.SIGKILL)
            said = iter(job.stderr.readline, "")
            self.assertTrue(any(f"restart {rank + 1} of 3" in line for line in said))
            newest = max(int(tag.removeprefix("step_")) for tag in self.tags("lost"))
        await_checkpoint(max(newest + 1, 60))
        job.send_signal(signal.SIGTERM)
        said = job.communicate(timeout=600)[1]
        self.assertEqual(job.returncode, 0, said)
        self.assertEqual(self.losses("lost")[:60], self.losses("whole"))

    def test_validation_is_measured_and_decides_what_is_kept(self):
        more = {"data__val_path": TEXT, "trainer__val_check_interval": 4, "trainer__limit_val_batches": 3,
                "exp_manager__checkpoint_callback_params__every_n_train_steps": 4,
                "exp_manager__checkpoint_callback_params__monitor": "val_loss", "exp_manager__checkpoint_callback_params__save_top_k": 1,
                "exp_manager__checkpoint_callback_params__mode": "max", "model__hidden_dropout": 0.1}
        said = self.train(1, "one", **more)
        self.assertRegex(said, r"step 8/12 .*validation loss \d")
        values = {}
        for run, ranks, extra in (("one", 1, {}), ("two", 2, {"distributed_strategy__tensor_model_parallel_size": 2}),
                                  ("halves", 2, {"distributed_strategy__pipeline_model_parallel_size": 2})):
            if ranks > 1:
                self.train(ranks, run, **more, **extra)
            with open(self.root / run / "llama" / "metrics.csv", newline="") as file:
                values[run] = {row["step"]: float(row["validation_loss"]) for row in csv.DictReader(file) if row["validation_loss"]}
        self.assertEqual(list(values["one"]), ["4", "8", "12"])
        for run in ("two", "halves"):
            for step, value in values["one"].items():
                self.assertAlmostEqual(values[run][step], value, places=4)
        self.assertLess(values["one"]["12"], values["one"]["4"] - 0.1)
        # The highest loss, which is asked for, is the first one's; the newest stays where that is asked for too.
        self.assertEqual(self.tags("one"), ["step_00000004"])
        self.train(1, "last", **more, exp_manager__checkpoint_callback_params__save_last="true")
        self.assertEqual(self.tags("last"), ["step_00000004", "step_00000012"])
        picture = trellis("train", "curve", str(self.root / "one/llama"))
        self.assertIn("llama validation", picture.stdout)

    def test_the_example_keeps_its_last_checkpoints(self):
        more = {"exp_manager__checkpoint_callback_params__every_n_train_steps": 2}
        self.train(2, "run", **more)  # save_top_k is 2 in the example
        self.assertEqual(self.tags("run"), ["step_00000010", "step_00000012"])
        # A new run keeps the old one aside, and is the one that resuming goes on with.
        said = self.train(1, "run", seed=5, trainer__max_steps=3, **more)
        self.assertIn("llama/version_0\n", said)
        self.assertEqual(self.tags("run"), ["step_00000002", "step_00000003"])
        self.assertTrue((self.root / "run/llama/version_0/loss.svg").exists())
        self.assertIn("step_00000003 ", self.train(1, "run", seed=5, trainer__max_steps=4, exp_manager__resume_if_exists="true", **more))

    def test_a_folder_in_use_is_refused(self):
        job = subprocess.Popen(self.command(1, "shared", trainer__max_steps=10**9), stdout=subprocess.PIPE, text=True)
        try:
            while "step 1/" not in job.stdout.readline():
                self.assertIsNone(job.poll())
            ran = subprocess.run(self.command(2, "shared"), capture_output=True, text=True, timeout=600)
            self.assertEqual(ran.returncode, 2, ran.stderr)
            self.assertIn(f"shared/llama belongs to a job that runs, process {job.pid} on ", ran.stderr)
            self.assertFalse((self.root / "shared/llama/version_0").exists(), "the job's run was set aside")
        finally:
            job.kill()
            job.communicate()

    def test_a_step_that_was_proved_is_not_proved_again(self):
        more = {"trainer__max_steps": 1}
        cache = self.root / "run/steps"
        self.assertIn("was laid out and proved", self.train(2, "run", **more))
        self.assertIn("a hit", self.train(2, "run", **more))
        self.assertIn("laid out", self.train(1, "run", **more))
        self.assertEqual(len([line for line in trellis("train", "cache", "list", str(cache)).stdout.splitlines() if "proved" in line]), 2)
        wrong = self.command(1, "run", model__num_layers=1, distributed_strategy__virtual_pipeline_model_parallel_size=2)
        for words in ("expected at least one for each of 2 pipeline stages", "remembered in"):
            ran = subprocess.run(wrong, capture_output=True, text=True, timeout=600)
            self.assertEqual(ran.returncode, 2, ran.stderr)
            self.assertIn(words, ran.stderr)
        again = subprocess.run([*wrong, "--retry-failed"], capture_output=True, text=True, timeout=600)
        self.assertNotIn("remembered", again.stderr)
        self.assertIn("3 removed", trellis("train", "cache", "prune", str(cache), "--days", "0").stdout)
        self.assertIn("was laid out and proved", self.train(1, "run", **more))

    def test_a_cache_that_is_not_there_is_told(self):
        file = self.root / "file"
        file.write_text("no folder")
        for command in ("list", "prune"):
            for there, why in ((self.root / "none", "No such file or directory"), (file, "Not a directory")):
                ran = trellis("train", "cache", command, there)
                self.assertEqual((ran.returncode, ran.stdout), (1, ""))
                self.assertEqual(ran.stderr, f"trellis: cannot read '{there}': {why}\n")
            empty = trellis("train", "cache", command, self.root)
            self.assertEqual((empty.returncode, empty.stderr), (0, ""))

    def test_a_frozen_rank_is_named_by_the_deadline(self):
        job = subprocess.Popen(self.command(2, "frozen", grace=1, trainer__max_steps=100000), stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, env={**os.environ, "TRELLIS_TIMEOUT": "8"})
        job.stdout.readline()
        os.kill(self.process_of(1), signal.SIGSTOP)
        said = job.communicate(timeout=600)[1]
        self.assertNotEqual(job.returncode, 0)
        self.assertRegex(said, "rank 1")

    def blocks(self, process, number):
        """Whether its main thread, which then lays the step out, blocks the signal."""
        with open(f"/proc/{process}/status") as status:
            blocked = next(line for line in status if line.startswith("SigBlk:")).split()[1]
        return int(blocked, 16) >> (number - 1) & 1

    def test_it_ends_at_once_while_it_lays_the_step_out(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            job = subprocess.Popen(self.command(1, "early", model__num_layers=3000), stdout=subprocess.PIPE, text=True)
            while not self.blocks(job.pid, number):
                self.assertIsNone(job.poll())
                time.sleep(0.01)
            job.send_signal(number)
            said = job.communicate(timeout=60)[0]
            self.assertEqual((job.returncode, said.count("step 1/")), (-number, 0))

    def test_what_is_not_there_is_told_before_the_step_is_laid_out(self):
        for status, change in ((1, {"data__train_path": "/nonexistent/text"}), (1, {"data__val_path": "/nonexistent/text"}),
                               (1, {"exp_manager__resume_from_checkpoint": "/nonexistent/step_00000001"}),
                               (2, {"exp_manager__exp_dir": os.path.join(CONFIG, "x")})):
            ran = trellis("train", CONFIG, *sets(**{"exp_manager__exp_dir": self.root / "missing"} | change))
            self.assertEqual((ran.returncode, ran.stdout), (status, ""), (change, ran.stderr))
            self.assertIn(str(list(change.values())[0]), ran.stderr)
        ran = trellis("train", CONFIG, *sets(exp_manager__exp_dir=self.root / "curve"), "--curve", "/nonexistent/x.svg")
        self.assertEqual((ran.returncode, ran.stdout), (1, ""), ran.stderr)
        self.assertIn("cannot write '/nonexistent/x.svg'", ran.stderr)
        self.assertFalse((self.root / "curve").exists())

    def test_it_ends_after_the_step_when_asked(self):
        job = subprocess.Popen(self.command(1, "asked", trainer__max_steps=100000), stdout=subprocess.PIPE, text=True)
        while not job.stdout.readline().startswith("step 1/"):
            pass
        job.send_signal(signal.SIGTERM)
        said = job.communicate(timeout=60)[0]
        self.assertEqual(job.returncode, 0)
        self.assertIn("stopped after step", said)
        self.assertTrue(list((self.root / "asked/llama/checkpoints").glob("step_*/done")))

    def test_resuming_as_another_run_is_refused_unless_forced(self):
        self.train(1, "run")
        more = {"exp_manager__resume_if_exists": "true", "trainer__max_steps": 13, "seed": 99}
        ran = subprocess.run(self.command(1, "run", **more), capture_output=True, text=True, timeout=600)
        self.assertEqual(ran.returncode, 2, ran.stdout)
        self.assertIn("seed is 99, was 1; expected the same, or --force", ran.stderr)
        forced = subprocess.run([*self.command(1, "run", **more), "--force"], capture_output=True, text=True,
                                timeout=600)
        self.assertEqual(forced.returncode, 0, forced.stderr)
        self.assertIn("--force overrides: seed is 99, was 1", forced.stdout)
        self.assertEqual([step for step, _ in self.losses("run")], [str(n) for n in range(1, 14)])
        curve = re.search(r'd="(\S.*?)" class="curve"', (self.root / "run/llama/loss.svg").read_text())[1]
        self.assertEqual(len(re.findall("[ML]", curve)), 13, "the curve has the steps before, too")

    def test_data_that_is_cut_short_is_named(self):
        text = self.root / "text.txt"
        text.write_bytes(pathlib.Path(TEXT).read_bytes())
        size = text.stat().st_size
        job = subprocess.Popen(self.command(1, "cut", data__train_path=text, trainer__max_steps=10**9),
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        while "step 1/" not in job.stdout.readline():
            self.assertIsNone(job.poll())
        os.truncate(text, 100)
        said = job.communicate(timeout=600)[1]
        self.assertEqual(job.returncode, 1, said)
        self.assertIn(f"{text} was cut short while it was in use: it has 100 bytes, and had {size}", said)

    def test_utilization_is_told_where_the_peak_is_known(self):
        said = self.train(1, "run", trainer__peak_tflops=0.001, model__activations_checkpoint_granularity="full")
        self.assertRegex(said, r"step 12/12 .*  MFU \d.*%  HFU \d.*%")
        with open(self.root / "run/llama/metrics.csv", newline="") as file:
            for row in csv.DictReader(file):
                self.assertTrue(0 < float(row["mfu"]) < float(row["hfu"]), row)

    def test_the_peak_may_be_that_of_a_machine(self):
        for machine, precision, peak in (("trn1.32xlarge", "fp32", 22.9376), ("trn1.32xlarge", "bf16", 91.7504), ("trn2.48xlarge", "bf16", 157.2864)):
            ran = subprocess.run([*self.command(1, "run", trainer__max_steps=1, precision__type=precision), "--machine", machine],
                                 capture_output=True, text=True, timeout=600)
            said = re.search(r"MFU: .* over seconds x 1 ranks x ([\d.]+) TFLOP/s", ran.stdout)
            self.assertAlmostEqual(float(said[1]), peak, places=3, msg=ran.stdout + ran.stderr)
        ran = trellis("train", CONFIG, *sets(exp_manager__exp_dir=self.root), "--machine", "ring:8")
        self.assertEqual(ran.returncode, 2, ran.stdout)
        self.assertIn("ring:8 has no chip", ran.stderr)

    def test_a_loss_that_is_no_number_is_named(self):
        ran = trellis("train", CONFIG, *sets(exp_manager__exp_dir=self.root, model__optim__lr="1e38", trainer__gradient_clip_val=0))
        self.assertEqual(ran.returncode, 1, ran.stdout)
        self.assertRegex(ran.stderr, r"step \d+: the loss is .* the first that is no finite number is .* on rank 0")

    def test_a_step_is_drawn_as_it_ran_and_what_ran_beside_it_is_told(self):
        picture = self.root / "step.svg"
        several = self.command(2, "two", trainer__max_steps=4, model__hidden_size=128, model__num_layers=4, model__intermediate_size=352,
                               bucket_size_collectives=1)
        done = subprocess.run([*several, "--profile", str(picture)], capture_output=True, text=True, timeout=600)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"exchange +times +until awaited +of that held up +% behind computation")
        for exchange in ("all_gather, data", "reduce_scatter, data"):
            self.assertRegex(done.stdout, exchange + r" +(?:[2-9]|\d\d) ")
        drawn = picture.read_text()
        for word in ("rank 0 computes", "rank 1 data axis", "forward", "backward", "update", "exchange, until it is awaited"):
            self.assertIn(word, drawn)

    def test_a_profile_that_cannot_be_written_ends_every_rank(self):
        picture = self.root / "step.svg"
        picture.symlink_to("/dev/full")
        several = self.command(2, "two", trainer__max_steps=4)
        at = several.index("--") + 1
        # The launch asks the second to end, maybe before it has said why.
        alone = ["sh", "-c", "trap '' TERM; exec \"$@\"", "sh"]
        done = subprocess.run([*several[:at], *alone, *several[at:], "--profile", str(picture)], capture_output=True,
                              text=True, timeout=600)
        self.assertNotEqual(done.returncode, 0, done.stdout)
        for rank in (0, 1):
            self.assertRegex(done.stderr, rf"\[{rank}\] .*{picture}")
        self.assertNotIn("closed the communicator", done.stderr)

    @unittest.skipIf(subprocess.run(["sh", "-c", "unshare -T --monotonic 864000 true"], capture_output=True).returncode,
                     "no time namespaces here")
    def test_ranks_whose_clocks_differ_are_drawn_beside_each_other(self):
        """As those of hosts that booted at different times do: rank 1's clock is 10 days ahead."""
        rank = self.root / "rank.sh"
        rank.write_text('[ "$RANK" = 1 ] && exec unshare -T --monotonic 864000 "$@"\nexec "$@"\n')
        several = self.command(2, "two", trainer__max_steps=4)
        at = several.index("--") + 1
        picture = self.root / "step.svg"
        done = subprocess.run([*several[:at], "sh", str(rank), *several[at:], "--profile", str(picture)], capture_output=True,
                              text=True, timeout=600)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        told = [float(ms) for ms in re.findall(r">([\d.]+) ms<", picture.read_text())]
        self.assertTrue(told and max(told) < 60e3, told)

    def test_no_ranks_are_no_step(self):
        for command in ("show", "draw", "export"):
            for ranks in ("0", "-2"):
                ran = subprocess.run([TRELLIS, "train", command, CONFIG, "--ranks", ranks], capture_output=True, text=True)
                self.assertEqual((ran.returncode, ran.stdout), (2, ""), ran.stderr)
                self.assertRegex(ran.stderr, r"^trellis: --ranks[^\n]*\n$")

    def test_a_step_is_shown_drawn_and_priced(self):
        more = sets(distributed_strategy__tensor_model_parallel_size=2, distributed_strategy__pipeline_model_parallel_size=2)
        shown = trellis("train", "show", CONFIG, "--ranks", "8", *more)
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertIn("proved", shown.stdout)
        self.assertRegex(shown.stdout, r"bubble: \d+\.\d%, idle over busy time by the stages' FLOPs; 50\.0% were the stages equal")
        self.assertIn("<svg", trellis("train", "draw", CONFIG, "--ranks", "8", *more).stdout)
        page = self.root / "pipeline.html"
        self.assertEqual(trellis("train", "draw", CONFIG, "--ranks", "8", "-o", str(page), *more).returncode, 0)
        for words in ("<svg", "addEventListener", "tensor 1", "most activations alive"):
            self.assertIn(words, page.read_text())
        step = self.root / "step.txt"
        self.assertEqual(trellis("train", "export", CONFIG, "--ranks", "8", "-o", str(step), *more).returncode, 0)
        played = trellis("sim", str(step), "--machine", "trn2.48xlarge")
        self.assertEqual(played.returncode, 0, played.stderr)

    def test_the_views_that_the_readme_names_run(self):
        readme = (pathlib.Path(os.environ["TRELLIS_SOURCE_DIR"]) / "train/README.md").read_text()
        views = [line.split("  ")[0].split() for line in re.findall(r"^    trellis (train (?:show|draw|export) .*)$", readme, re.M)]
        self.assertGreaterEqual(len(views), 4)
        for words in views:
            with self.subTest(words=words):
                words[2] = str(CONFIG)
                ran = trellis(*words, cwd=self.root)
                self.assertEqual(ran.returncode, 0, ran.stderr)

    def test_checkpoints_are_listed_checked_and_written_out(self):
        self.train(2, "run", distributed_strategy__tensor_model_parallel_size=2, trainer__max_steps=2)
        tag = str(self.root / "run/llama/checkpoints/step_00000002")
        self.assertIn("model.embed_tokens.weight", trellis("train", "checkpoint", "show", tag).stdout)
        self.assertIn("as they were written", trellis("train", "checkpoint", "verify", tag).stdout)
        resharded = trellis("train", "checkpoint", "reshard", tag, CONFIG, "-n", "4", "-o", str(self.root / "four"),
                            *sets(distributed_strategy__pipeline_model_parallel_size=2))
        self.assertIn("T1 P2 D2 ZeRO-1, was T2 P1 D1", resharded.stdout, resharded.stderr)
        self.assertIn("as they were written", trellis("train", "checkpoint", "verify", str(self.root / "four/step_00000002")).stdout)
        weights = self.root / "weights.safetensors"
        self.assertEqual(trellis("train", "checkpoint", "weights", tag, "-o", str(weights)).returncode, 0)
        self.assertIn("loaded", self.train(1, "again", exp_manager__resume_from_checkpoint=weights, trainer__max_steps=1))


if __name__ == "__main__":
    unittest.main()
