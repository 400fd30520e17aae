"""Recordings of jobs: what they say, and that they are priced."""

import os
import re
import time
from datetime import timedelta

import pytest

torch = pytest.importorskip("torch")

import torch.distributed as dist  # noqa: E402

import ranks  # noqa: E402
from trellis import recorded, sim  # noqa: E402


def late_job(rank, size):
    begun = time.monotonic_ns()
    store = dist.distributed_c10d._get_default_store()
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(500, 500))
    for turn in range(3):
        if rank == 0:
            store.set(f"turn {turn}", "")
        else:
            store.wait([f"turn {turn}"], timedelta(seconds=60))
            time.sleep(0.5)
        model(torch.ones(8, 500)).sum().backward()
        dist.barrier()
    return time.monotonic_ns() - begun


def test_what_a_rank_waits_for_is_no_computation(tmp_path, monkeypatch):
    monkeypatch.setenv("TRELLIS_RECORD", str(tmp_path))
    took = ranks.run(late_job, 2)
    lines = recorded.workload(tmp_path).splitlines()
    computed = sum(int(re.search(r" (\d+)ns", line)[1]) for line in lines if line.startswith("compute"))
    # The mean of a rank that computes for 1.5 s, and one that waits for it, most of that time at least.
    assert 0.75e9 <= computed < sum(took) / 2 - 0.25e9, (computed, took, lines)
    sums = [line.split()[1] for line in lines if line.startswith("all_reduce")]
    last = next(i for i, line in enumerate(lines) if line.startswith("barrier"))
    assert any(re.search(rf"after .*\b{sums[0]}\b", line) for line in lines[:last + 1]), lines


def anysource_job(rank, size):
    x = torch.ones(1000)
    if rank == 0:
        dist.recv(x)
    else:
        dist.send(x, 0)
    dist.barrier()


def test_a_receive_from_any_rank_is_recorded(tmp_path, monkeypatch):
    monkeypatch.setenv("TRELLIS_RECORD", str(tmp_path))
    ranks.run(anysource_job, 2)
    assert "from 1 to 0" in recorded.workload(tmp_path)


def barrier_job(rank, size):
    dist.barrier()


def test_a_recording_is_readable_by_its_owner_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("TRELLIS_RECORD", str(tmp_path))
    before = os.umask(0)
    try:
        ranks.run(barrier_job, 2)
    finally:
        os.umask(before)
    assert {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {
        "rank0.jsonl": 0o600, "rank1.jsonl": 0o600,
    }  # fmt: skip


def sparse_job(rank, size):
    dense = torch.zeros(100, 8)
    dense[rank : 2 * rank + 3] = 1  # 3 rows, and 4
    dist.all_reduce(dense.to_sparse(1))
    time.sleep(0.01)
    dist.all_reduce(torch.ones(500))


def test_a_sparse_sum_is_recorded_as_what_it_is_made_of(tmp_path, monkeypatch):
    monkeypatch.setenv("TRELLIS_RECORD", str(tmp_path))
    ranks.run(sparse_job, 2)
    text = recorded.workload(tmp_path)
    counts, rows, values = re.findall(r"all_gather (\w+) (\d+)B(.*)", text)
    assert [int(bytes) for _, bytes, _ in (counts, rows, values)] == [2 * 8, 2 * 4 * 8, 2 * 4 * 8 * 4], text
    assert f"after {counts[0]}" in rows[2] and f"after {rows[0]}" in values[2], text
    assert re.search(rf"compute \w+ \d+ns after {values[0]}", text) and " 2000B" in text, text
    assert sim.play(text, "trn2.48xlarge").time > 0.01


def recorded_job(rank, size, folder):
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(500, 500))
    for _ in range(3):
        model(torch.ones(8, 500)).sum().backward()
    if rank == 0:
        dist.send(torch.ones(1000), 1)
    if rank == 1:
        dist.recv(torch.ones(1000), 0)
    dist.barrier()


def test_a_recorded_job_is_priced(tmp_path, monkeypatch):
    monkeypatch.setenv("TRELLIS_RECORD", str(tmp_path))
    ranks.run(recorded_job, 2, str(tmp_path))
    text = recorded.workload(tmp_path)
    assert text.count("all_reduce") >= 3 and "1002000B" in text and "send_recv" in text and "compute" in text, text
    played = sim.play(text, "trn2.48xlarge")
    slower = sim.play(recorded.workload(tmp_path, compute=3), "trn2.48xlarge")
    assert 0 < played.time < slower.time
    with pytest.raises(ValueError, match="not among all"):
        recorded.workload(tmp_path, ranks=64)
    (tmp_path / "rank1.jsonl").unlink()
    with pytest.raises(ValueError, match=r"ranks \[0\], expected 0 to 1"):
        recorded.workload(tmp_path)


def test_what_is_wrong_of_a_recording_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"nowhere is no folder: expected .* TRELLIS_RECORD="):
        recorded.workload(tmp_path / "nowhere")
    with pytest.raises(ValueError, match=rf"{tmp_path} has no recordings: expected .* TRELLIS_RECORD="):
        recorded.workload(tmp_path)
    head = '{"trellis":"recording 2","rank":0,"ranks":1}\n'
    for cut, said in (('\n{"begins":1', "rank0.jsonl:3: .* at column .*: expected a whole line"), ("12", "2: '12': ")):
        (tmp_path / "rank0.jsonl").write_text(head + cut)
        with pytest.raises(ValueError, match=said):
            recorded.workload(tmp_path)


@pytest.mark.parametrize("option", ["--compute=-1", "--compute=nan", "--compute=inf", "--ranks=-1"])
def test_a_factor_that_is_none_is_refused(option, tmp_path, monkeypatch):
    (tmp_path / "rank0.jsonl").write_text('{"trellis":"recording 2","rank":0,"ranks":1}\n')
    monkeypatch.setattr("sys.argv", ["recorded", str(tmp_path), option])
    with pytest.raises(SystemExit, match=f"{option.split('=')[0]} -?[a-z1.0]+: expected"):
        recorded.main()
