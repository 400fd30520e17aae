#!/usr/bin/env python3
"""Sets the kernels beside PyTorch's on this CPU: the two take turns, with the same sizes and numbers of threads, and the
medians are compared.

    bench/torch_kernels.py build/release/bench/bench_kernels_peer

Needs a Python with torch (2.13.0 was used); says so and does nothing where there is none."""

import argparse
import os
import statistics
import subprocess
import sys
import time

L2_BYTES = 512 << 10
MEMORY_BYTES = 256 << 20


def torch_operations(torch):
    """Each takes a number of elements and gives what to call; bytes are those that an element's operands take."""

    def add(dtype):
        def make(n):
            a, b = (torch.full((n,), 0.0115, dtype=dtype) for _ in range(2))
            out = torch.empty_like(a)
            return lambda: torch.add(a, b, out=out)

        return make

    def to_bf16(n):
        a, out = torch.full((n,), 0.0115), torch.empty(n, dtype=torch.bfloat16)
        return lambda: out.copy_(a)

    def to_bf16_allocating(n):
        a = torch.full((n,), 0.0115)
        return lambda: a.to(torch.bfloat16)

    def adamw(dtype):
        def make(n):
            p = torch.full((n,), 0.0115, dtype=dtype, requires_grad=True)
            p.grad = torch.full((n,), 0.0115, dtype=dtype)
            return torch.optim.AdamW([p], fused=True).step

        return make

    return [
        ("add.f32", "torch.add(f32, out=)", 12, add(torch.float32)),
        ("add.bf16", "torch.add(bf16, out=)", 6, add(torch.bfloat16)),
        ("to_bf16", "out.copy_(f32)", 6, to_bf16),
        ("to_bf16", "f32.to(bfloat16)", 6, to_bf16_allocating),
        ("adamw.f32", "AdamW(fused=True), f32", 16, adamw(torch.float32)),
        ("adamw.bf16", "AdamW(fused=True), bf16", 8, adamw(torch.bfloat16)),
    ]


class Peer:
    """The program that times our side, call by call."""

    def __init__(self, path):
        self.process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def seconds(self, operation, n, threads, calls):
        self.process.stdin.write(f"{operation} {n} {threads} {calls}\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"{operation}: the program ended")
        return float(line)


def median_seconds(call, calls):
    call()
    times = []
    for _ in range(calls):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def settle():
    time.sleep(0.02)  # until the other side's threads are asleep


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peer", help="bench_kernels_peer of a release build")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--threads", type=int, nargs="+", default=sorted({1, len(os.sched_getaffinity(0))}))
    options = parser.parse_args()
    try:
        import torch
    except ImportError:
        print("torch is not installed for this Python: nothing to compare with")
        return
    peer = Peer(options.peer)
    print(f"torch {torch.__version__}; microseconds a call, medians of {options.rounds} turns\n")
    print(f"{'ours':<11}{'torch':<25}{'where':<8}{'threads':>7}{'elements':>11}{'ours':>11}{'torch':>11}{'faster':>8}")
    for operation, shown, width, make in torch_operations(torch):
        for where, size, calls in (("L2", L2_BYTES, 200), ("memory", MEMORY_BYTES, 3)):
            n = size // width // 64 * 64
            call = make(n)
            for threads in options.threads:
                torch.set_num_threads(threads)
                ours, theirs = [], []
                for _ in range(options.rounds):
                    ours.append(peer.seconds(operation, n, threads, calls))
                    settle()
                    theirs.append(median_seconds(call, calls))
                    settle()
                ratio = statistics.median(t / o for o, t in zip(ours, theirs))
                a, b = statistics.median(ours) * 1e6, statistics.median(theirs) * 1e6
                print(f"{operation:<11}{shown:<25}{where:<8}{threads:>7}{n:>11}{a:>11.1f}{b:>11.1f}{ratio:>8.2f}", flush=True)


if __name__ == "__main__":
    main()
