"""nki.benchmark and nki.profile: a kernel's time, where hardware would be measured."""

from typing import Any

from trellis.nki.kernels.jit import Kernel
from trellis.nki.kernels.session import NkiError
from trellis.nki.trace import Trace

__all__ = ["Benchmark", "Profile", "seconds_of"]


def seconds_of(trace: Trace) -> Any:
    """The timing of a trace, by trellis.nki.timing."""
    try:
        from trellis.nki.timing import time_of  # type: ignore[import-not-found, unused-ignore]
    except ImportError as e:
        raise NkiError(f"the time of {trace.name} needs trellis.nki.timing, which is not there: {e}") from e
    return time_of(trace)


class Latency:
    """What nc_latency answers: modelled, so each percentile is the one modelled time, but for p0 and p100, the
    interval."""

    def __init__(self, trace: Trace) -> None:
        self._trace, self._timing = trace, None

    @property
    def timing(self) -> Any:
        if self._timing is None:
            self._timing = seconds_of(self._trace)
        return self._timing

    def get_latency_percentile(self, percentile: float) -> float:
        """In microseconds."""
        value, least, most = self.timing.benchmark
        return float(least if percentile <= 0 else most if percentile >= 100 else value) * 1e6


class BenchmarkResult:
    def __init__(self, trace: Trace) -> None:
        self.nc_latency = Latency(trace)


class Benchmark(Kernel):
    """Runs a kernel, and keeps its time."""

    def launch(self, args: Any, kwargs: Any, **how: Any) -> Any:
        returned = super().launch(args, kwargs, **how)
        assert self.trace is not None
        self.benchmark_result = BenchmarkResult(self.trace)
        return returned


class Profile(Benchmark):
    """As Benchmark; the files that the device's profiler would write are not made."""
