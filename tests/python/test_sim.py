"""Prices, machines, workloads and core programs from Python, held against the program `trellis`."""

import json
import os
import pathlib
import pickle
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import Executor, ThreadPoolExecutor

import numpy as np
import pytest

from trellis import core, schedule, sim
from trellis._where import PROGRAM


def asked(*words):
    return json.loads(subprocess.run([PROGRAM, *words, "--json"], capture_output=True, text=True, check=True).stdout)


@pytest.mark.parametrize("config", ["ring*2", "rdh", ""])
def test_prices_are_the_programs(config):
    words = ["sim", "all_reduce", "-m", "trn2.48xlarge", "-b", "1MiB", *(["-a", config] if config else [])]
    told = asked(*words)
    p = sim.price("all_reduce", "trn2.48xlarge", "1MiB", config=config)
    times = json.dumps(told)
    assert str(round(p.time * 1e12)) in times, (p, times[:400])
    assert p.interval.low <= p.time <= p.interval.high and p.interval.sensitivities
    assert p.bounds.most <= p.time


def test_what_explains_a_price():
    p = sim.price("all_reduce", "trn2.48xlarge", "16MiB", config="ring")
    assert abs(sum(leg.time for leg in p.path) - p.time) < 1e-9
    assert len(p.links.names) == len(p.links.bytes) == len(p.links.rate) == len(p.links.busy)
    assert (p.links.busy > 0).all() and p.links.busy.max() <= 1 + 1e-9
    assert p.path_words and p.busiest


def test_a_schedule_of_ones_own_is_priced():
    s = schedule.algorithm("ring", "all_reduce", 64)
    mine = sim.price(s, "trn2.48xlarge", "4MiB", fold=False)
    known = sim.price("all_reduce", "trn2.48xlarge", "4MiB", config="ring@64")
    assert mine.time == pytest.approx(known.time, rel=1e-3)


def test_machines_are_objects():
    m = sim.Machine("trn2.48xlarge x 2")
    slow = m.what_if("slow:0-4:0.5").with_figure("efa.rate", "6 GB/s")
    assert slow.figures["efa.rate"].value == 6e9 and m.figures["efa.rate"].value != 6e9
    again = pickle.loads(pickle.dumps(slow))
    assert again.figures["efa.rate"].value == 6e9 and again.changes == slow.changes
    a, b = (sim.price("all_reduce", x, "64MiB", config="ring", interval=False).time for x in (m, slow))
    assert b > a
    grid = sim.Machine("torus:4x4")
    assert grid.with_dims(0, [2, 8]).dims == (2, 8) and grid.ranks == 16
    for dims, said in [([], "no sizes are given: expected some like 8 or 4x4"), ([0, 4], "'0x4': expected sizes like"),
                       ([4, -4], "'4x-4': expected sizes like")]:  # fmt: skip
        with pytest.raises(ValueError, match=re.escape(said)):
            grid.with_dims(0, dims)
    assert m.route(0, 64) and all(rate > 0 for _, rate, _ in m.route(0, 64))
    with pytest.raises(ValueError, match="trn9"):
        sim.Machine("trn9.48xlarge")
    assert "trn2.48xlarge" in sim.machines() and "trn2" in sim.chips()


