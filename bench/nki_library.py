"""Runs the integration tests of aws-neuron/nki-library on trellis.nki, and prints which kernels run and are right.

  python bench/nki_library.py CHECKOUT [--only TEXT] [--seconds 120] [-o TABLE.md]

The library's own tests say how each kernel is called and what it should give (by PyTorch, which must be installed, as pytest);
we take the place of what would compile it and send it to a device. By default the tests that it marks as fast."""

import argparse
import enum
import importlib.abc
import importlib.machinery
import itertools
import signal
import sys
import types
import warnings
from pathlib import Path
from typing import Any

import numpy as np

MACHINERY = ("boto3", "botocore", "pytest_html", "orjson", "allpairspy", "aws_embedded_metrics", "nki_cpu_simulator", "yaml",
             "filelock", "psutil", "tqdm", "pandas", "paramiko", "fabric", "fabric2", "invoke", "portalocker", "rich", "plotext", "tabulate", "requests")  # fmt: skip
HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "python")]


class Slow(BaseException):
    """A test that takes longer than it may."""


class Orchestrator:
    """In place of the library's: runs the kernel here, and compares."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def execute(self, args: Any) -> None:
        import trellis.nki
        from trellis.nki.kernels.jit import Kernel

        kernel = args.kernel_func if isinstance(args.kernel_func, Kernel) else Kernel(args.kernel_func)
        cores = int(getattr(args.compiler_input, "logical_nc_config", 1) or 1)
        kernel = kernel[cores] if cores > 1 else kernel
        golden = getattr(args.validation_args, "golden_output", None)
        ranks = int(getattr(args.inference_args, "collective_ranks", 1) or 1)
        if ranks == 1 and not hasattr(args.kernel_input, "for_rank"):
            given = dict(args.kernel_input)
            inputs = {name.split(".must_alias_input")[0]: value for name, value in given.items()}
            aliased = [name.split(".")[0] for name in given if name.endswith(".must_alias_input")]
            self.compare(kernel(**inputs), golden, [inputs[a] for a in aliased], args.validation_args)
            return
        of_rank = getattr(args.kernel_input, "for_rank", lambda _: args.kernel_input)
        inputs_of = [{name.split(".must_alias_input")[0]: value for name, value in of_rank(r).items()} for r in range(ranks)]
        for rank, result in enumerate(trellis.nki.on_ranks(kernel, inputs_of).results):
            self.compare(result, golden.for_rank(rank) if hasattr(golden, "for_rank") else golden, [], args.validation_args)

    def compare(self, result: Any, golden: Any, aliased: list[Any], tolerance: Any) -> None:
        if golden is None:
            return
        outputs = list(result) if isinstance(result, (tuple, list)) else [result]
        compare(golden, outputs or aliased, tolerance)


def numbers(x: Any) -> Any:
    """An array's numbers; of packed elements their bytes."""
    x = np.ascontiguousarray(x)
    if x.dtype.names:
        x = x.view(np.uint8)
    return x.astype(np.float64)


def compare(golden: Any, outputs: list[Any], tolerance: Any) -> None:
    wanted = golden.golden if hasattr(golden, "golden") else golden
    if wanted is None:  # the test has looked at the result itself
        return
    if not isinstance(wanted, dict):
        raise AssertionError(f"golden output of {type(wanted).__name__}; expected names and arrays")
    unused = list(outputs)
    for name, answer in wanted.items():
        if not unused:
            break
        size = numbers(answer).size if isinstance(answer, np.ndarray) else -1
        fits = [k for k, o in enumerate(unused) if numbers(o).size == size]  # the tests name outputs in any order
        at = next((k for k in fits if unused[k].dtype == answer.dtype), fits[0] if fits else 0)
        got = unused.pop(at)
        if hasattr(answer, "validator"):
            check = answer.validator
            made = check() if isinstance(check, type) else check
            if not made.validate(np.ascontiguousarray(got)):
                raise AssertionError(f"{name}: the test's own check says no")
            continue
        a, b = numbers(got), numbers(answer)
        if a.size != b.size:
            raise AssertionError(f"{name}: {a.shape}, expected {b.shape}")
        a = a.reshape(b.shape)
        finite = np.isfinite(b)
        norm = float(np.linalg.norm((a - b)[finite]) / max(np.linalg.norm(b[finite]), 1e-30))
        most = max(2e-2, float(getattr(tolerance, "relative_accuracy", 0) or 0))
        if not norm <= most:
            raise AssertionError(f"{name}: error {norm:.2e}, expected at most {most:.0e}")


