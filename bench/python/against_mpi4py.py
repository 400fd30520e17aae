"""Collectives on numpy arrays: ours by the C API, and mpi4py over Open MPI and MPICH, where they are installed.

    python bench/python/against_mpi4py.py [--ranks 2] [--most 16MiB] [--rounds 3] [--operations all_reduce,broadcast]

Rounds alternate between the libraries; each number is the median over rounds of the slowest rank's time for a call.
`settings` are ways to start a library: as installed, and without what slows it down where it was slower so. At each
size a library counts with its best. mpi4py comes from the package index. Debian: libopenmpi-dev openmpi-bin mpich.
"""

import argparse
import ctypes
import functools
import glob
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from trellis._where import LIBRARY, PROGRAM
from trellis.sizes import in_bytes

OPERATIONS = ["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast"]
SETTINGS: dict[str, dict[str, list[str]]] = {
    "Open MPI": {"as installed": [], "no single copy": ["--mca", "btl_vader_single_copy_mechanism", "none"],
                 "ucx": ["--mca", "pml", "ucx", "--mca", "pml_ucx_tls", "any", "--mca", "pml_ucx_devices", "any"]},
    "MPICH": {"as installed": [], "no single copy": ["-genv", "UCX_TLS", "posix,self"]},
}  # fmt: skip
LAUNCHERS = {"Open MPI": ("mpirun.openmpi", "openmpi"), "MPICH": ("mpirun.mpich", "mpich")}
F32 = 1

Operation = Callable[[], object]


class Ours:
    """The C API by ctypes; `seen` is memory that peers read directly."""

    def __init__(self, seen: bool) -> None:
        self.api = ctypes.CDLL(LIBRARY)
        self.comm = ctypes.c_void_p()
        self.check(self.api.trellis_comm_create_from_environment(ctypes.byref(self.comm), None))
        rank, ranks = ctypes.c_int(), ctypes.c_int()
        self.check(self.api.trellis_comm_rank(self.comm, ctypes.byref(rank)))
        self.check(self.api.trellis_comm_ranks(self.comm, ctypes.byref(ranks)))
        self.rank, self.ranks, self.seen = rank.value, ranks.value, seen

    def check(self, result: int) -> None:
        if result:
            self.api.trellis_last_error.restype = ctypes.c_char_p
            raise RuntimeError(self.api.trellis_last_error().decode())

    def array(self, count: int) -> np.ndarray:
        if not self.seen:
            return np.ones(count, np.float32)
        memory = ctypes.c_void_p()
        self.check(self.api.trellis_alloc(ctypes.byref(memory), ctypes.c_size_t(count * 4)))
        array = np.frombuffer((ctypes.c_float * count).from_address(memory.value or 0), np.float32)
        array[:] = 1
        return array

    def operations(self, x: np.ndarray, y: np.ndarray) -> dict[str, Operation]:
        """Calls on x, or from x to y; both have the size of the larger buffer. Pointers are taken once."""
        pointer, size, number = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
        kinds = {"all_reduce": [number], "reduce_scatter": [number], "broadcast": [number]}
        block = x.size // self.ranks
        counts = {"all_reduce": x.size, "broadcast": x.size}
        ends = {"all_reduce": (x, x), "broadcast": (x, x)}
        bound: dict[str, Operation] = {}
        for name in OPERATIONS:
            more = kinds.get(name, [])
            function = self.api[f"trellis_{name}"]
            function.argtypes = [pointer, pointer, pointer, size, number, *more, pointer]
            source, target = ends.get(name, (x, y))
            words = (self.comm.value, source.ctypes.data, target.ctypes.data, counts.get(name, block), F32,
                     *(0 for _ in more), None)  # fmt: skip
            bound[name] = functools.partial(self.call, function, *words)
        return bound

    def call(self, function: Any, *words: Any) -> None:
        if function(*words):
            self.check(1)

    def barrier(self) -> None:
        self.check(self.api.trellis_barrier(self.comm, ctypes.c_void_p()))

    def slowest(self, seconds: float) -> float:
        x = np.array([seconds], np.float64)
        at = ctypes.c_void_p(x.ctypes.data)
        self.check(self.api.trellis_all_reduce(self.comm, at, at, ctypes.c_size_t(1), 0, 3, ctypes.c_void_p()))
        return float(x[0])


class Mpi:
    def __init__(self) -> None:
        from mpi4py import MPI

        self.mpi, self.comm = MPI, MPI.COMM_WORLD
        self.rank, self.ranks = self.comm.rank, self.comm.size

    def array(self, count: int) -> np.ndarray:
        return np.ones(count, np.float32)

    def operations(self, x: np.ndarray, y: np.ndarray) -> dict[str, Operation]:
        comm, here, block = self.comm, self.mpi.IN_PLACE, x.size // self.ranks
        return {
            "all_reduce": functools.partial(comm.Allreduce, here, x),
            "all_gather": functools.partial(comm.Allgather, x[:block], y),
            "reduce_scatter": functools.partial(comm.Reduce_scatter_block, x, y[:block]),
            "all_to_all": functools.partial(comm.Alltoall, x, y),
            "broadcast": functools.partial(comm.Bcast, x),
        }

    def barrier(self) -> None:
        self.comm.Barrier()

    def slowest(self, seconds: float) -> float:
        return float(self.comm.allreduce(seconds, op=self.mpi.MAX))


