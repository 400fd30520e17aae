"""Kills a training job at random moments, and lets it go on from its checkpoints: kills.py TRELLIS TIMES

However often that happens, the losses must be those of the job that nobody killed, to the last digit."""
import pathlib
import random
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]


def command(trellis, folder, steps):
    values = {"data.train_path": ROOT / "README.md", "data.seq_length": 32, "data.micro_batch_size": 1, "data.global_batch_size": 4,
              "model.hidden_size": 32, "model.num_layers": 2, "model.intermediate_size": 64, "trainer.max_steps": steps,
              "trainer.log_every_n_steps": 1, "precision.type": "bf16SR", "exp_manager.exp_dir": folder,
              "exp_manager.resume_if_exists": "true", "exp_manager.async_checkpointing": "true",
              "exp_manager.checkpoint_callback_params.every_n_train_steps": 1,
              "distributed_strategy.tensor_model_parallel_size": 1}
    sets = [word for key, value in values.items() for word in ("--set", f"{key}={value}")]
    return [trellis, "launch", "-n", "2", "--", trellis, "train", str(ROOT / "examples/llama.yaml"), *sets]


def main(trellis, times):
    steps = 10 * times
    dice = random.Random(1)
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        kills = 0
        while kills < times:
            job = subprocess.Popen(command(trellis, root / "killed", steps), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                job.wait(timeout=dice.uniform(0.1, 0.6))
            except subprocess.TimeoutExpired:
                job.kill()
                kills += 1
            job.wait()
            time.sleep(0.2)
            if (root / "killed/llama/checkpoints" / f"step_{steps:08}" / "done").exists():
                break
        subprocess.run(command(trellis, root / "killed", steps), check=True, stdout=subprocess.DEVNULL)
        subprocess.run(command(trellis, root / "whole", steps), check=True, stdout=subprocess.DEVNULL)
        losses = [[line.split(",")[:2] for line in (root / run / "llama/metrics.csv").read_text().splitlines()] for run in ("killed", "whole")]
    if losses[0] != losses[1]:
        first = next(i for i, (a, b) in enumerate(zip(*losses)) if a != b) if len(losses[0]) == len(losses[1]) else "its length"
        sys.exit(f"after {kills} kills the losses differ, at {first}")
    print(f"{kills} kills in {steps} steps: the same losses")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
