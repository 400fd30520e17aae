"""Torch's flight recorder: what is recorded, what its own reader says of it, and that failures write it."""

import os
import pickle
import signal
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

import torch.distributed as dist  # noqa: E402

import ranks  # noqa: E402
import trellis.torch  # noqa: E402


def every_operation(rank, size):
    x, large = torch.ones(4), torch.ones(4 * size)
    blocks = [torch.ones(4) for _ in range(size)]
    dist.all_reduce(x)
    dist.broadcast(x, 0)
    dist.all_gather(blocks, x)
    dist.all_gather_into_tensor(large, x)
    dist.reduce_scatter_tensor(x, large)
    dist.reduce_scatter(x, blocks)
    dist.all_to_all_single(torch.empty(size), torch.ones(size))
    dist.all_to_all([torch.empty(1)] * size, [torch.ones(1)] * size)
    dist.gather(x, blocks if rank == 0 else None)
    dist.scatter(x, blocks if rank == 0 else None)
    dist.all_reduce(x, group=dist.new_group([0, 1]))
    dist.barrier()


def fly(rank, size, folder):
    os.environ["TORCH_FR_BUFFER_SIZE"] = "20"
    every_operation(rank, size)
    trace = trellis.torch.flight_trace()
    with open(f"{folder}/t_{rank}", "wb") as file:
        pickle.dump(trace, file)
    for _ in range(30):
        dist.all_reduce(torch.ones(1))
    return trace, len(trellis.torch.flight_trace()["entries"])


def read(folder):
    words = [sys.executable, "-m", "torch.distributed.flight_recorder.fr_trace", str(folder), "--prefix", "t_"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def test_torch_reads_the_flights(tmp_path):
    for trace, kept in ranks.run(fly, 2, str(tmp_path)):
        assert kept == 20
        assert {entry["state"] for entry in trace["entries"]} == {"completed"}
        assert [group["ranks"] for group in trace["pg_config"].values()] == ["[0, 1]", "[0, 1]"]
        assert trace["entries"][0]["profiling_name"] == "nccl:all_reduce"
        assert any(frame["name"] == "every_operation" for frame in trace["entries"][0]["frames"])
    assert "ranks" not in read(tmp_path)

    with open(tmp_path / "t_1", "rb") as file:
        trace = pickle.load(file)
    assert trace["entries"].pop()["profiling_name"] == "nccl:barrier"
    with open(tmp_path / "t_1", "wb") as file:
        pickle.dump(trace, file)
    said = read(tmp_path)
    assert "nccl:barrier" in said and "missing ranks: {1}" in said, said


def die(rank, size, folder):
    os.environ.update(TORCH_FR_BUFFER_SIZE="20", TORCH_FR_DUMP_TEMP_FILE=f"{folder}/t_")
    ranks.meet(rank, size)
    if rank == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    with pytest.raises(dist.DistBackendError):
        dist.all_reduce(torch.ones(8))


def test_a_failure_writes_them(tmp_path):
    ranks.run(die, 3, str(tmp_path), lost=(2,))
    assert sorted(os.listdir(tmp_path)) == ["t_0", "t_1"]
    for name in ("t_0", "t_1"):
        with open(tmp_path / name, "rb") as file:
            last = pickle.load(file)["entries"][-1]
        assert (last["input_sizes"], last["state"], last["retired"]) == ([[8]], "started", True)


def test_without_a_size_there_are_none():
    assert "TORCH_FR_BUFFER_SIZE" not in os.environ
    with pytest.raises(RuntimeError, match="set TORCH_FR_BUFFER_SIZE"):
        trellis.torch.flight_trace()


def recorded_in_detail(rank, size):
    dist.all_reduce(torch.ones(4))
    assert type(dist.group.WORLD._get_backend(torch.device("cpu"))).__name__ == "_ProcessGroupWrapper"
    return trellis.torch.flight_record()


def test_debugging_in_detail_hides_no_record(monkeypatch):
    monkeypatch.setenv("TORCH_DISTRIBUTED_DEBUG", "DETAIL")
    dist.set_debug_level_from_env()
    try:
        assert all("all_reduce" in record for record in ranks.run(recorded_in_detail, 2))
    finally:
        monkeypatch.undo()
        dist.set_debug_level_from_env()


def of_gloo(rank, size):
    with pytest.raises(ValueError, match="gloo, which keeps no record"):
        trellis.torch.flight_record()


def test_only_trellis_keeps_a_record():
    ranks.run(of_gloo, 1, backend="gloo")
