"""Schedules from Python: built by moves, proved, run on arrays, and refused where they are wrong."""

import pathlib
import pickle

import numpy as np
import pytest

from trellis import _native, schedule


def ring(n, **more):
    b = schedule.Builder("all_reduce", n, pieces=n, **more)
    for step in range(n - 1):
        b.round()
        for r in range(n):
            b[(r + 1) % n, (r - step) % n] += b[r, (r - step) % n]
    for step in range(n - 1):
        b.round()
        for r in range(n):
            b[(r + 1) % n, (r + 1 - step) % n] = b[r, (r + 1 - step) % n]
    return b.finish("ring")


@pytest.mark.parametrize("n", range(1, 9))
def test_a_ring_built_by_moves(n):
    s = ring(n)
    assert s.verify(), s.verify().text
    inputs = [np.arange(37, dtype=np.int32) * (r + 1) for r in range(n)]
    for out in s.run(inputs):
        assert np.array_equal(out, sum(inputs))


def test_a_sum_may_have_a_name():
    b = schedule.Builder("all_reduce", 2)
    place = b[1, 0]
    place += b[0, 0]
    b[0, 0] = place  # another place than that of the sum: a move
    s = b.finish()
    assert s.verify(), s.verify().text


def test_a_missing_move_is_found():
    b = schedule.Builder("all_reduce", 2, pieces=2)
    b[1, 0] += b[0, 0]
    b[0, 1] += b[1, 1]
    b[0, 0] = b[1, 0]
    proof = b.finish().verify()
    assert not proof and "rank 1" in proof.text, proof.text


@pytest.mark.parametrize("collective", ["all_gather", "reduce_scatter", "all_to_all", "broadcast", "gather", "scatter"])
def test_collectives_run_on_arrays(collective):
    n, count = 4, 6
    known = [name for name, a in schedule.algorithms().items() if collective in a["serves"]]
    for config in known:
        try:
            s = schedule.algorithm(config, collective, n)
        except ValueError:
            continue
        whole = collective in ("reduce_scatter", "all_to_all", "scatter")
        inputs = [np.arange(count * (n if whole else 1)) + 1000.0 * r for r in range(n)]
        outputs = s.run(inputs)
        for r, out in enumerate(outputs):
            want = wanted(collective, [x.reshape(-1, count) for x in inputs], r)
            assert want is None or np.array_equal(out, want), (config, r)


def wanted(collective, blocks, rank):
    if collective == "reduce_scatter":
        return sum(b[rank] for b in blocks)
    if collective == "all_to_all":
        return np.concatenate([b[rank] for b in blocks])
    if collective == "broadcast":
        return blocks[0].ravel()
    if collective == "scatter":
        return blocks[0][rank]
    return np.concatenate(blocks).ravel() if collective == "all_gather" or rank == 0 else None


@pytest.mark.parametrize("config", ["ring", "direct", "pairwise"])
def test_blocks_of_sizes_of_their_own(config):
    sizes, n = [3, 0, 5, 1], 4
    blocks = [np.arange(size, dtype=np.float32) + 10 * r for r, size in enumerate(sizes)]
    for out in schedule.algorithm(config, "all_gather_v", n).run(blocks):
        assert (out == np.concatenate(blocks)).all()
    whole = [np.arange(9, dtype=np.float32) * (r + 1) for r in range(n)]
    outs = schedule.algorithm(config, "reduce_scatter_v", n).run(whole, counts=sizes)
    assert [out.size for out in outs] == sizes and (np.concatenate(outs) == np.arange(9) * 10).all()


def test_blocks_from_each_to_each():
    counts = np.array([[1, 2, 0], [4, 0, 3], [2, 2, 2]])
    inputs = [np.arange(row.sum(), dtype=np.int64) + 100 * r for r, row in enumerate(counts)]
    outs = schedule.algorithm("pairwise", "all_to_all_v", 3).run(inputs, counts=counts)
    cut = [np.split(array, np.cumsum(row)[:-1]) for array, row in zip(inputs, counts, strict=True)]
    for r, out in enumerate(outs):
        assert (out == np.concatenate([blocks[r] for blocks in cut])).all()


