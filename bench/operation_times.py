"""Two ways to a computation's time beside each other: the formulas that steps are priced with (sim/cluster/operation),
and a program of sim/core that does the same on one core, instruction by instruction. Prints the table of docs/step.md.

    PYTHONPATH=build/dev/python python bench/operation_times.py build/dev/trellis
"""

import argparse
import json
import subprocess

from trellis import sim

ROWS, COLUMNS = 4096, 4096
ATTENTION = {"rows": 4096, "columns": 4096, "inner": 128, "flash": True}
PASSES = {"rows": ROWS, "columns": COLUMNS}
# the program and its parameters, the kind and its shape, what is computed
CASES = [
    ("matmul", {"M": 1024, "K": 1024, "N": 1024}, "product", {"rows": 1024, "columns": 1024, "inner": 1024},
     "1024 x 1024 x 1024"),
    ("matmul", {"M": 2048, "K": 2048, "N": 2048}, "product", {"rows": 2048, "columns": 2048, "inner": 2048},
     "2048 x 2048 x 2048"),
    ("matmul", {"M": 4096, "K": 4096, "N": 4096}, "product", {"rows": 4096, "columns": 4096, "inner": 4096},
     "4096 x 4096 x 4096"),
    ("flash_attention", {"seq_len": 2048}, "attention", {**ATTENTION, "rows": 2048, "columns": 2048},
     "a head of 128, 2048 tokens"),
    ("flash_attention", {"seq_len": 4096}, "attention", ATTENTION, "a head of 128, 4096 tokens"),
    ("flash_attention", {"seq_len": 4096, "causal": "yes"}, "attention", {**ATTENTION, "causal": True},
     "the same, causal"),
    ("flash_attention_backward", {"seq_len": 2048}, "attention_gradient",
     {**ATTENTION, "rows": 2048, "columns": 2048}, "a head of 128, 2048 tokens"),
    ("flash_attention_backward", {"seq_len": 4096}, "attention_gradient", ATTENTION, "a head of 128, 4096 tokens"),
    ("flash_attention_backward", {"seq_len": 4096, "causal": "yes"}, "attention_gradient",
     {**ATTENTION, "causal": True}, "the same, causal"),
    ("rms_norm", {"rows": ROWS, "columns": COLUMNS}, "rms_norm", PASSES, f"{ROWS} x {COLUMNS}"),
    ("layer_norm", {"rows": ROWS, "columns": COLUMNS}, "layer_norm", PASSES, f"{ROWS} x {COLUMNS}"),
    ("softmax", {"rows": ROWS, "columns": COLUMNS}, "softmax", PASSES, f"{ROWS} x {COLUMNS}"),
    ("swiglu", {"n": ROWS * COLUMNS}, "swiglu", PASSES, f"{ROWS} x {COLUMNS}"),
    ("adamw", {"n": ROWS * COLUMNS}, "adamw", PASSES, "16.8 million parameters"),
]  # fmt: skip


def microseconds(program, name, chip, parameters):
    words = [word for key, value in parameters.items() for word in ("-p", f"{key}={value}")]
    ran = subprocess.run([program, "core", "run", name, "--chip", chip, "--timing-only", "--json", *words],
                         capture_output=True, text=True, check=True)  # fmt: skip
    return json.loads(ran.stdout)["time_ps"] * 1e-6


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--chips", default="trn1,trn2")
    given = parser.parse_args()
    chips = given.chips.split(",")
    print("| computation | of |" + "".join(f" {chip}: program | formula | ratio |" for chip in chips))
    print("|---|---|" + "---|---|---|" * len(chips))
    for name, parameters, kind, shape, of in CASES:
        line = f"| {kind} | {of} |"
        for chip in chips:
            program = microseconds(given.program, name, chip, parameters)
            formula = sim.operation_time(kind, chip=chip, cores=1, **shape).total * 1e6
            line += f" {program:.0f} us | {formula:.0f} us | {formula / program:.2f} |"
        print(line)


if __name__ == "__main__":
    main()
