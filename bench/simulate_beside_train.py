"""A model as `trellis train` lays it out beside a recorded PyTorch job of the same layout, by cause.

    trellis simulate --world 8 --record job.record -- torchrun train.py
    python bench/simulate_beside_train.py model.yaml job.record [-m trn2.48xlarge] [--what-if KEY=VALUE]

Prints the step of each, seconds in a class of operations, and of the exchanges, each kind's bytes included. "Merged" is the
job with the operations of its compiled regions merged.
"""

import argparse
import json
import re
import subprocess
from collections import Counter

from trellis import sim
from trellis._where import PROGRAM
from trellis.simulate.price import Priced, price
from trellis.simulate.price.merging import merged_times
from trellis.simulate.price.rates import Rates
from trellis.simulate.record import read

CLASSES = ("products", "attention", "other operations", "update")
_CLASS_OF = {"product": "products", "attention": "attention", "attention_gradient": "attention", "adamw": "update",
             "gradient_norm": "update"}  # fmt: skip
_NUMBERS = ("rows", "columns", "inner", "batch", "shared", "inputs", "outputs", "vector", "scalar")


def trained_step(config: str, machine: sim.Machine, ranks: int, what_if: list[str]) -> float:
    """Seconds of a step, as `trellis train price` says."""
    words = [PROGRAM, "train", "price", config, "-m", machine.base, "-n", str(ranks), "--json"]
    words += [word for change in what_if for word in ("--what-if", change)]
    return float(json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)["time_ps"]) * 1e-12


def trained(config: str, machine: sim.Machine, ranks: int,
            what_if: list[str]) -> tuple[Counter[str], Counter[tuple[str, int]]]:  # fmt: skip
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
            kinds[name] = kind, sim.operation_time(kind, chip=machine.chip, cores=cores, what_if=what_if, **told).total
        elif first == "compute":
            for name, times in re.findall(r" (o\d+)(?:\*(\d+))?(?= )", line):
                kind, each = kinds[name]
                seconds[_CLASS_OF.get(kind, "other operations")] += each * int(times or 1)
        elif first not in ("ranks", "group", "#"):
            exchanges[first, int(words[1].removesuffix("B"))] += 1
    return seconds, exchanges


def recorded(out: Priced, merged: dict[int, float]) -> tuple[Counter[str], Counter[tuple[str, int]]]:
    """The same of a job's record, of the rank that decides; some operations take otherwise long, by their events."""
    seconds: Counter[str] = Counter()
    exchanges: Counter[tuple[str, int]] = Counter()
    for index, event in enumerate(out.record.events):
        if event[0] == "op":
            operation = out.record.operations[event[2]]
            time = merged.get(index, out.rates.operation(operation))
            usual = "update" if event[4] in ("optimizer", "other") else "other operations"  # other: clipping
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
    options.add_argument("--what-if", action="append", default=[], help="of the chip's figures, for both")
    given = options.parse_args()
    machine = sim.Machine(given.machine)
    for change in given.what_if:
        machine = machine.what_if(change)
    out = price(read(given.record), machine)
    theirs, exchanged = trained(given.config, machine, out.job.world, given.what_if)
    ours, ours_exchanged = recorded(out, {})
    merged, _ = recorded(out, merged_times(out.record, out.rates))
    print(f"{'':28}{'trellis train':>14}{'PyTorch job':>14}{'merged':>14}")
    rows = {name: (theirs[name], ours[name], merged[name]) for name in CLASSES}
    step = trained_step(given.config, machine, out.job.world, given.what_if)
    for name, told in {"step": (step, out.time, out.merged.time or out.time), **rows}.items():
        print(f"{name:28}" + "".join(f"{seconds * 1e3:11.2f} ms" for seconds in told))
    by_kind = [together(one, out.rates, 0) for one in (exchanged, ours_exchanged)]
    for kind in sorted(by_kind[0].keys() | by_kind[1].keys()):
        (size, time), (our_size, our_time) = (one.get(kind, (0, 0.0)) for one in by_kind)
        print(f"{kind + ', bytes':28}{size:14,}{our_size:14,}")
        print(f"{kind:28}{time * 1e3:11.2f} ms{our_time * 1e3:11.2f} ms")


if __name__ == "__main__":
    main()
