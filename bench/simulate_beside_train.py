"""A model as `trellis train` lays it out beside a recorded PyTorch job of the same layout, by cause.

    trellis simulate --world 8 --record job.record -- torchrun train.py
    python bench/simulate_beside_train.py model.yaml job.record [-m trn2.48xlarge]

Prints seconds of each side in a class of operations, and of the exchanges, each kind's bytes included.
"""

import argparse
import re
import subprocess
from collections import Counter

from trellis import sim
from trellis._where import PROGRAM
from trellis.simulate.price import Priced, price
from trellis.simulate.price.rates import Rates
from trellis.simulate.record import read

CLASSES = ("products", "attention", "other operations", "update")
_CLASS_OF = {"product": "products", "attention": "attention", "attention_gradient": "attention", "adamw": "update",
             "gradient_norm": "update"}  # fmt: skip
_NUMBERS = ("rows", "columns", "inner", "batch", "shared", "inputs", "outputs", "vector", "scalar")


def trained(config: str, machine: sim.Machine, ranks: int) -> tuple[Counter[str], Counter[tuple[str, int]]]:
    """(seconds by class, exchanges by kind and bytes) of a step as `trellis train` lays it out for the first rank."""
    words = [PROGRAM, "train", "export", config, "-n", str(ranks)]
    lines = subprocess.run(words, check=True, capture_output=True, text=True).stdout.splitlines()
    cores = machine.figures["cores"].value * machine.chips / machine.ranks
    kinds: dict[str, tuple[str, float]] = {}
    seconds: Counter[str] = Counter()
    exchanges: Counter[tuple[str, int]] = Counter()
    for line in lines:
        first, *words = line.split()
        if first == "operation":
            name, kind, *rest = words
            told = {k: int(v) if k in _NUMBERS else v or True for k, _, v in (w.partition("=") for w in rest)}
            kinds[name] = kind, sim.operation_time(kind, chip=machine.chip, cores=cores, **told).total
        elif first == "compute":
            for name, times in re.findall(r" (o\d+)(?:\*(\d+))?(?= )", line):
                kind, each = kinds[name]
                seconds[_CLASS_OF.get(kind, "other operations")] += each * int(times or 1)
        elif first not in ("ranks", "group", "#"):
            exchanges[first, int(words[1].removesuffix("B"))] += 1
    return seconds, exchanges


def recorded(out: Priced) -> tuple[Counter[str], Counter[tuple[str, int]]]:
    """The same of a job's record, of the rank that decides."""
    seconds: Counter[str] = Counter()
    exchanges: Counter[tuple[str, int]] = Counter()
    for event in out.record.events:
        if event[0] == "op":
            operation = out.record.operations[event[2]]
            time = out.rates.operation(operation)
            usual = "update" if event[4] == "optimizer" else "other operations"
            seconds[_CLASS_OF.get(out.rates.rules[operation].kind, usual)] += time
        elif event[0] == "collective":
            exchanges[event[3], event[5]] += 1
    return seconds, exchanges


def together(exchanges: Counter[tuple[str, int]], rates: Rates, family: int) -> dict[str, tuple[int, float]]:
    """(bytes, seconds) by kind, if all of them were of one family of groups."""
    told: dict[str, tuple[int, float]] = {}
    for (kind, size), times in sorted(exchanges.items()):
        before = told.get(kind, (0, 0.0))
        told[kind] = before[0] + size * times, before[1] + rates.collective(kind, family, size, -1) * times
    return told


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("config")
    options.add_argument("record")
    options.add_argument("-m", "--machine", default="trn2.48xlarge")
    given = options.parse_args()
    machine = sim.Machine(given.machine)
    out = price(read(given.record), machine)
    (theirs, exchanged), (ours, ours_exchanged) = trained(given.config, machine, out.job.world), recorded(out)
    print(f"{'':28}{'trellis train':>14}{'PyTorch job':>14}")
    for name in CLASSES:
        print(f"{name:28}{theirs[name] * 1e3:11.2f} ms{ours[name] * 1e3:11.2f} ms")
    by_kind = [together(one, out.rates, 0) for one in (exchanged, ours_exchanged)]
    for kind in sorted(by_kind[0].keys() | by_kind[1].keys()):
        (size, time), (our_size, our_time) = (one.get(kind, (0, 0.0)) for one in by_kind)
        print(f"{kind + ', bytes':28}{size:14,}{our_size:14,}")
        print(f"{kind:28}{time * 1e3:11.2f} ms{our_time * 1e3:11.2f} ms")


if __name__ == "__main__":
    main()
