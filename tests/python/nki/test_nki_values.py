"""Values at the edges: conversions, places chosen by indices, scans, and the scales of blocks."""

import numpy as np
import pytest

nki = pytest.importorskip("trellis.nki", reason="ml_dtypes is not installed")
nl, nisa = nki.language, nki.isa

from trellis import core  # noqa: E402 (behind the check for ml_dtypes)
from trellis.nki.tensors.types import convert  # noqa: E402


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64])
def test_floats_beyond_an_integer_become_its_nearest_end(kind):
    ends = np.iinfo(kind)
    got = convert(np.array([np.inf, 1e30, -np.inf, -1e30, np.nan, 2.5], np.float32), np.dtype(kind))
    assert got.dtype == kind and got.tolist() == [ends.max, ends.max, ends.min, ends.min, 0, 2]


def test_the_last_floats_inside_of_integers_of_64_bits():
    below = np.nextafter(np.array([2.0**63, 2.0**64]), 0)
    assert convert(below, np.dtype(np.int64))[0] == 2**63 - 1024
    assert convert(below, np.dtype(np.uint64))[1] == 2**64 - 2048


@pytest.mark.parametrize("dim,indices,wanted", [(1, [1, 5], [1, 5]), (1, [1, 8], [1, -1]), (0, [2, 1], [16, 8]),
                                                (0, [1, 3], [8, -1])])