def test_machine_files_are_machines(tmp_path, monkeypatch):
    shipped = pathlib.Path(__file__).parents[2] / "sim" / "machines" / "trn2.48xlarge.machine"
    (tmp_path / "my.machine").write_text(shipped.read_text())
    monkeypatch.chdir(tmp_path)
    mine, known = sim.Machine("my.machine"), sim.Machine("trn2.48xlarge")
    assert mine.ranks == known.ranks and mine.levels == known.levels and mine.injection == known.injection
    assert sim.Machine("my.machine x 4").ranks == 4 * known.ranks
    told = asked("sim", "all_reduce", "-m", "my.machine", "-b", "1MiB", "-a", "ring")
    p = sim.price("all_reduce", tmp_path / "my.machine", "1MiB", config="ring")
    assert str(round(p.time * 1e12)) in json.dumps(told)
    (tmp_path / "my.machine").unlink()
    again = pickle.loads(pickle.dumps(mine.what_if("hbm:3:0.5")))
    assert again.ranks == mine.ranks and "1 changes" in repr(again)
    for missing in ("my.machine", "my.machine x 2", "folder/mine"):
        with pytest.raises(FileNotFoundError, match=missing.split(" ")[0]):
            sim.Machine(missing)
    (tmp_path / "wrong.machine").write_text("nonsense\n")
    with pytest.raises(ValueError, match="wrong.machine"):
        sim.Machine("wrong.machine")


def test_unknown_names_come_with_those_there_are():
    with pytest.raises(ValueError, match="'trn9': expected .*trn2.48xlarge.*shape"):
        sim.Machine("trn9")
    with pytest.raises(ValueError, match="'rign': expected .*ring"):
        sim.price("all_reduce", "trn2.48xlarge", config="rign")
    with pytest.raises(ValueError, match="'all_redcue': expected .*all_reduce"):
        sim.price("all_redcue", "trn2.48xlarge")
    with pytest.raises(ValueError, match="'softmx': expected .*softmax"):
        core.program("softmx")


def test_what_a_schedule_has_itself_is_not_given_with_it():
    s = schedule.algorithm("ring", "all_reduce", 4)
    for name, value in {"config": "rdh", "ranks": 8, "root": 1, "in_place": True}.items():
        with pytest.raises(ValueError, match=f"^{name}={value!r} with a schedule"):
            sim.price(s, "trn2.48xlarge", **{name: value})


class InTurn(Executor):
    """Its futures are no futures of concurrent.futures."""

    def submit(self, call, *words):
        class Later:
            def result(self):
                return call(*words)

        return Later()


@pytest.mark.parametrize("executor", [lambda: None, lambda: ThreadPoolExecutor(2), InTurn])
@pytest.mark.parametrize(
    ("wrong", "error"),
    [({"config": "rign"}, ValueError), ({"confgi": "ring"}, TypeError), ({"machine": "no.machine"}, OSError)],
)
def test_an_error_of_a_sweep_names_its_question(executor, wrong, error):
    good = {"what": "all_reduce", "machine": "trn2.48xlarge", "size": 4096, "config": "ring", "interval": False}
    with pytest.raises(error) as raised:
        sim.sweep([good, {**good, **wrong}], executor(), progress=True)
    told = "\n".join([str(raised.value), *getattr(raised.value, "__notes__", [])])
    (key, value) = next(iter(wrong.items()))
    assert "question 1, " in told and f"{key!r}: {value!r}" in told


def test_sweeps_keep_their_order(capsys):
    sizes = [1 << p for p in (10, 16, 22)]
    question = {"what": "all_gather", "machine": "trn2.48xlarge", "config": "ring", "interval": False}
    questions = [{**question, "size": s} for s in sizes]
    alone = [sim.price(**q).time for q in questions]
    with ThreadPoolExecutor(2) as threads:
        assert [p.time for p in sim.sweep(questions, threads, progress=True)] == alone
    assert "3/3" in capsys.readouterr().err
    assert [p.time for p in sim.sweep(questions)] == alone  # other processes


def test_a_workload_is_played():
    text = "ranks 16\ncompute forward 1ms\nall_reduce sums 64MB after forward\ncompute update 500us after sums\n"
    played = sim.play(text, "trn2.48xlarge")
    assert [name for name, *_ in played.parts] == ["forward", "sums", "update"]
    assert played.time > 1.5e-3 and played.path == ["forward", "sums", "update"]
    with pytest.raises(ValueError, match="line 2"):
        sim.play("ranks 16\nnonsense x\n", "trn2.48xlarge")
    with pytest.raises(ValueError, match="workload '': expected the name of a file, or lines"):
        sim.play("", "trn2.48xlarge")


