"""Trains a 30M-parameter Llama with trellis and with PyTorch in turn, and prints tokens a second and memory of each:

    python3 bench/train_torch.py build/release/trellis [--ranks 2] [--type bf16] [--rounds 3] [--experts 8] [-o FILE.json]

Needs torch and transformers. With two ranks PyTorch runs its DistributedDataParallel, and FSDP2, over gloo. Both have
the same model, batch and type, AdamW, no clipping; parameters in f32, or all in bf16. With --experts each layer has so many
perceptrons, of which a token goes to two: Hugging Face's Mixtral, under DistributedDataParallel with its experts one after
the other (eager) and in one grouped product (grouped_mm), beside our dropless experts, shared out among the ranks. Seconds
of CPU are told as well: on a machine with other work they are what can be compared."""
import argparse
import csv
import datetime
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

SIZES = {"vocab_size": 8192, "hidden_size": 512, "num_layers": 8, "num_attention_heads": 8, "num_key_value_heads": 8, "intermediate_size": 1376}
LENGTH, BATCH = 512, 4


def torch_model(way, experts):
    import transformers
    sizes = dict(SIZES, tie_word_embeddings=False)
    layers = {"vocab_size": sizes["vocab_size"], "num_hidden_layers": sizes.pop("num_layers"), **sizes}
    if experts == 0:
        return transformers.LlamaForCausalLM(transformers.LlamaConfig(**layers))
    config = transformers.MixtralConfig(**layers, num_local_experts=experts, num_experts_per_tok=2, sliding_window=None,
                                        output_router_logits=True, router_aux_loss_coef=0.02)
    config._experts_implementation = way.partition("_")[2] or "eager"
    return transformers.MixtralForCausalLM(config)


def torch_rank(way, dtype, experts, steps):
    import torch
    world = int(os.environ.get("WORLD_SIZE", "1"))
    torch.set_num_threads(max(1, (os.cpu_count() or 1) // world))
    torch.manual_seed(1)
    model = torch_model(way, experts).to(torch.bfloat16 if dtype == "bf16" else torch.float32)
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
    for _ in range(steps):
        tokens = torch.randint(0, SIZES["vocab_size"], (BATCH // world, LENGTH))
        begin = time.perf_counter()
        model(input_ids=tokens, labels=tokens).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        times.append(time.perf_counter() - begin)
    if int(os.environ.get("RANK", "0")) == 0:
        print(BATCH * LENGTH / statistics.median(times[2:]))


def launched(trellis, ranks, words):
    """What the ranks printed, the most memory that one of them had, in MB, and all ranks' seconds of CPU."""
    launch = [trellis, "launch", "-n", str(ranks), "--raw", "--"] if ranks > 1 else []
    with subprocess.Popen([*launch, *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as job:
        said = job.stdout.read()
        _, status, usage = os.wait4(job.pid, 0)
        job.returncode = os.waitstatus_to_exitcode(status)
    if job.returncode != 0:
        raise RuntimeError(f"{words}: exit status {job.returncode}: {said}")
    return said, usage.ru_maxrss / 1e3, usage.ru_utime + usage.ru_stime


def ours(trellis, ranks, dtype, experts, steps, folder):
    config, data = folder / "bench.yaml", folder / "tokens.bin"
    data.write_bytes(b"".join(((i * 40503 + i // 7) % 8192).to_bytes(2, "little") for i in range(100_000)))
    keys = "\n".join(f"  {key}: {value}" for key, value in SIZES.items())
    if experts:
        keys += (f"\n  architecture: mixtral\n  moe: {{num_experts: {experts}, top_k: 2, dropless: true, output_router_logits: true, "
                 f"router_aux_loss_coef: 0.02}}")
    config.write_text(f"name: bench\ntrainer: {{max_steps: {steps}, gradient_clip_val: 0}}\n"
                      f"exp_manager: {{exp_dir: {folder}, create_checkpoint_callback: false}}\n"
                      f"data: {{train_path: {data}, token_bytes: 2, seq_length: {LENGTH}, micro_batch_size: {BATCH // ranks}, global_batch_size: {BATCH}}}\n"
                      f"distributed_strategy: {{expert_model_parallel_size: {ranks if experts else 1}}}\n"
                      f"model:\n{keys}\nprecision: {{type: {'bf16SR' if dtype == 'bf16' else 'fp32'}}}\n")
    _, memory, seconds = launched(trellis, ranks, [trellis, "train", str(config), "--quiet"])
    with open(folder / "bench/metrics.csv", newline="") as file:
        rates = [float(row["tokens_per_second"]) for row in csv.DictReader(file)]
    return statistics.median(rates[2:]), memory, seconds


def ways_of_torch(ranks, experts):
    if ranks == 1:
        return ["torch_eager", "torch_grouped_mm"] if experts else ["torch"]
    return ["ddp_eager", "ddp_grouped_mm"] if experts else ["ddp", "fsdp2"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("trellis")
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--type", default="fp32", choices=["fp32", "bf16"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--experts", type=int, default=0)
    parser.add_argument("--steps", type=int, default=6, help="of which the first two do not count")
    parser.add_argument("-o", "--output", help="the result as data")
    options = parser.parse_args()
    trellis = str(pathlib.Path(options.trellis).resolve())
    results, loads = {}, []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(options.rounds):
            loads.append(os.getloadavg()[0])
            results.setdefault("trellis", []).append(ours(trellis, options.ranks, options.type, options.experts, options.steps, pathlib.Path(folder)))
            for way in ways_of_torch(options.ranks, options.experts):
                said, memory, seconds = launched(trellis, options.ranks, [sys.executable, __file__, "--torch-rank", way, options.type,
                                                                          str(options.experts), str(options.steps)])
                results.setdefault(way, []).append((float(said.split()[-1]), memory, seconds))
    for name, values in results.items():
        rates = [rate for rate, _, _ in values]
        print(f"{name:14} {statistics.median(rates):9.0f} tokens/s [{min(rates):.0f} to {max(rates):.0f}]  "
              f"{max(memory for _, memory, _ in values):7.0f} MB a rank  {statistics.median(s for _, _, s in values):6.1f} s of CPU")
    if options.output:
        made = {"date": datetime.date.today().isoformat(), "program": pathlib.Path(trellis).parent.name,
                "how": f"bench/train_torch.py --ranks {options.ranks} --type {options.type} --experts {options.experts} --steps {options.steps}, the ways in turn, "
                       f"{options.rounds} rounds; load {min(loads):.0f} to {max(loads):.0f}"}
        rows = [{"way": name, "tokens_per_second": [round(rate) for rate, _, _ in values], "cpu_s": [round(s, 1) for _, _, s in values],
                 "rank_mb": round(max(memory for _, memory, _ in values))} for name, values in results.items()]
        machine = {"kind": "a virtual machine", "cores": f"{os.cpu_count()} cores"}
        pathlib.Path(options.output).write_text(json.dumps({"what": "training beside PyTorch", "machine": machine, "made": made, "rows": rows},
                                                           indent=1) + "\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--torch-rank"]:
        torch_rank(sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
    else:
        main()