class _Anything(types.ModuleType):
    """A module of the library's test machinery that our place does not need."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {"__init__": lambda self, *a, **k: None})


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """The last finder: what the test machinery imports and is not installed."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        root, _, child = name.partition(".")
        if root not in MACHINERY or (child and not isinstance(sys.modules.get(root), _Anything)):
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: Any) -> Any:
        return _Anything(spec.name)

    def exec_module(self, module: Any) -> None:
        module.__path__ = []


def stand_ins() -> None:
    """What stands between the tests and a device."""
    machinery = types.ModuleType("test.utils.test_orchestrator")
    machinery.Orchestrator = Orchestrator  # type: ignore[attr-defined]
    sys.modules["test.utils.test_orchestrator"] = machinery
    for name in ("host_management", "s3_utils", "sqs_emitter", "metrics_emitter", "composite_emitter", "core_lock_client"):
        sys.modules[f"test.utils.{name}"] = _Anything(f"test.utils.{name}")
    dtypes = types.ModuleType("neuron_dtypes")
    from trellis.nki.tensors.types import TYPES, is_float, to_dtype

    for name, (dtype, _) in TYPES.items():
        setattr(dtypes, name, dtype)
    dtypes.static_cast = static_cast  # type: ignore[attr-defined]
    dtypes.sizeinbytes = lambda dtype: to_dtype(dtype).itemsize  # type: ignore[attr-defined]
    sys.modules["neuron_dtypes"] = dtypes
    dtypes.is_float_type = lambda dtype: is_float(to_dtype(dtype))  # type: ignore[attr-defined]
    sys.meta_path.append(Finder())
    if not hasattr(enum, "StrEnum"):
        raise SystemExit("expected Python 3.11")


def static_cast(x: Any, given: Any = None, *, dtype: Any = None) -> Any:
    """Numbers as another type; four to an element where it is packed."""
    import ml_dtypes

    from trellis.nki.tensors.types import to_dtype

    dtype, x = to_dtype(dtype if given is None else given), np.asarray(x)
    if x.dtype.names:  # packed elements as numbers
        part = x[x.dtype.names[0]]
        if part.dtype == np.uint8:
            part = np.stack([part & 15, part >> 4], axis=-1).view(ml_dtypes.float4_e2m1fn)
        return part.reshape(*x.shape[:-1], -1).astype(dtype)
    if not dtype.names:
        return x.astype(dtype)
    element = dtype.fields[dtype.names[0]][0].base  # type: ignore[index]
    if element == np.uint8:
        nibbles = x.astype(ml_dtypes.float4_e2m1fn).view(np.uint8)
        small = nibbles[..., 0::2] | nibbles[..., 1::2] << 4
        return np.ascontiguousarray(small).view(dtype)
    return np.ascontiguousarray(x.astype(element)).view(dtype)


