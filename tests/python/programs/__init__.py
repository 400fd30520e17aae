"""What tests start as programs of their own: scripts by torchrun, and scripts where the package is installed."""

import os
import pathlib
import subprocess
import sys
import tomllib

import trellis

_ABORTED = "terminate called without an active exception"


def torchrun(ranks, *words, options=("--standalone",), over_gloo=False):
    """A script with its arguments on ranks of this host, as it ended.

    Up to a third of jobs over gloo abort as they end, all their work done: `over_gloo`, the script runs again then.
    """
    command = [sys.executable, "-m", "torch.distributed.run", *options, "--nproc-per-node", ranks, *words]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    for _ in range(12 if over_gloo else 1):
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=600, env=environment)
        if done.returncode == 0 or _ABORTED not in done.stderr:
            break
    return done


def installed(site):
    """An environment where the package has the metadata of an installation, with pyproject.toml's entry points, in the
    new folder `site`."""
    project = tomllib.loads((pathlib.Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]
    info = site / f"{project['name']}-{project['version']}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    lines = [f"{name} = {where}" for name, where in project["entry-points"]["torch.backends"].items()]
    (info / "entry_points.txt").write_text("\n".join(["[torch.backends]", *lines, ""]))
    paths = [str(site), str(pathlib.Path(trellis.__file__).parents[1])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
