"""Trains a 30M-parameter Llama with trellis and with PyTorch in turn, and prints tokens a second and memory of each:

    python3 bench/train_torch.py build/release/trellis [--ranks 2] [--type bf16] [--rounds 3]

Needs torch and transformers. With two ranks PyTorch runs its DistributedDataParallel, and FSDP2, over gloo. Both have
the same model, batch and type, AdamW, no clipping; parameters in f32, or all in bf16."""
import argparse
import csv
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

SIZES = {"vocab_size": 8192, "hidden_size": 512, "num_layers": 8, "num_attention_heads": 8, "num_key_value_heads": 8, "intermediate_size": 1376}
LENGTH, BATCH, STEPS = 512, 4, 6


def torch_rank(way, dtype):
    import torch
    import transformers
    world = int(os.environ.get("WORLD_SIZE", "1"))
    torch.set_num_threads(max(1, (os.cpu_count() or 1) // world))
    config = transformers.LlamaConfig(vocab_size=SIZES["vocab_size"], hidden_size=SIZES["hidden_size"], intermediate_size=SIZES["intermediate_size"],
                                      num_hidden_layers=SIZES["num_layers"], num_attention_heads=SIZES["num_attention_heads"],
                                      num_key_value_heads=SIZES["num_key_value_heads"], tie_word_embeddings=False)
    model = transformers.LlamaForCausalLM(config).to(torch.bfloat16 if dtype == "bf16" else torch.float32)
    if world > 1:
        torch.distributed.init_process_group("gloo")
    if way == "fsdp2":
        from torch.distributed.fsdp import fully_shard
        for layer in model.model.layers:
            fully_shard(layer)
        fully_shard(model)
    elif world > 1:
        model = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    times = []
    for _ in range(STEPS):
        tokens = torch.randint(0, SIZES["vocab_size"], (BATCH // world, LENGTH))
        begin = time.perf_counter()
        model(input_ids=tokens, labels=tokens).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        times.append(time.perf_counter() - begin)
    if int(os.environ.get("RANK", "0")) == 0:
        print(BATCH * LENGTH / statistics.median(times[2:]))


def launched(trellis, ranks, words):
    """What the ranks printed, and the most memory that one of them had, in MB."""
    launch = [trellis, "launch", "-n", str(ranks), "--raw", "--"] if ranks > 1 else []
    with subprocess.Popen([*launch, *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as job:
        said = job.stdout.read()
        _, status, usage = os.wait4(job.pid, 0)
        job.returncode = os.waitstatus_to_exitcode(status)
    if job.returncode != 0:
        raise RuntimeError(f"{words}: exit status {job.returncode}: {said}")
    return said, usage.ru_maxrss / 1e3


def ours(trellis, ranks, dtype, folder):
    config, data = folder / "bench.yaml", folder / "tokens.bin"
    data.write_bytes(b"".join(((i * 40503 + i // 7) % 8192).to_bytes(2, "little") for i in range(100_000)))
    keys = "\n".join(f"  {key}: {value}" for key, value in SIZES.items())
    config.write_text(f"name: bench\ntrainer: {{max_steps: {STEPS}, gradient_clip_val: 0}}\n"
                      f"exp_manager: {{exp_dir: {folder}, create_checkpoint_callback: false}}\n"
                      f"data: {{train_path: {data}, token_bytes: 2, seq_length: {LENGTH}, micro_batch_size: {BATCH // ranks}, global_batch_size: {BATCH}}}\n"
                      f"model:\n{keys}\nprecision: {{type: {'bf16SR' if dtype == 'bf16' else 'fp32'}}}\n")
    memory = launched(trellis, ranks, [trellis, "train", str(config), "--quiet"])[1]
    with open(folder / "bench/metrics.csv", newline="") as file:
        rates = [float(row["tokens_per_second"]) for row in csv.DictReader(file)]
    return statistics.median(rates[2:]), memory


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("trellis")
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--type", default="fp32", choices=["fp32", "bf16"])
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    trellis = str(pathlib.Path(options.trellis).resolve())
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(options.rounds):
            results.setdefault("trellis", []).append(ours(trellis, options.ranks, options.type, pathlib.Path(folder)))
            for way in ["torch"] if options.ranks == 1 else ["ddp", "fsdp2"]:
                said, memory = launched(trellis, options.ranks, [sys.executable, __file__, "--torch-rank", way, options.type])
                results.setdefault(way, []).append((float(said.split()[-1]), memory))
    for name, values in results.items():
        rates = [rate for rate, _ in values]
        print(f"{name:8} {statistics.median(rates):9.0f} tokens/s [{min(rates):.0f} to {max(rates):.0f}]  {max(memory for _, memory in values):7.0f} MB a rank")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--torch-rank"]:
        torch_rank(*sys.argv[2:4])
    else:
        main()
