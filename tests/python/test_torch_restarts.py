"""Jobs that torchrun starts again after a rank has ended: the next life of the job trains."""

import contextlib
import os
import random
import socket
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

import programs  # noqa: E402
import trellis.torch  # noqa: E402

trellis.torch.prepare()

TRAINS = """
import os, torch, torch.distributed as dist
dist.init_process_group("trellis")
rank, life = dist.get_rank(), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
x = torch.ones(3)
dist.all_reduce(x)
if rank == 0:
    dist.send(x, 1)
else:
    dist.recv(x, 0)
assert x.tolist() == [2] * 3
if life < 2 and rank == life:
    os._exit(1)
dist.barrier()
half = dist.new_group([rank], use_local_synchronization=True)
dist.all_reduce(x, group=half)
print(f"trained in life {life}\\n", end="")  # in one write, as torchrun's ranks share their output
dist.destroy_process_group()
"""


def at_a_free_port():
    """torchrun tells its ranks the port that it is given: 0 would be no place to meet. It binds it seconds later; one
    below 32768 is not given meanwhile to somebody who binds 0."""
    while True:
        port = random.randrange(10000, 32768)
        with socket.socket() as free, contextlib.suppress(OSError):
            free.bind(("", port))
            return ["--master-addr", "127.0.0.1", "--master-port", str(port)]


@pytest.mark.parametrize("rendezvous", [lambda: ["--standalone"], at_a_free_port], ids=["c10d", "static"])
def test_a_job_comes_back(tmp_path, rendezvous):
    script = tmp_path / "trains.py"
    script.write_text("import trellis.torch\n" + TRAINS)
    ran = programs.torchrun(2, script, options=[*rendezvous(), "--max-restarts", "2"])
    assert ran.returncode == 0 and ran.stdout.count("trained in life 2\n") == 2, ran.stdout + ran.stderr[-3000:]


LIVES = """
import os, sys, torch, torch.distributed as dist
import trellis.torch
rank, folder = int(sys.argv[1]), sys.argv[2]
dist.init_process_group("trellis", store=dist.FileStore(folder + "/store", 5), rank=rank, world_size=2)
dist.barrier()
dist.destroy_process_group()
"""


def lives(folder, **environment):
    """What two ranks said that meet in a store of this folder, which stays."""
    plain = {name: value for name, value in os.environ.items() if name != "TORCHELASTIC_RESTART_COUNT"}
    words = [[sys.executable, "-c", LIVES, str(rank), str(folder)] for rank in range(2)]
    started = [subprocess.Popen(w, stderr=subprocess.PIPE, text=True, env={**plain, **environment}) for w in words]
    return [process.communicate(timeout=400)[1] for process in started]


def test_a_store_that_served_others_before(tmp_path):
    """Its users are told how lives are told apart."""
    assert lives(tmp_path) == ["", ""]
    for said in lives(tmp_path):
        assert "has joined already" in said and "TORCHELASTIC_RESTART_COUNT" in said, said
    assert lives(tmp_path, TORCHELASTIC_RESTART_COUNT="1") == ["", ""]