def test_core_programs():
    softmax = core.program("softmax")
    assert core.parse(softmax.text).run(compute=False).time == softmax.run(compute=False).time
    assert {"softmax", "matmul"} <= set(core.programs())
    p = core.program("matmul")
    told = asked("core", "run", "matmul")
    rng = np.random.default_rng(3)
    taken = [b for b in p.buffers if b.role == "input"]
    inputs = {b.name: rng.integers(0, 4, b.bytes // b.dtype.itemsize).astype(b.dtype) for b in taken}
    ran = p.run(inputs)
    assert round(ran.time * 1e12) == told["time_ps"] and ran.instructions == told["instructions"]
    assert p.run(compute=False).time == ran.time
    assert (ran.timeline.end <= ran.time * (1 + 1e-9)).all()
    with pytest.raises(ValueError, match="is no input"):
        p.run({"nonsense": np.zeros(3)})
    with pytest.raises(ValueError, match="bytes, expected"):
        p.run({next(iter(inputs)): np.zeros(3, next(iter(inputs.values())).dtype)})


def test_defaults_of_core_programs_are_what_settings_take():
    for name in ("softmax", "adamw"):
        defaults = {key: value for key, (_, value) in core.programs()[name]["settings"].items()}
        assert core.program(name, **defaults).text == core.program(name).text
    assert core.programs()["softmax"]["settings"]["rows"][1] == 4096


def rounded_to_bf16(array):
    """To nearest even, by the bits."""
    bits = np.ascontiguousarray(array, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).view(np.float32)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_floats_for_bf16_are_converted_by_value(dtype):
    x = np.random.default_rng(5).standard_normal((128, 64)).astype(dtype)
    p = core.program("softmax", rows=128, columns=64, type="bf16")
    bits = (rounded_to_bf16(x).view(np.uint32) >> 16).astype(np.uint16)
    by_value, by_bits = p.run({"x": x}), p.run({"x": bits})
    assert np.array_equal(by_value.outputs["y"], by_bits.outputs["y"]) and by_value.outputs["y"].any()
    backwards = p.run({"x": x[::-1]}).values["y"].reshape(128, 64)[::-1]
    assert np.array_equal(backwards.ravel(), by_value.values["y"])
    for wrong in (np.ones((128, 64), np.int64), np.ones((128, 64), np.uint8), np.ones((128, 64), bool)):
        with pytest.raises(ValueError, match="x is of bf16, .* expected floats, or uint16 with its bits"):
            p.run({"x": wrong})
    with pytest.raises(ValueError, match="complex128 was given"):
        core.program("softmax", rows=128, columns=64, type="f32").run({"x": np.ones((128, 64), complex)})


# Both sum in f32. What differs besides is one rounding of the result: to 8 bits in bf16, so by at most 2^-8 of it.
@pytest.mark.parametrize(("type", "bound"), [("f32", 2e-6), ("bf16", 2.0**-8 + 2e-6)])
def test_core_programs_compute_what_numpy_does(type, bound):
    rng = np.random.default_rng(4)
    a, b = rng.uniform(-1, 1, (256, 256)), rng.uniform(-1, 1, (256, 512))
    c = core.program("matmul", M=256, K=256, N=512, type=type).run({"a": a, "b": b}).values["c"].reshape(256, 512)
    if type == "bf16":
        a, b = rounded_to_bf16(a).astype(float), rounded_to_bf16(b).astype(float)
    assert (np.abs(c - a.T @ b) <= bound * (np.abs(a.T) @ np.abs(b))).all()

    x = rng.standard_normal((128, 64))
    y = core.program("softmax", rows=128, columns=64, type=type).run({"x": x}).values["y"].reshape(128, 64)
    x = rounded_to_bf16(x).astype(float) if type == "bf16" else x
    want = np.exp(x) / np.exp(x).sum(axis=1, keepdims=True)
    assert np.abs(y / want - 1).max() <= bound


def test_what_is_refuted_has_no_price():
    b = schedule.Builder("all_reduce", ranks=4)
    b[1, 0] += b[0, 0]
    wrong = b.finish("wrong")
    for asks in (sim.price, sim.timeline):
        with pytest.raises(ValueError, match="schedule 'wrong', which does not do its all_reduce: .*rank"):
            asks(wrong, "trn2.48xlarge")
    assert sim.price("all_reduce", "trn2.48xlarge", interval=False).interval is None


@pytest.mark.parametrize("asks", ["price", "play", "run", "core"])
def test_ctrl_c_ends_what_takes_long(asks):
    calls = {
        "price": "sim.price('all_to_all', 'torus:8x8x8', '1GiB', fold=False)",
        "play": "sim.play('ranks 512\\nall_to_all a 1GB\\nall_to_all b 1GB after a', 'torus:8x8x8')",
        "run": "schedule.algorithm('ring', 'all_reduce', 8).run([np.ones(1 << 22, np.float32)] * 8)",
        "core": "core.program('matmul', M=4096, K=4096, N=4096).run({})",
    }
    code = f"""
import numpy as np
from trellis import core, schedule, sim
try:
    print("begins", flush=True)
    while True:
        {calls[asks]}
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "begins\n"
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=200)[0] == "interrupted\n"
    finally:
        process.kill()


def test_what_the_readme_shows_runs():
    text = (pathlib.Path(__file__).parents[2] / "python" / "README.md").read_text()
    shown = text.split("## Schedules and prices")[1].split("## ")[0]
    code = "\n".join(line[4:] for line in shown.splitlines() if line.startswith("    ") or not line)
    known = {}
    exec(code, known)
    assert known["ring"].verify() and known["m"].ranks == 128 and known["ran"].values["y"].size == 128 * 64


def test_the_gallery_is_drawn(tmp_path):
    gallery = pytest.importorskip("trellis.gallery", exc_type=ImportError)
    kept = pathlib.Path(__file__).parents[2] / "python" / "gallery"
    assert {path.stem for path in kept.glob("*.svg")} == set(gallery.PICTURES)
    drawn = gallery.draw("timeline", tmp_path)
    assert "<svg" in drawn.read_text() and drawn.stat().st_size < 60_000


def test_dask_spreads_a_sweep():
    distributed = pytest.importorskip("dask.distributed", exc_type=ImportError)  # "distributed" is a folder here, too
    sizes = ("64KiB", "1MiB")
    questions = [{"what": "all_reduce", "machine": "trn2.48xlarge", "size": s, "interval": False} for s in sizes]
    # Workers as threads. As processes, each under a nanny, they start a Python apiece, and Dask waits for them without
    # limit: a minute on a loaded machine. That questions and prices go to other processes, the sweep above shows.
    cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None)
    with cluster, distributed.Client(cluster) as client:
        spread = sim.sweep(questions, client.get_executor())
    assert [p.time for p in spread] == [sim.price(**question).time for question in questions]


def test_one_computation_has_a_time_by_engine():
    t = sim.operation_time("product", chip="trn1", rows=512, columns=128, inner=128)
    assert t.tensor == pytest.approx((512 + 83.6) / 2.8e9)
    assert max(t.tensor, t.vector, t.scalar, t.memory) <= t.total <= t.tensor + t.vector + t.scalar + t.memory
    assert t.flops == 2 * 512 * 128 * 128
    assert "product" in sim.operation_kinds()
    twice = sim.operation_time("copy", rows=65536, columns=4096, what_if=["dma.engine.rate=8.5GB/s"])
    assert twice.total == pytest.approx(2 * sim.operation_time("copy", rows=65536, columns=4096).total)
    with pytest.raises(ValueError, match="no kind of operation is called 'prodct'"):
        sim.operation_time("prodct")
    with pytest.raises(ValueError, match="mxfp8_e4m3: trn2 has no MX"):
        sim.operation_time("product", chip="trn2", type="mxfp8_e4m3", result="f32")
    for name in ("cores", "inputs", "vector"):
        for number in (-1, float("nan"), float("inf")):
            with pytest.raises(ValueError, match=f"{name}={number}: expected a number from 0 on"):
                sim.operation_time("elementwise", **{name: number})


def test_a_rank_has_its_part_of_a_chip():
    trn1, trn2 = sim.Machine("trn1.32xlarge"), sim.Machine("trn2.48xlarge")
    assert trn1.rank_memory == 16 * 2**30 and trn2.rank_memory == 24 * 2**30
    assert trn1.rank_flops == pytest.approx(91.75e12, rel=1e-3)
    with pytest.raises(ValueError, match="has no chip"):
        sim.Machine("ring:4").rank_flops  # noqa: B018


def test_a_step_is_priced_as_the_program_prices_it():
    model = {"model": {"num_layers": 4, "hidden_size": 256, "num_attention_heads": 8}, "data": {"seq_length": 256}}
    usual = sim.price_step(model, "trn1.2xlarge", set={"data.global_batch_size": 16})
    assert usual.low < usual.time < usual.high and usual.fits and usual.ranks == 2
    of = usual.classes[0]
    parts = [of[k] for k in ("forward", "backward", "recompute", "update", "data", "idle")]
    assert sum(parts) == pytest.approx(usual.time, rel=1e-5)
    slow = sim.price_step(model, "trn1.2xlarge", set={"data.global_batch_size": 16}, what_if=["straggler:1:0.5"])
    assert slow.time > 1.5 * usual.time
    job = sim.price_step(model, "trn1.2xlarge", set={"data.global_batch_size": 16}, host_mtbf="100h", noise=3)
    assert 0.9 < job.goodput["part"] < 1 and job.noise["runs"] == 3
    programs = sim.price_step(model, "trn1.2xlarge", set={"data.global_batch_size": 16}, times="programs")
    assert (usual.times, programs.times) == ("formulas", "programs")
    assert all(each["by_programs"] == 0 for each in usual.operations)
    product = next(each for each in programs.operations if each["operation"] == "product")
    assert 0 < product["by_programs"] < product["time"]  # small ones waste more of their tiles than a program may
    with pytest.raises(ValueError, match="--times"):
        sim.price_step(model, "trn1.2xlarge", times="guesses")
    with pytest.raises(ValueError, match="model.num_layer"):
        sim.price_step({"model": {"num_layer": 4}}, "trn1.2xlarge")


def test_the_program_hands_over_to_the_interpreter_that_started_it():
    """Also where no python is in PATH, as in a virtual environment that is not activated."""
    environment = {**os.environ, "PATH": "/nosuch"}
    environment.pop("TRELLIS_PYTHON", None)
    ran = subprocess.run([sys.executable, "-m", "trellis", "simulate", "--read", "/nosuch"],
                         capture_output=True, text=True, env=environment)  # fmt: skip
    assert ran.returncode != 0
    assert "neither python3 nor python" not in ran.stderr


@pytest.mark.parametrize(("kind", "given", "wrong"), [("i8", [100, -200], -200), ("i32", [2**32 + 7], 2**32 + 7)])
def test_whole_numbers_do_not_wrap(kind, given, wrong):
    buffer = core.Buffer("x", "input", kind, 8)
    assert core._taken(buffer, [100, -100]).tolist() == [100, -100]
    with pytest.raises(ValueError, match=f"x is of {kind}, and {wrong} was given"):
        core._taken(buffer, given)


def test_a_size_is_not_negative():
    with pytest.raises(ValueError, match="-5 is no size: expected 0 or more"):
        sim.price("all_reduce", "trn2.48xlarge", -5)