class Plugin:
    """pytest's: the tests' fixtures, a limit of time, and the outcomes."""

    def __init__(self, seconds: float, each: int) -> None:
        self.seconds, self.each = seconds, each
        self.rows: list[tuple[str, str, str]] = []

    def pytest_generate_tests(self, metafunc: Any) -> None:
        """The library's own mark, by which a test names its parameters' values: the first combinations that are valid."""
        mark = metafunc.definition.get_closest_marker("coverage_parametrize")
        if mark is None:
            return
        names = [k for k, v in mark.kwargs.items() if isinstance(v, (list, tuple))]
        valid = mark.kwargs.get("filter")
        needed = set(metafunc.fixturenames) - {"test_manager", "collector", "platform_target", "is_negative_test_case"}
        if needed - set(names) - {"request"}:  # other values than lists are the library's own machinery
            return
        made = []
        for values in itertools.product(*(mark.kwargs[n] for n in names)):
            if valid is None or getattr(valid(**dict(zip(names, values, strict=True))), "name", "VALID") == "VALID":
                made.append(values)
            if len(made) >= 4:
                break
        metafunc.parametrize(names, made)

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """The first few of each test's cases."""
        seen: dict[str, int] = {}
        kept = []
        for item in items:
            name = item.nodeid.split("[")[0]
            seen[name] = seen.get(name, 0) + 1
            if seen[name] <= self.each:
                kept.append(item)
        items[:] = kept

    def fixtures(self) -> Any:
        import pytest

        class Fixtures:
            @pytest.fixture
            def test_manager(self) -> Any:
                return Orchestrator()

            @pytest.fixture
            def collector(self) -> Any:
                return _Anything("collector")

            @pytest.fixture
            def platform_target(self) -> Any:
                from test.utils.common_dataclasses import Platforms

                return Platforms.TRN2

            @pytest.fixture
            def is_negative_test_case(self) -> bool:
                return False

        return Fixtures()

    def pytest_runtest_call(self, item: Any) -> Any:
        def late(*_: Any) -> None:
            raise Slow(f"longer than {self.seconds:.0f} s of a processor")

        signal.signal(signal.SIGPROF, late)
        signal.setitimer(signal.ITIMER_PROF, self.seconds)

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            last = str(report.longrepr).splitlines()[-1]
            self.rows.append((report.nodeid.split("/", 3)[-1], "failed", f"its file: {last[:300]}"))
            print(f"failed  {report.nodeid}: {last[:300]}", flush=True)

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.when == "call" or report.failed:
            signal.setitimer(signal.ITIMER_PROF, 0)
            text = ""
            if report.failed:
                crash = getattr(report.longrepr, "reprcrash", None)
                text = crash.message.splitlines()[0] if crash else str(report.longrepr).splitlines()[-1]
            self.rows.append((report.nodeid.split("/", 3)[-1], report.outcome, text[:300]))
            print(f"{report.outcome:7} {self.rows[-1][0]} {text[:220]}", flush=True)


def table(rows: list[tuple[str, str, str]]) -> str:
    out = ["| test | outcome | note |", "|---|---|---|"]
    out += [f"| {name} | {outcome} | {note.replace('|', '/')} |" for name, outcome, note in rows]
    files = dict.fromkeys(name.split("::")[0] for name, *_ in rows)
    out += ["", "| kernel's tests | tried | right |", "|---|---|---|"]
    for file in files:
        mine = [outcome for name, outcome, _ in rows if name.startswith(file)]
        out.append(f"| {file} | {len(mine)} | {mine.count('passed')} |")
    out.append(f"| all | {len(rows)} | {sum(outcome == 'passed' for _, outcome, _ in rows)} |")
    return "\n".join(out) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--only", default="", help="tests whose name has this text (pytest's -k)")
    parser.add_argument("--folder", default="test/integration/nkilib/core")
    parser.add_argument("--seconds", type=float, default=120, help="of a processor, for each test")
    parser.add_argument("--each", type=int, default=10**9, help="at most so many cases of each test")
    parser.add_argument("-o", type=Path, metavar="TABLE.md")
    options = parser.parse_args()
    import os

    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    import pytest

    import trellis.nki

    root = options.checkout.resolve()
    os.chdir(root)
    sys.path[:0] = [str(root), str(root / "src")]
    warnings.simplefilter("ignore")
    with trellis.nki.as_nki(rules="device"):
        stand_ins()
        plugin = Plugin(options.seconds, options.each)
        pytest.main(["-c", "/dev/null", "--rootdir", str(root), "--noconftest", "-p", "no:cacheprovider", "--continue-on-collection-errors", "-W", "ignore",
                     "-p", "no:terminal", "-m", "fast", *(["-k", options.only] if options.only else []),
                     *options.folder.split(",")], plugins=[plugin, plugin.fixtures()])
    text = table(plugin.rows)
    print(text[text.index("| kernel's tests"):])
    if options.o:
        options.o.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