def test_indirect_places_are_held_against_their_own_dimension(dim, indices, wanted):
    @nki.jit
    def chosen(x, places):
        index, tile = nl.ndarray((2, 1), nl.int32), nl.ndarray((2, 1), x.dtype)
        nisa.dma_copy(dst=index, src=places)
        nisa.memset(tile, -1.0)
        part = x.ap(pattern=[[x.shape[1], 2], [1, 1]], vector_offset=index, indirect_dim=dim)
        nisa.dma_copy(dst=tile, src=part, oob_mode=nisa.oob_mode.skip)
        out = nl.ndarray((2, 1), x.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(dst=out, src=tile)
        return out

    x = np.arange(24, dtype=np.float32).reshape(3, 8)
    assert chosen(x, np.array(indices, np.int32)[:, None]).ravel().tolist() == wanted


@pytest.mark.parametrize("axes", [(1, 0), (3, 1, 2, 0)])
def test_indices_of_two_dimensions_are_taken_column_after_column(axes):
    """The documentation's gathering transposes: indices.T.flatten()."""
    inner = (128,) if len(axes) == 2 else (1, 3, 64)

    @nki.jit
    def turned(x, places):
        index = nl.ndarray((128, 2), nl.uint32)
        nisa.dma_copy(dst=index, src=places)
        shape = tuple((256, *inner)[a] for a in axes)
        tile, out = nl.ndarray(shape, x.dtype), nl.ndarray(shape, x.dtype, buffer=nl.shared_hbm)
        pattern = [[int(np.prod(inner[k:])), n] for k, n in enumerate((256, *inner))]
        nisa.dma_transpose(dst=tile, src=x.ap(pattern, vector_offset=index, indirect_dim=0), axes=axes)
        nisa.dma_copy(dst=out, src=tile)
        return out

    x = np.arange(256 * np.prod(inner), dtype=np.uint16).reshape(256, *inner)
    places = np.random.default_rng(0).permutation(256).reshape(128, 2).astype(np.uint32)
    np.testing.assert_array_equal(turned(x, places), x[places.T.ravel()].transpose(axes))


def narrowed(x, y, kind, to):
    """x + y by two tiles and by a number, and x as it is copied, of integers of `kind` into tiles of `to`."""

    @nki.jit
    def kernel(x, y):
        out = nl.ndarray((4, *x.shape), to, buffer=nl.shared_hbm)
        a, b, tiles = nl.load(x), nl.load(y), [nl.ndarray(x.shape, to) for _ in range(3)]
        nisa.tensor_tensor(dst=tiles[0], data1=a, data2=b, op=nl.add)
        nisa.tensor_scalar(dst=tiles[1], data=a, op0=nl.add, operand0=float(y_value))
        nisa.tensor_copy(dst=tiles[2], src=a)
        for k, tile in enumerate((*tiles, a)):
            nisa.dma_copy(dst=out[k], src=tile)
        return out

    y_value = y.flat[0]
    return kernel(x.astype(kind), y.astype(kind))


def narrowed_by_the_core(x, y, kind, to):
    size, n = np.dtype(kind).itemsize, x.size
    short = {k: f"{k[0]}{np.dtype(k).itemsize * 8}" for k in (kind, to)}
    program = f"""program narrow cores=1
hbm x {short[kind]} bytes={size * n} input
hbm y {short[kind]} bytes={size * n} input
sbuf a {short[kind]} core=0 partitions=0+1 bytes=0+{size * n}
sbuf b {short[kind]} core=0 partitions=0+1 bytes=64+{size * n}
semaphore vector
semaphore ring
"""
    lines = [f"dma_copy sync ring=4 {t}[0+1 @0 {n}x1] <- {h}[0+1 @0 {n}x1 /0] signal ring+1" for t, h in ("ax", "by")]
    ways = ("tensor_tensor vector {} <- {}, {} op=add", f"tensor_scalar vector {{}} <- {{}} op=add value={y.flat[0]}",
            "tensor_copy vector {} <- {}", "dma_copy sync ring=4 {} <- {}")  # fmt: skip
    for k, way in enumerate(ways):
        program += f"hbm o{k} {short[to]} bytes={np.dtype(to).itemsize * n} output\n"
        program += f"sbuf t{k} {short[to]} core=0 partitions=0+1 bytes={128 + 64 * k}+{np.dtype(to).itemsize * n}\n"
        part = f"[0+1 @0 {n}x1]"
        lines.append(way.format(f"t{k}{part}", f"a{part}", f"b{part}") + (" wait ring>=2 signal vector+1"))
    lines += [
        f"dma_copy sync ring=4 o{k}[0+1 @0 {n}x1 /0] <- t{k}[0+1 @0 {n}x1] wait vector>=4" for k in range(len(ways))
    ]
    got = (
        core.parse(program + "\n".join(lines) + "\n", chip="trn2")
        .run({"x": x.astype(kind), "y": y.astype(kind)})
        .outputs
    )
    return np.stack([np.asarray(got[f"o{k}"]).reshape(x.shape) for k in range(len(ways))])


@pytest.mark.parametrize("kind,to", [("int8", "int8"), ("uint8", "uint8"), ("int16", "int16"), ("uint16", "uint16"),
                                     ("int32", "uint8"), ("int32", "int8"), ("int16", "uint16"), ("uint16", "int8")])
def test_integers_that_do_not_fit_become_the_nearest_that_does(kind, to):
    """By each way that adds or copies; bit for bit as sim/core does it."""
    ends = np.iinfo(kind)
    x = np.array(
        [[0, 1, 3, 100, 127, max(ends.min, -128), max(ends.min, -1), min(ends.max, 300), min(ends.max, 32767)]]
    )
    got = narrowed(x, np.full_like(x, 100), kind, to)
    both = np.stack([x + 100, x + 100, x, x])
    np.testing.assert_array_equal(got, both.clip(np.iinfo(to).min, np.iinfo(to).max))
    np.testing.assert_array_equal(got, narrowed_by_the_core(x, np.full_like(x, 100), kind, to))


@pytest.mark.parametrize(
    "engine,wanted", [("unknown", 16_777_217 + 2), ("gpsimd", 16_777_217 + 2), ("vector", 16_777_218)]
)
def test_integers_of_32_bits_are_exact_on_gpsimd_alone(engine, wanted):
    @nki.jit
    def total(x):
        a, out = nl.load(x), nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        nisa.tensor_tensor(
            dst=a[:, 0:1], data1=a[:, 0:1], data2=a[:, 1:2], op=nl.add, engine=getattr(nisa.engine, engine)
        )
        nisa.dma_copy(dst=out, src=a)
        return out

    assert total(np.array([[16_777_217, 2]], np.int32))[0, 0] == wanted


def test_gpsimds_integers_wrap_and_bits_are_no_numbers():
    @nki.jit
    def kernel(x):
        a, out, low = nl.load(x), nl.ndarray((2, 1), x.dtype, buffer=nl.shared_hbm), nl.ndarray((1, 1), x.dtype)
        nisa.tensor_tensor(dst=low, data1=a[:, 0:1], data2=a[:, 1:2], op=nl.bitwise_or)
        nisa.dma_copy(dst=out[1:2], src=low)
        nisa.tensor_tensor(dst=low, data1=a[:, 0:1], data2=a[:, 1:2], op=nl.add)
        nisa.dma_copy(dst=out[0:1], src=low)
        return out

    assert kernel(np.array([[2**31 - 1, 1]], np.int32)).ravel().tolist() == [-(2**31), 2**31 - 1]


@pytest.mark.parametrize("name,wanted", [("mod", np.mod), ("fmod", np.fmod)])
def test_remainders_have_the_sign_of_what_their_pages_say(name, wanted):
    @nki.jit
    def both(x, y):
        f, out = getattr(nl, name), nl.ndarray((4, *x.shape), x.dtype, buffer=nl.shared_hbm)
        a, b, by_tensor = nl.load(x), nl.load(y), nl.ndarray(x.shape, x.dtype)
        nisa.tensor_tensor(dst=by_tensor, data1=a, data2=b, op=f)
        for k, tile in enumerate((f(a, b), by_tensor, f(a, 3.0), f(a, -3.0))):
            nisa.dma_copy(dst=out[k], src=tile)
        return out

    x, y = np.array([[-5, 5, -5, 5]], np.float32), np.array([[3, 3, -3, -3]], np.float32)
    np.testing.assert_array_equal(both(x, y), [wanted(x, y), wanted(x, y), wanted(x, 3), wanted(x, -3)])
    assert {a["op"] for a in both.trace.attributes if "op" in a} == {"mod"}  # sim/core has one remainder


def cumulative(x, op0, op1, **settings):
    """What tensor_scalar_cumulative makes of x and a number."""
    @nki.jit(platform_target="trn3")
    def kernel(x):
        tile, result = nl.ndarray(x.shape, x.dtype), nl.ndarray(x.shape, x.dtype)
        nisa.dma_copy(dst=tile, src=x)
        if settings.get("reduce_cmd") == nisa.reduce_cmd.reduce:  # what another has left
            nisa.tensor_scalar_cumulative(dst=result, src=tile, op0=op0, op1=op1, imm0=0.0)
        nisa.tensor_scalar_cumulative(dst=result, src=tile, op0=op0, op1=op1, imm0=0.0, **settings)
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(dst=out, src=result)
        return out

    return kernel(x)


@pytest.mark.parametrize("op", [nl.add, nl.subtract, nl.multiply, nl.maximum, nl.minimum])
@pytest.mark.parametrize("command", ["reset_reduce", "load_reduce", "reduce"])
def test_cumulative_operators_take_the_element_first(op, command):
    """state = op1(element, state), as sim/core has it; the first state is the operator's neutral one, or given."""
    f = {nl.add: np.add, nl.subtract: np.subtract, nl.multiply: np.multiply, nl.maximum: np.maximum,
         nl.minimum: np.minimum}[op]
    neutral = {np.add: 0.0, np.subtract: 0.0, np.multiply: 1.0, np.maximum: -np.inf, np.minimum: np.inf}[f]
    x = np.array([[1, 2, 4, 8], [3, -1, 2, -5]], np.float32)
    settings = {"reduce_cmd": getattr(nisa.reduce_cmd, command)} | ({"imm1": 3.0} if command == "load_reduce" else {})
    wanted = np.empty_like(x)
    for row in range(len(x)):
        state = 3.0 if command == "load_reduce" else neutral
        for _ in range(2 if command == "reduce" else 1):
            for i in range(x.shape[1]):
                state = wanted[row, i] = f(x[row, i], state)
    np.testing.assert_array_equal(cumulative(x, nl.add, op, **settings), wanted)


def test_cumulative_subtract_of_the_documentation():
    got = cumulative(np.array([[1, 2, 4, 8]], np.float32), nl.add, nl.subtract)
    assert got.tolist() == [[1, 1, 3, 5]]


def test_accumulators_subtract_each_element():
    """The first element less the others, and then all of them once more, as sim/core has it."""
    @nki.jit(platform_target="trn2")
    def kernel(x):
        tile, result, left = (nl.ndarray(shape, x.dtype) for shape in (x.shape, x.shape, (len(x), 1)))
        nisa.dma_copy(dst=tile, src=x)
        out = nl.ndarray((len(x), 3), x.dtype, buffer=nl.shared_hbm)
        for k, (command, settings) in enumerate(
            (("reset_reduce", {}), ("reduce", {}), ("load_reduce", {"reduce_init": 10.0}))
        ):
            nisa.tensor_scalar_reduce(dst=result, data=tile, op0=nl.add, operand0=0.0, reduce_op=nl.subtract,
                                      reduce_res=left, reduce_cmd=getattr(nisa.reduce_cmd, command), **settings)
            nisa.dma_copy(dst=out[:, k:k + 1], src=left)
        return out

    assert kernel(np.array([[5, 1, 1]], np.float32)).tolist() == [[5 - 1 - 1, 3 - 5 - 1 - 1, 10 - 5 - 1 - 1]]


def quantized(x, kind):
    """The elements' bits, and the scales of a group of 8 rows each, by trellis.nki."""
    rows, columns = x.shape

    @nki.jit(platform_target="trn3")
    def kernel(x):
        tile, scales = nl.ndarray(x.shape, nl.bfloat16), nl.ndarray((rows, columns // 4), nl.uint8)
        elements = nl.ndarray((rows, columns // 4), kind)
        nisa.dma_copy(dst=tile, src=x)
        nisa.memset(scales, 0)
        nisa.quantize_mx(dst=elements, src=tile, dst_scale=scales)
        out = [nl.ndarray((rows, columns // 4), t.dtype, buffer=nl.shared_hbm) for t in (elements, scales)]
        for to, t in zip(out, (elements, scales), strict=True):
            nisa.dma_copy(dst=to, src=t)
        return tuple(out)

    elements, scales = kernel(x.astype(nl.bfloat16))
    return elements.view(np.uint8), scales.reshape(-1, 32, columns // 4)[:, :4].reshape(rows // 8, -1)


def quantized_by_the_core(x, kind):
    """The same by sim/core."""
    rows, columns = x.shape
    wide, quadrants = columns // 4, rows // 32
    copies = [f"dma_copy sync ring=4 s[0+4 @{q * 4 * wide} {wide}x1 /{wide}] <- scale[{32 * q}+4 @0 {wide}x1] "
              "wait vector>=1" for q in range(quadrants)]
    text = f"""program quantize cores=1
hbm x bf16 bytes={rows * columns * 2} input
hbm q {kind} bytes={rows * columns} output
hbm s u8 bytes={quadrants * 4 * wide} output
sbuf tile bf16 core=0 partitions=0+{rows} bytes=0+{2 * columns}
sbuf element {kind} core=0 partitions=0+{rows} bytes={2 * columns}+{columns}
sbuf scale u8 core=0 partitions=0+{rows} bytes={3 * columns}+{wide}
semaphore vector
semaphore ring
dma_copy sync ring=4 tile[0+{rows} @0 {columns}x1] <- x[0+{rows} @0 {columns}x1 /{2 * columns}] signal ring+1
quantize_mx vector element[0+{rows} @0 {columns}x1], scale[0+{rows - 28} @0 {wide}x1] <- tile[0+{rows} @0 {columns}x1] \
wait ring>=1 signal vector+1
dma_copy sync ring=4 q[0+{rows} @0 {columns}x1 /{columns}] <- element[0+{rows} @0 {columns}x1] wait vector>=1
""".replace("\\\n", "") + "\n".join(copies) + "\n"
    got = core.parse(text, chip="trn3").run({"x": x.astype(np.float32)}).outputs
    return got["q"].reshape(rows, columns), got["s"].reshape(rows // 8, wide)


@pytest.mark.parametrize("packed,element", [("float8_e4m3fn_x4", "f8e4m3fn"), ("float8_e5m2_x4", "f8e5m2")])
def test_blocks_are_quantized_as_the_core_does_it(packed, element):
    """Bit for bit: blocks of every size, of zeros, of numbers just below a power of two, with an infinity or a NaN."""
    random = np.random.default_rng(1)
    sizes = np.exp2(random.integers(-135, 127, (8, 64)))
    x = random.standard_normal((64, 256)) * np.repeat(np.repeat(sizes, 8, axis=0), 4, axis=1)
    x[0:8, 0:4], x[8:16, 0:4], x[17, 2], x[26, 3], x[35, 1] = 1.984375, 0, np.inf, np.nan, -np.inf
    elements, scales = quantized(x, getattr(nl, packed))
    wanted, exponents = quantized_by_the_core(x, element)
    assert scales[:5, 0].tolist() == [120 if element == "f8e4m3fn" else 113, 0, 255, 255, 255]
    np.testing.assert_array_equal(scales, exponents)
    np.testing.assert_array_equal(elements, wanted)


def test_a_scale_of_nan_makes_its_products_nan():
    @nki.jit(platform_target="trn3")
    def kernel(x):
        tile, scales = nl.ndarray((32, 16), nl.bfloat16), nl.ndarray((32, 4), nl.uint8)
        elements, broken = nl.ndarray((32, 4), nl.float8_e4m3fn_x4), nl.ndarray((32, 4), nl.uint8)
        product, result = nl.ndarray((4, 4), nl.float32, buffer=nl.psum), nl.ndarray((4, 4), nl.float32)
        out = nl.ndarray((4, 4), nl.float32, buffer=nl.shared_hbm)
        nisa.dma_copy(dst=tile, src=x)
        nisa.memset(scales, 0)
        nisa.quantize_mx(dst=elements, src=tile, dst_scale=scales)
        nisa.memset(broken, 127)
        nisa.memset(broken[:, 2:3], 255)
        nisa.nc_matmul_mx(product, elements, elements, broken, scales)
        nisa.tensor_copy(result, product)
        nisa.dma_copy(dst=out, src=result)
        return out

    got = kernel(np.ones((32, 16), nl.bfloat16))
    assert np.isnan(got[2]).all() and np.isfinite(got[[0, 1, 3]]).all()


@pytest.mark.parametrize("op,wanted", [(nl.add, [3, 7, 2, 6]), (nl.maximum, [2, 3, 2, 4])])
def test_dma_compute_combines_repeated_rows_by_its_operator(op, wanted):
    @nki.jit
    def kernel(table, indices, values):
        index, value = nl.ndarray((4, 1), nl.int32), nl.ndarray((4, 4), nl.float32)
        out = nl.ndarray((4, 4), nl.float32, buffer=nl.shared_hbm)
        nisa.dma_copy(dst=out, src=table)
        nisa.dma_copy(dst=index, src=indices)
        nisa.dma_copy(dst=value, src=values)
        rows = out.ap(pattern=[[4, 4], [1, 4]], vector_offset=index)
        nisa.dma_compute(rows, [value, rows], reduce_op=op, unique_indices=False)
        return out

    values = np.repeat(np.arange(1, 5, dtype=np.float32)[:, None], 4, axis=1)
    got = kernel(np.full((4, 4), 2, np.float32), np.array([[0], [1], [1], [3]], np.int32), values)
    assert got.tolist() == [[w] * 4 for w in wanted]
