"""One of each kind of picture and page that the program makes. What is priced is small: it is the drawing that matters."""
import os
import pathlib
import subprocess

import program

SOURCE = pathlib.Path(os.environ["TRELLIS_SOURCE_DIR"])
# Two packages of caches and cores, as hwloc describes them.
HOST = "package:2 l3:2 l2:2 l1d:1 core:1 pu:2"

# By the file's name: the words before it.
COMMANDS = {
    "machine.svg": ["topo", "draw", "trn2.48xlarge", "-o"],
    "machines.svg": ["topo", "draw", "trn2.48xlarge x 4", "-o"],
    "torus.svg": ["topo", "draw", "torus:4x4x4", "-o"],
    "fat_tree.svg": ["topo", "draw", "fattree:4x8x16", "-o"],
    "dragonfly.svg": ["topo", "draw", "dragonfly:4x8x33", "-o"],
    "broken.svg": ["topo", "draw", "ring:8", "--what-if", "dead:0-1", "-o"],
    "host.svg": ["topo", "draw", "-n", "6", "-o"],
    "ring.svg": ["schedule", "draw", "all_reduce", "-a", "ring", "-d", "4", "-o"],
    "crossover.svg": ["machine", "tune", "torus:2x2x2", "--collectives", "all_reduce", "--algorithms",
                      "hierarchical,ring,direct", "--sizes", "1KB..1MB", "--published", "direct:0,ring:512KB", "--chart"],
    "bandwidth.svg": ["bench", "all_reduce", "--ranks", "2", "-b", "8", "-e", "1K", "-f", "4", "-n", "2", "--plot"],
    "loss.svg": ["train", "curve", "{runs}", "-o"],
    "pipeline.svg": ["train", "draw", str(SOURCE / "examples" / "llama.yaml"), "-o"],
    "pipeline.html": ["train", "draw", str(SOURCE / "examples" / "llama.yaml"), "-o"],
    "stages.html": ["train", "draw", str(SOURCE / "examples" / "llama.yaml"), "--ranks", "4", "--set",
                    "distributed_strategy.pipeline_model_parallel_size=4", "-o"],
    "degraded.html": ["sim", "all_gather", "-m", "torus:2x2x2", "-b", "1MB", "--what-if", "slow:0-1:0.5", "-o"],
    "collective.html": ["sim", "all_reduce", "-m", "trn2.48xlarge", "-b", "1MB", "-a", "ring", "-o"],
    "step.html": ["sim", str(SOURCE / "examples" / "step.txt"), "-a", "ring", "-o"],
    "roofline.html": ["core", "profile", "matmul", "-o"],
    "core.html": ["core", "profile", "reduce", "--chip", "trn2", "-p", "n=65536", "-p", "sources=2", "-o"],
}
PICTURES = [name for name in COMMANDS if name.endswith(".svg")]


def make(name, folder):
    """Makes it, and gives its path."""
    runs = folder / "runs"
    runs.mkdir(exist_ok=True)
    (runs / "metrics.csv").write_text("step,loss\n" + "".join(f"{s},{8 / (s + 1)}\n" for s in range(20)))
    words = [str(runs) if word == "{runs}" else word for word in COMMANDS[name]]
    environment = {"HWLOC_SYNTHETIC": HOST} if name == "host.svg" else {}
    ran = program.trellis(*words, folder / name, timeout=300, stdin=subprocess.DEVNULL, **environment)
    assert ran.returncode == 0, (words, ran.returncode, ran.stderr)
    return folder / name
