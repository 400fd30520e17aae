#!/usr/bin/env python3
"""Times our collectives over a fabric beside Gloo's, Open MPI's and MPICH's over TCP: fabric.py BUILD [options]

All ranks run here, each as a host of its own: no library may use shared memory. Every round runs each library once with each
of its settings, so that what the machine does meanwhile hits all alike. At each size a library counts with its fastest setting,
and so do we, with the providers that libfabric has. A figure is the median over rounds of a round's median of the slowest rank.

Beside sendrecv stands half a round trip of libfabric's fi_pingpong over the same providers, with nothing above them: a floor,
which is no competitor, as each message there waits for the one before. --large adds 256 MiB, which takes as long as all others.

MPICH is Debian's (over UCX) and, with --mpich, one that is built over libfabric, such as the one of PyPI's package mpich;
its libfabric, a 2.x, then serves us too.

Debian: apt install libopenmpi-dev openmpi-bin libmpich-dev mpich libgloo-dev libfabric1 libfabric-bin
"""
import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import libraries
import pingpong
from libraries import Setting, Subject
from results import markdown, number, size_text
from run import Failed, progress, run, sizes_in

HERE = pathlib.Path(__file__).parent
SIZES = [8, 1 << 10, 16 << 10, 256 << 10, 2 << 20, 16 << 20, 64 << 20]
LARGE = 256 << 20
OPS = ["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "sendrecv"]
TCP = ("--mca", "pml", "ob1", "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "lo")
SETTINGS = {
    "openmpi": [Setting("btl tcp", TCP),
                Setting("btl tcp, large buffers", (*TCP, "--mca", "btl_tcp_sndbuf", "4194304", "--mca", "btl_tcp_rcvbuf", "4194304")),
                Setting("mtl ofi", ("--mca", "pml", "cm", "--mca", "mtl", "ofi", "--mca", "mtl_ofi_provider_include",
                                    "tcp;ofi_rxm"), {"FI_TCP_IFACE": "lo"})],
    "mpich": [Setting("UCX tcp", environment={"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "lo", "MPIR_CVAR_NOLOCAL": "1"})],
    "gloo": libraries.SETTINGS["gloo"],
}
OVER_FABRIC = Setting("ofi tcp", environment={"MPIR_CVAR_CH4_NETMOD": "ofi", "FI_PROVIDER": "tcp", "FI_TCP_IFACE": "lo",
                                              "MPIR_CVAR_NOLOCAL": "1"})
TITLES = {**libraries.TITLES, "mpich_ofi": "MPICH, ofi", "ours": "ours", "floor": "fi_pingpong"}
PEERS = [name for name in TITLES if name not in ("ours", "floor")]


def ours(build, folder):
    """Over each provider; `folder` has another libfabric."""
    program = build / "bench" / "ccl_peer"

    def command(ranks, op, cores):
        return [*libraries.launched(build, ranks, cores), str(program), op, "malloc"]
    common = {"TRELLIS_TRANSPORT": "libfabric", "TRELLIS_INTERFACE": "lo"}
    found = [Subject("ours", p, command, {**common, "TRELLIS_PROVIDER": p}) for p in ("net", "tcp;ofi_rxm")]
    if folder:
        found.append(Subject("ours", "tcp of 2.x", command, {**common, "TRELLIS_PROVIDER": "tcp", "FI_PROVIDER_PATH":
                                                             f"{folder}/libfabric", "LD_LIBRARY_PATH": str(folder)}))
    return found


def floors(mine):
    """Over the same providers as ours, with the same libraries."""
    if pingpong.absent():
        print(pingpong.absent(), file=sys.stderr)
        return []
    return [Subject("floor", s.setting,
                    lambda ranks, op, cores, s=s: [sys.executable, HERE / "pingpong.py", s.environment["TRELLIS_PROVIDER"]],
                    {**s.environment, "FI_TCP_IFACE": "lo", "FI_NET_IFACE": "lo"}) for s in mine]


def over_fabric(folder, prefix):
    """MPICH below a prefix."""
    program = folder / "mpi_peer.ofi"
    subprocess.run([prefix / "bin" / "mpicc", "-O2", "-o", program, HERE / "mpi_peer.c", f"-Wl,-rpath,{prefix}/lib"],
                   check=True)
    return [Subject("mpich_ofi", OVER_FABRIC.name,
                    lambda ranks, op, cores: [str(prefix / "bin" / "mpiexec"), "-n", str(ranks), str(program), op],
                    OVER_FABRIC.environment)]


def subjects(folder, build, mpich):
    found = ours(build, mpich and mpich / "lib" / "mpich")
    for name in ("openmpi", "mpich", "gloo"):
        start = libraries.gloo(folder, build) if name == "gloo" else libraries.mpi(folder, name)
        if start:
            found += [Subject(name, s.name, start(s), s.environment) for s in SETTINGS[name]]
    return found + (over_fabric(folder, mpich) if mpich else []) + floors([s for s in found if s.library == "ours"])


def environment(subject):
    made = libraries.environment_of(subject, {})
    made.setdefault("OMPI_MCA_hwloc_base_binding_policy", "none")
    return made


def with_blocks(op, ranks, sizes):
    """The sizes of which each rank has a number at least, where an operation's buffer has a block for each."""
    return [s for s in sizes if op in ("all_reduce", "sendrecv") or s >= 4 * ranks]


def compete(every, op, ranks, sizes, rounds):
    """(library, setting) -> size -> the medians of the rounds. A subject that fails is named and left out."""
    cores = sorted(os.sched_getaffinity(0))
    found, failed = {}, set()
    for turn in range(rounds):
        for subject in every:
            who = subject.library, subject.setting
            of = [s for s in sizes if s <= pingpong.MOST] if who[0] == "floor" else sizes
            if who in failed or not of or (who[0] == "floor" and op != "sendrecv"):
                continue
            progress(f"round {turn + 1}: {op} on {ranks}, {TITLES[who[0]]}, {who[1]}")
            try:
                said = run(subject.command(ranks, op, len(cores)), of, environment(subject), cores,
                           seconds=60 if max(of) < LARGE else 240)
            except Failed as error:
                failed.add(who)
                print(f"{TITLES[who[0]]} with '{who[1]}' is left out of {op} on {ranks}: {error}", file=sys.stderr)
                continue
            for size, (middle, *_) in said.items():
                found.setdefault(who, {}).setdefault(size, []).append(middle)
        progress("")
    return found


def best(found, library, size):
    """(us, setting) of the library's fastest setting."""
    of = [(statistics.median(times[size]), who[1]) for who, times in found.items() if who[0] == library and size in times]
    return min(of) if of else None


def table(found, op, ranks, sizes):
    names = [n for n in PEERS if any(who[0] == n for who in found)]
    shown = ["ours", *names, *(["floor"] if any(who[0] == "floor" for who in found) else [])]
    rows = []
    for size in sizes:
        of = {n: best(found, n, size) for n in shown}
        cells = [f"{number(b[0])} ({b[1]})" if b else "-" for b in of.values()]
        fastest = min(of[n][0] for n in names) / of["ours"][0] if names else None
        rows.append([size_text(size), *cells, f"{fastest:.2f}" if fastest else "-"])
    head = [f"{op}, {ranks} ranks", *(TITLES[n] for n in shown), "times faster than the best"]
    return markdown(head, rows)


def ratios(all_found, sizes):
    rows = []
    for (op, ranks), found in all_found.items():
        row = [f"{op}, {ranks} ranks"]
        for size in sizes:
            mine = best(found, "ours", size)
            others = [best(found, n, size) for n in PEERS]
            values = [(o[0] / mine[0], n) for o, n in zip(others, PEERS) if o and mine]
            row.append(f"{min(values)[0]:.2f} ({TITLES[min(values)[1]]})" if values else "-")
        rows.append(row)
    return markdown(["", *map(size_text, sizes)], rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path, help="a build folder")
    parser.add_argument("-n", "--ranks", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--op", nargs="+", default=OPS)
    parser.add_argument("--sizes", type=sizes_in, default=SIZES, help="such as 8,4K,2M")
    parser.add_argument("--large", action="store_true", help="256 MiB as well")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--mpich", type=pathlib.Path, help="prefix of an MPICH over libfabric")
    options = parser.parse_args()
    sizes = sorted({*options.sizes, *([LARGE] if options.large else [])})
    with tempfile.TemporaryDirectory() as folder:
        every = subjects(pathlib.Path(folder), options.build, options.mpich and options.mpich.absolute())
        all_found = {}
        for op in options.op:
            for ranks in options.ranks:
                own = with_blocks(op, ranks, sizes)
                found = compete(every, op, ranks, own, options.rounds)
                if not any(who[0] == "ours" for who in found):
                    sys.exit("fabric.py: our own side failed")
                all_found[op, ranks] = found
                print(table(found, op, ranks, own), end="\n\n", flush=True)
        print(ratios(all_found, sizes))


if __name__ == "__main__":
    main()
