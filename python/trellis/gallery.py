"""Pictures of what the package can say: `python -m trellis.gallery [folder]`, with matplotlib.

crossover    which algorithm is the fastest at which size
scaling      how the time grows with the ranks
what_if      what a slower or faster part would change
timeline     what ran where and when in one all_reduce
"""

import argparse
import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np

from trellis import origin, schedule, sim

try:
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "trellis", "path.simplify": False})
    from matplotlib import pyplot
except ImportError as missing:
    raise ImportError("trellis.gallery needs matplotlib: pip install trellis[gallery]") from missing

__all__ = ["MACHINE", "PICTURES", "crossover", "draw", "main", "scaling", "timeline", "what_if"]

MACHINE = "trn2.48xlarge"


def _question(what: str, machine: Any, size: int, **more: Any) -> dict[str, Any]:
    return {"what": what, "machine": machine, "size": size, "interval": False, "explain": False, **more}


def crossover(axes: Any) -> None:
    sizes = [1 << power for power in range(10, 29, 2)]
    for config in ("ring*2", "rdh", "mesh", "double_tree"):
        prices = sim.sweep([_question("all_reduce", MACHINE, size, config=config) for size in sizes])
        axes.loglog(sizes, [p.time * 1e6 for p in prices], marker=".", label=config)
    best = sim.sweep([_question("all_reduce", MACHINE, size) for size in sizes])
    axes.loglog(sizes, [p.time * 1e6 for p in best], "k--", label="the fastest of all")
    axes.loglog(sizes, [p.bounds.most * 1e6 for p in best], ":", color="grey", label="no schedule is faster")
    axes.set(xlabel="bytes", ylabel="us", title=f"all_reduce on {MACHINE}")
    axes.legend()


def scaling(axes: Any) -> None:
    counts = [1, 2, 4, 8, 16]
    for size, label in ((1 << 20, "1 MiB"), (1 << 26, "64 MiB")):
        prices = sim.sweep([_question("all_reduce", f"{MACHINE} x {n}", size) for n in counts])
        axes.plot([16 * n for n in counts], [p.time * 1e6 for p in prices], marker="o", label=label)
    axes.set(xlabel="chips", ylabel="us", title="all_reduce, the fastest config", xscale="log", yscale="log")
    axes.legend()


def what_if(axes: Any) -> None:
    machine = sim.Machine(f"{MACHINE} x 2")
    changes = ["slow:0-4:0.5", "hbm:3:0.5", "straggler:5:0.5", "nic:12:0.5"]
    base = sim.price(**_question("all_reduce", machine, 1 << 26))
    degraded = [_question("all_reduce", machine.what_if(c), 1 << 26, config=base.config) for c in changes]
    times = [sim.price(**question).time for question in degraded]
    axes.barh(["as it is", *changes], [base.time * 1e3, *(t * 1e3 for t in times)])
    axes.set(xlabel="ms")
    axes.set_title(f"64 MiB all_reduce with one part degraded, by\n{base.config}", fontsize="medium")


def timeline(axes: Any) -> None:
    t = sim.timeline(schedule.algorithm("ring", "all_reduce", 16), MACHINE, "1MiB")
    shown = [i for i, (group, _) in enumerate(t.rows) if "rank" in group or "chip" in group][:24]
    for line, row in enumerate(shown):
        mine = t.row == row
        gaps = np.full(mine.sum(), np.nan)
        spans = np.stack([t.start[mine] * 1e6, t.end[mine] * 1e6, gaps], axis=1).ravel()  # one line, with gaps: small
        axes.plot(spans, np.full(spans.shape, line), linewidth=8, solid_capstyle="butt", color=f"C{line % 3}")
    axes.set_yticks(range(len(shown)), [" ".join(t.rows[i]) for i in shown], fontsize=6)
    axes.set(xlabel="us", title="1 MiB all_reduce by a ring of 16 ranks, eight of them")


PICTURES: dict[str, Callable[[Any], None]] = {
    "crossover": crossover, "scaling": scaling, "what_if": what_if, "timeline": timeline
}  # fmt: skip


def draw(name: str, folder: pathlib.Path) -> pathlib.Path:
    figure, axes = pyplot.subplots(figsize=(8, 5), layout="constrained")
    PICTURES[name](axes)
    path = folder / f"{name}.svg"
    figure.savefig(path, metadata={"Date": None, "Description": origin.comment(origin.facts(MACHINE), "")})
    pyplot.close(figure)
    return path


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("folder", nargs="?", default="gallery", type=pathlib.Path)
    options.add_argument("--only", choices=PICTURES, action="append")
    given = options.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    np.seterr(all="raise")
    for name in given.only or PICTURES:
        print(draw(name, given.folder), flush=True)


if __name__ == "__main__":
    main()