def test_permute():
    swap = schedule.algorithm("direct", "permute", 3, pairs=[(0, 1), (1, 0), (2, 2)])
    assert [out[0] for out in swap.run([np.full(2, 5 + r) for r in range(3)])] == [6, 5, 7]
    b = schedule.Builder("permute", 2, pairs=[(0, 1)])
    b.output[1, 0] = b.input[0, 0]
    assert b.finish().verify()


def test_text_and_files(tmp_path):
    s = schedule.algorithm("ring*2", "all_reduce", 4)
    for name in ("ring.txt", "ring.xml"):
        path = pathlib.Path(tmp_path, name)
        s.save(path)
        assert schedule.read(path).verify()
    in_one_line = pathlib.Path(tmp_path, "ring.xml").read_text().replace("\n", "")
    assert schedule.read(in_one_line).text == schedule.read(pathlib.Path(tmp_path, "ring.xml")).text
    assert schedule.read(s.text).text == s.text == pickle.loads(pickle.dumps(s)).text
    assert s.draw().lstrip().startswith(("<?xml", "<svg"))


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda: schedule.algorithm("rign", "all_reduce", 4), "rign"),
        (lambda: schedule.algorithm("ring", "all_redcue", 4), "all_redcue"),
        (lambda: schedule.Builder("all_reduce", 0), "0"),
        (lambda: schedule.Builder("all_reduce", 2)[5, 0].__iadd__(schedule.Builder("all_reduce", 2)[0, 0]), "rank 5"),
        (lambda: schedule.read("trellis schedule 1\nnonsense\n"), "line 2"),
        (lambda: schedule.read('{"name": "sample", "gpus": []}'), "plan"),
        (lambda: ring(2).run([np.zeros(3)]), "1 arrays, expected 2"),
        (lambda: ring(2).run([np.zeros(3), np.zeros(4)]), "expected one size"),
        (lambda: ring(2).run([np.zeros(3), np.zeros(3)], counts=[1, 2]), "all_reduce takes no counts"),
        (lambda: ring(2).run([np.zeros(3, np.float32)] * 2, dtype="f64"), r"float32 \(4 bytes.* as f64 \(8 bytes\)"),
        (lambda: ring(2).run([np.zeros(3, np.float16)] * 2, dtype="bf16"), "float16 as bf16.*uint16"),
        (lambda: ring(2).run([np.zeros(3, np.float32)] * 2, dtype="f31"), "known are f64"),
        (lambda: ring(2).run([np.zeros(3, ">f4")] * 2), ">f4"),
        (lambda: ring(2).run([np.zeros(3), np.zeros(3, np.float32)]), "expected one type"),
        (lambda: schedule.algorithm("ring", "reduce_scatter_v", 2).run([np.zeros(3)] * 2), "needs counts"),
        (lambda: schedule.algorithm("ring", "reduce_scatter_v", 2).run([np.zeros(3)] * 2, counts=[1, 1]), "the sum 3"),
        (lambda: schedule.algorithm("direct", "all_to_all_v", 2).run([np.zeros(3)] * 2, counts=[[3]]), "2 rows of 2"),
    ],
)
def test_mistakes_are_named(wrong, says):
    with pytest.raises(ValueError, match=says):
        wrong()


def test_arrays_that_are_too_small_are_refused():
    small, large = ([np.zeros(size) for _ in range(2)] for size in (3, 4))
    native = ring(2)._native
    with pytest.raises(ValueError, match="the input of rank 0 has 24 bytes, the call touches 32"):
        _native.run_schedule(native, small, large, 4, "f64")
    with pytest.raises(ValueError, match="the output of rank 0 has 24 bytes, the call touches 32"):
        _native.run_schedule(native, large, small, 4, "f64")


def test_arrays_with_gaps_are_copied():
    wide = np.arange(12, dtype=np.float32)
    for out in ring(2).run([wide[::2], wide[1::2]]):
        assert np.array_equal(out, wide[::2] + wide[1::2])


def test_narrow_types():
    bits = np.full(5, 0x3F80, np.uint16)  # 1.0 in bf16
    for out in ring(2).run([bits, bits], dtype="bf16"):
        assert (out == 0x4000).all()
    for out in ring(2).run([np.full(5, 3.0), np.full(5, 5.0)], op="max"):
        assert (out == 5).all()
