"""How long does a step of a PyTorch job take on machines that aren't there?

    python -m trellis.simulate --machine "trn2.48xlarge x 2" --world 128 -- torchrun train.py --config llama.toml

The job runs here, unchanged: as a few of its ranks, each in a process that believes to be in the whole world, with
tensors that have no data. Its second step is recorded, proved, priced on the machine, and reported.
"""

import argparse
import html
import json
import pathlib
import signal
import sys

from trellis.simulate.record import JobRecord, data_axis, read, resize, write
from trellis.simulate.routing import exponent

__all__ = ["main"]


def _options() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(
        prog="trellis simulate", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    add = options.add_argument
    add("-m", "--machine", default="trn2.48xlarge", help='as in `trellis sim`: "trn2.48xlarge x 4" [trn2.48xlarge]')
    add("--world", type=int, default=0, help="ranks of the job [as many as the machine has]")
    add(
        "--device",
        choices=("any", "neuron", "cuda", "cpu"),
        default="any",
        help='device that the script finds: any, both "neuron" and "cuda"; neuron or cuda, that one alone; '
        "cpu, neither: the script computes on the host, for real [any]",
    )
    add(
        "--step",
        type=int,
        default=0,
        help="the step to record [2: the first fills caches; 3 with DistributedDataParallel, which arranges buckets]",
    )
    add(
        "--routing",
        default="",
        help="how tokens are routed to experts, as data would decide: uniform; or skew=S, expert i in proportion to "
        "(i+1)^-S",
    )
    add("--era", default="", help="generation of the machine's software, as in `trellis sim`")
    add(
        "-o",
        "--output",
        action="append",
        default=[],
        help="file of the answer: .html a page, .svg a picture, .json, .trace.json for Perfetto, .txt; repeatable",
    )
    add("--record", help="file of the record, to price again with --read")
    add("--read", help="a record's file, instead of a command")
    add(
        "--dp",
        type=int,
        default=0,
        metavar="N",
        help="number of data-parallel ranks to answer for: the record is changed to it by rules",
    )
    add("--resize", action="append", default=[], metavar="AXIS=N", help="the same for another axis; repeatable")
    add("--against", help="show what changed since this record (a file)")
    add("--workload", help="file for a workload of `trellis sim`")
    add("--chakra", help="NAME of Chakra traces, NAME.0.et and so on, one for each rank, with NAME.groups.json")
    add("command", nargs=argparse.REMAINDER, help="-- and the job's command: torchrun, python, accelerate launch")
    return options


def _job(given: argparse.Namespace) -> JobRecord:
    from trellis import sim
    from trellis.simulate.ranks.record_job import record_job

    if given.routing:
        exponent(given.routing)
    command = given.command[1:] if given.command[:1] == ["--"] else given.command
    if given.read and command:
        raise ValueError("--read and a command: expected one of them")
    if given.read:
        return read(given.read)
    if not command:
        raise ValueError("expected -- and the job's command, as in -- torchrun train.py; or --read and a record's file")
    machine = sim.Machine(given.machine)
    world = given.world or machine.ranks
    if world > machine.ranks:
        raise ValueError(f"--world {world}: {given.machine} has {machine.ranks} ranks")
    local = min(world, machine.host_ranks)
    return record_job(command, world, local, given.device, given.step, int(machine.rank_memory), given.routing)


def _write(out: "object", path: str) -> None:
    from trellis import origin
    from trellis.simulate.price import Priced
    from trellis.simulate.report import page, picture, plain, text, trace

    assert isinstance(out, Priced)
    made_by = origin.facts(out.machine)
    if path.endswith(".trace.json"):
        told = json.dumps({**trace.trace(out), "otherData": made_by})
    elif path.endswith(".json"):
        told = json.dumps({**plain.plain(out), "made_by": made_by}, indent=1)
    elif path.endswith(".html"):
        told = page.page(out, origin.section(made_by))
    elif path.endswith(".svg"):
        drawn, end, _ = picture.picture(out).rpartition("</svg>")
        told = f"{drawn}<metadata>\n{html.escape(origin.comment(made_by, ''))}</metadata>{end}"
    elif path.endswith(".txt"):
        told = origin.comment(made_by) + text.text(out)
    else:
        raise ValueError(f"-o {path}: expected a name that ends with .html, .svg, .json, .trace.json or .txt")
    pathlib.Path(path).write_text(told)


def _resized(job: JobRecord, given: argparse.Namespace) -> JobRecord:
    asked = [word.partition("=") for word in given.resize]
    for name, _, size in asked:
        if not size.isdigit():
            raise ValueError(f"--resize {name}={size}: expected AXIS=N, as in dp=64")
        job = resize(job, name, int(size))
    return resize(job, data_axis(job), given.dp) if given.dp else job


def _run(given: argparse.Namespace) -> None:
    from trellis import origin
    from trellis.simulate.export import chakra, workload
    from trellis.simulate.price import price
    from trellis.simulate.report import against, text

    job = _resized(_job(given), given)
    if given.record:
        write(job, given.record)
    out = price(job, given.machine, given.era)
    print(text.text(out), end="")
    if given.against:
        print(against.against(out, price(read(given.against), given.machine, given.era)), end="")
    for path in given.output:
        _write(out, path)
    if given.workload:
        pathlib.Path(given.workload).write_text(origin.comment(origin.facts(out.machine)) + workload.workload(out))
    if given.chakra:
        for rank, trace in chakra.chakra(out):
            pathlib.Path(f"{given.chakra}.{rank}.et").write_bytes(trace)
        pathlib.Path(f"{given.chakra}.groups.json").write_text(chakra.chakra_groups(out))


def main() -> None:
    from trellis.simulate.ranks.coordinator import RankFailed

    given = _options().parse_args()
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # ends the ranks, too
    try:
        _run(given)
    except (ValueError, OSError, RankFailed) as error:
        print(f"trellis simulate: {error}", file=sys.stderr)
        raise SystemExit(2 if isinstance(error, ValueError) else 1) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None