def as_rank(library: Ours | Mpi, operations: list[str], sizes: list[int]) -> None:
    """Prints, on rank 0, JSON of [operation, size, microseconds a call]."""
    rows = []
    for size in sizes:
        x, y = library.array(size // 4), library.array(size // 4)
        known = library.operations(x, y)
        for name in operations:
            run, batch = known[name], max(1, min(100, (1 << 20) // size))
            times = []
            for turn in range(9 if size <= 1 << 20 else 5):
                x[:] = 1
                library.barrier()
                begun = time.perf_counter()
                for _ in range(batch):
                    run()
                took = library.slowest((time.perf_counter() - begun) / batch)
                if turn:
                    times.append(took * 1e6)
            rows.append([name, size, statistics.median(times)])
    if library.rank == 0:
        print(json.dumps(rows), flush=True)
    library.barrier()


def started(words: list[str], given: argparse.Namespace, **environment: str) -> dict[tuple[str, int], float]:
    command = [*words, sys.executable, __file__, "--as", environment.pop("AS"), "--most", given.most,
               "--operations", given.operations, "--ranks", str(given.ranks)]  # fmt: skip
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=200, env={**os.environ, "OMP_NUM_THREADS": "1", **environment}
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)}: {done.stderr[-500:]}")
    line = next(line for line in done.stdout.splitlines() if line.startswith("[["))
    return {(name, size): us for name, size, us in json.loads(line)}


def ways(given: argparse.Namespace) -> dict[str, list[Callable[[], dict[tuple[str, int], float]]]]:
    """Each library's settings, as something that runs it once."""
    crowded = given.ranks > len(os.sched_getaffinity(0))
    launch = [PROGRAM, "launch", "--raw", "-n", str(given.ranks), *([] if crowded else ["--pin"]), "--"]
    found: dict[str, list[Callable[[], dict[tuple[str, int], float]]]] = {
        "numpy's memory": [lambda: started(launch, given, AS="ours")],
        "peers' sight": [lambda: started(launch, given, AS="seen")],
    }
    for title, (launcher, abi) in LAUNCHERS.items():
        if not (path := shutil.which(launcher)):
            continue
        open_mpi = title == "Open MPI"
        more = ["--allow-run-as-root"] if open_mpi else []
        if open_mpi:
            idle = ["--oversubscribe", "--mca", "mpi_yield_when_idle", "1"]
            more += idle if crowded else ["--bind-to", "core"]
        elif not crowded:
            more += ["-bind-to", "core"]
        found[title] = [
            lambda words=[path, "-n", str(given.ranks), *setting, *more], abi=abi: started(  # type: ignore[misc]
                words, given, AS="mpi", MPI4PY_MPIABI=abi
            )
            for setting in SETTINGS[title].values()
        ]
    return found


@contextmanager
def mpich_by_its_common_name() -> Iterator[None]:
    """mpi4py's wheel asks for libmpi.so.12, which Debian calls libmpich.so.12."""
    found = sorted(glob.glob("/usr/lib/*/libmpich.so.12"))
    with tempfile.TemporaryDirectory() as folder:
        if found:
            os.symlink(found[0], os.path.join(folder, "libmpi.so.12"))
        before = os.environ.get("LD_LIBRARY_PATH", "")
        os.environ["LD_LIBRARY_PATH"] = f"{folder}:{before}" if before else folder
        yield


def table(given: argparse.Namespace) -> None:
    libraries = ways(given)
    told: dict[str, list[list[dict[tuple[str, int], float]]]] = {name: [[] for _ in w] for name, w in libraries.items()}
    for _ in range(given.rounds):
        for name, runs in libraries.items():
            for way, run in enumerate(runs):
                told[name][way].append(run())
    best = {
        name: {key: min(statistics.median(r[key] for r in way) for way in settings) for key in settings[0][0]}
        for name, settings in told.items()
    }
    peers = [name for name in libraries if name in LAUNCHERS]
    for operation in given.operations.split(","):
        print(f"\n| {operation}, us | {' | '.join(libraries)} | {' | '.join(f'{p} / ours' for p in peers)} |")
        print("|---" * (1 + len(libraries) + len(peers)) + "|")
        for size in (size for name, size in best["numpy's memory"] if name == operation):
            us = {name: best[name][operation, size] for name in libraries}
            ours = us["numpy's memory"]
            numbers = [f"{us[name]:.1f}" for name in libraries]
            ratios = [f"{us[peer] / ours:.2f}" for peer in peers]
            print(f"| {size} B | {' | '.join(numbers)} | {' | '.join(ratios)} |", flush=True)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--ranks", type=int, default=2)
    options.add_argument("--most", default="16MiB")
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--operations", default=",".join(OPERATIONS))
    options.add_argument("--as", dest="role", choices=["ours", "seen", "mpi"], help=argparse.SUPPRESS)
    given = options.parse_args()
    if not given.role:
        with mpich_by_its_common_name():
            table(given)
        return
    most = in_bytes(given.most)
    sizes = [size for size in (64, 4096, 64 << 10, 1 << 20, 16 << 20, 256 << 20) if size <= most]
    as_rank(Mpi() if given.role == "mpi" else Ours(given.role == "seen"), given.operations.split(","), sizes)


if __name__ == "__main__":
    main()
