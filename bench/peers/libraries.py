"""The libraries that run.py holds ours against: how each is built and started, and the settings that it is tried with.

A setting is here because it was the fastest at some size and operation on some machine, and is one that a user would find in
the library's own documents. At each size a library counts with the one that served it best there.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
from typing import NamedTuple

HERE = pathlib.Path(__file__).parent


class Setting(NamedTuple):
    name: str
    words: tuple = ()  # launcher arguments
    environment: dict = {}


AS_INSTALLED = Setting("as installed")
NO_SINGLE_COPY = ("--mca", "btl_vader_single_copy_mechanism", "none")
SETTINGS = {
    # Open MPI's coll/sm (coll_sm_priority) was slower at every size of every operation.
    "openmpi": [
        AS_INSTALLED,
        Setting("no single copy", NO_SINGLE_COPY),
        Setting("no single copy, 64 KiB fragments",
                (*NO_SINGLE_COPY, "--mca", "btl_vader_eager_limit", "65536", "--mca", "btl_vader_max_send_size", "65536",
                 "--mca", "btl_vader_rndv_eager_limit", "65536")),
        Setting("pml ucx", ("--mca", "pml", "ucx", "--mca", "pml_ucx_tls", "any", "--mca", "pml_ucx_devices", "any")),
    ],
    # Debian's build uses UCX even within a host.
    "mpich": [
        AS_INSTALLED,
        Setting("no single copy", environment={"UCX_TLS": "posix,self"}),
        Setting("no rendezvous", environment={"UCX_RNDV_THRESH": "inf"}),
    ],
    "gloo": [Setting("ring", environment={"GLOO_ALGORITHM": "ring"}),
             Setting("bcube", environment={"GLOO_ALGORITHM": "bcube"})],
}
TITLES = {"openmpi": "Open MPI", "mpich": "MPICH", "gloo": "Gloo"}


class Subject(NamedTuple):
    """One line of the competition: a library with a setting, or ours with one sort of memory."""
    library: str
    setting: str
    command: object  # (ranks, op, cores) -> command line without sizes
    environment: dict = {}


def launched(build, ranks, cores, pinned=True):
    pin = ["--pin"] if pinned and ranks <= cores else []
    return [str(build / "trellis"), "launch", "--raw", "-n", str(ranks), *pin, "--"]


def ours(build, memory):
    program = build / "bench" / "ccl_peer"
    return Subject("ours", memory, lambda ranks, op, cores: [*launched(build, ranks, cores), str(program), op, memory])


def gloo(folder, build):
    if not pathlib.Path("/usr/include/gloo").exists():
        return None
    program = folder / "gloo_peer"
    subprocess.run(["g++", "-O2", "-o", program, HERE / "gloo_peer.cpp", "-lgloo", "-lpthread"], check=True)

    def command(ranks, op, cores):
        # Gloo's ranks rendezvous in a folder, which must be new each time. Each has a second thread, so none is pinned.
        return [*launched(build, ranks, cores, pinned=False), str(program), tempfile.mkdtemp(dir=folder), op]
    return lambda setting: command


def mpi(folder, name):
    compiler, launcher = shutil.which(f"mpicc.{name}"), shutil.which(f"mpirun.{name}")
    if not compiler or not launcher:
        return None
    program = folder / f"mpi_peer.{name}"
    if subprocess.run([compiler, "-O2", "-o", program, HERE / "mpi_peer.c"], capture_output=True).returncode != 0:
        print(f"{name} is left out: mpicc.{name} can't compile (its headers are in lib{name}-dev)", file=sys.stderr)
        return None

    def command(setting, ranks, op, cores):
        words = [launcher, "-n", str(ranks), *setting.words]
        if name == "openmpi":
            words += ["--allow-run-as-root"]
            words += ["--oversubscribe", "--mca", "mpi_yield_when_idle", "1"] if ranks > cores else ["--bind-to", "core"]
        elif ranks <= cores:
            words += ["-bind-to", "core"]
        return [*words, str(program), op]
    return lambda setting: lambda ranks, op, cores: command(setting, ranks, op, cores)


def installed(folder, build, wanted):
    """The libraries among the wanted that are installed, each as a list of subjects."""
    found = {}
    for name in wanted:
        start = gloo(folder, build) if name == "gloo" else mpi(folder, name)
        if start:
            found[name] = [Subject(name, s.name, start(s), s.environment) for s in SETTINGS[name]]
    return found


def settings_that_work(subjects, runs):
    """Without those that the machine's library does not know, which are named; `runs` tries a subject."""
    kept = []
    for subject in subjects:
        trouble = runs(subject)
        if trouble is None:
            kept.append(subject)
        else:
            print(f"{TITLES[subject.library]} with '{subject.setting}' is left out: {trouble}", file=sys.stderr)
    return kept


def environment_of(subject, together):
    return dict(os.environ, **together, **subject.environment, OMPI_ALLOW_RUN_AS_ROOT="1",
                OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
