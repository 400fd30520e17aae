"""Jobs that start again after a rank has ended, in a store that the life before has used: the next life trains.

First whole jobs under torchrun, then groups that share a store, whose ranks are threads of this process."""

import concurrent.futures
import contextlib
import os
import random
import socket
import subprocess
import sys
import threading
import time
from datetime import timedelta

import pytest

torch = pytest.importorskip("torch")

import torch.distributed as dist  # noqa: E402

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


LOSES_A_NODE = """
import os, sys, time, torch, torch.distributed as dist
first = sys.argv[1] + "/first life of node " + os.environ["GROUP_RANK"]
again = os.path.exists(first)
dist.init_process_group("trellis")
x = torch.ones(3)
dist.all_reduce(x)
assert x.tolist() == [2] * 3
if not again:
    open(first, "w").close()
    while dist.get_rank() == 0 or not os.path.exists(first.replace("node 1", "node 0")):
        time.sleep(0.1)  # rank 0 computes, until its agent ends it
    os._exit(3)
part = dist.new_group([0, 1])
dist.all_reduce(x, group=part)
dist.send(x, 1) if dist.get_rank() == 0 else dist.recv(x, 0)
assert x.tolist() == [4] * 3
print("trained again as restart", os.environ["TORCHELASTIC_RESTART_COUNT"], flush=True)
dist.destroy_process_group()
"""


@pytest.mark.parametrize("own_store", ["0", "1"], ids=["the agents' store", "a store of its own"])
def test_a_job_of_two_nodes_comes_back(tmp_path, own_store):
    """The agent whose rank has died counts a restart, and the other one does not."""
    script = tmp_path / "loses_a_node.py"
    script.write_text("import trellis.torch\n" + LOSES_A_NODE)
    port = at_a_free_port()[-1]
    command = [sys.executable, "-m", "torch.distributed.run", "--nnodes", "2", "--nproc-per-node", "1",
               "--max-restarts", "1", "--rdzv-backend", "c10d", "--rdzv-endpoint", f"127.0.0.1:{port}",
               str(script), str(tmp_path)]  # fmt: skip
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": own_store}
    agents = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
        for _ in range(2)
    ]
    said = [agent.communicate(timeout=400) for agent in agents]
    assert [agent.returncode for agent in agents] == [0, 0], said
    assert sorted(out for out, _ in said) == [f"trained again as restart {count}\n" for count in (0, 1)], said


def join(store, rank, ranks, timeout=60.0):
    """This rank's part of a new group. Ranks may be threads of this process."""
    options = dist.distributed_c10d._DistributedBackendOptions()
    options.store, options.group_rank, options.group_size = store, rank, ranks
    options.timeout, options.group_id = timedelta(seconds=timeout), "a group"
    options.global_ranks_in_group = list(range(ranks))
    return trellis.torch.process_group_module().create(options, None)


class Joining:
    """Ranks that join, each in a thread."""

    def __init__(self, store, ranks):
        self.store, self.ranks = store, ranks
        self.threads = concurrent.futures.ThreadPoolExecutor(8)

    def begin(self, rank):
        return self.threads.submit(join, self.store, rank, self.ranks)

    def expect_group(self, joining):
        """They have joined the same group: its sum is right."""
        groups = [one.result(timeout=60) for one in joining]
        numbers = [torch.full((4,), 10.0**group.rank()) for group in groups]
        for work in [group.allreduce([x]) for group, x in zip(groups, numbers, strict=True)]:
            work.wait()
        assert [x[0].item() for x in numbers] == [sum(10.0**rank for rank in range(self.ranks))] * self.ranks
        list(self.threads.map(lambda group: group.shutdown(), groups))


def await_key(store, name):
    """HashStore.wait() sleeps on where the key is a counter."""
    end = time.monotonic() + 60
    while not store.check([name]):
        assert time.monotonic() < end, name
        time.sleep(0.01)


def stores(tmp_path):
    """Each kind, as it is for two processes: what it returns at each call is another one's view of the store."""
    of_hash, port = dist.HashStore(), []

    def tcp():
        store = dist.TCPStore("127.0.0.1", port[0] if port else 0, is_master=not port)
        port.append(store.port)
        return store

    return {"hash": lambda: of_hash, "file": lambda: dist.FileStore(str(tmp_path / "store"), -1), "tcp": tcp}


@pytest.mark.parametrize("kind", ["hash", "file", "tcp"])
def test_lives_one_after_another(tmp_path, kind):
    """Also with another number of ranks, and with another that comes first."""
    view = stores(tmp_path)[kind]
    kept = view()  # the server of a TCP store
    for order in ([0, 1], [1, 0], [2, 0, 1], [0], [1, 2, 0], [0, 1]):
        joining = Joining(dist.PrefixStore("a prefix", view()), len(order))
        begun = []
        for rank in order:
            begun.append(joining.begin(rank))
            time.sleep(0.05)  # so that they mostly come in this order; any is right
        joining.expect_group(begun)
    del kept


@pytest.mark.parametrize("last", [0, 1])
def test_lives_that_did_not_come_about(last):
    store = dist.HashStore()
    for _ in range(3):
        with pytest.raises(dist.DistBackendError, match="lost rank 0: rank 0 did not join in time"):
            join(store, 1, 2, timeout=0.1)
        with pytest.raises(dist.DistBackendError, match="lost rank 1: rank 1 did not join in time"):
            join(store, 0, 2, timeout=0.1)
    joining = Joining(store, 2)
    joining.expect_group([joining.begin(1 - last), joining.begin(last)])


def test_a_rank_zero_of_an_earlier_life_is_told_of_the_later_one():
    joining = Joining(dist.HashStore(), 2)
    old = joining.begin(0)
    await_key(joining.store, "life 1/group/here/0")
    new = joining.begin(0)
    with pytest.raises(dist.DistBackendError, match="another process has joined as rank 0"):
        old.result(timeout=60)
    joining.expect_group([new, joining.begin(1)])


def test_a_rank_that_comes_twice_gets_another_life():
    """The first has died while the ranks joined; the others give up that life, and start again, too."""
    joining = Joining(dist.HashStore(), 3)
    first = [joining.begin(rank) for rank in (0, 1)]
    await_key(joining.store, "life 1/group/here/1")
    again = joining.begin(1)
    for one in first:
        with pytest.raises(dist.DistBackendError, match="lost rank 1: two processes have joined as rank 1:"):
            one.result(timeout=60)
    joining.expect_group([again, joining.begin(2), joining.begin(0)])


def test_a_rank_that_comes_twice_waits_no_longer_than_its_timeout():
    joining = Joining(dist.HashStore(), 2)
    group = [joining.begin(0), joining.begin(1)]
    joining.expect_group(group)
    with pytest.raises(dist.DistBackendError, match="lost rank 0: rank 0 did not join in time"):
        join(joining.store, 1, 2, timeout=0.2)


def test_a_store_that_holds_something_else():
    store = dist.HashStore()
    store.set("life", "a life")
    with pytest.raises(ValueError, match="has 'a life' as life, expected two numbers"):
        join(store, 1, 2)


def test_numbers_of_ranks_that_differ():
    store = dist.HashStore()
    said = {}

    def come(rank, ranks):
        with pytest.raises(ValueError) as caught:
            join(store, rank, ranks)
        said[rank] = str(caught.value)

    threads = [threading.Thread(target=come, args=given) for given in ((0, 2), (2, 3))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all("2 ranks" in text and "3 ranks" in text for text in (said[0], said[2])), said
