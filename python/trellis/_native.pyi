"""Parts of libtrellis: what the package's own modules use."""

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy.typing as npt

_Array = npt.NDArray[Any]

class Region:
    data: Region
    input: Region
    output: Region
    scratch: Region

class Place:
    def __init__(self, rank: int, region: Region, first: int, count: int = 1) -> None: ...
    rank: Final[int]
    region: Final[Region]
    first: Final[int]
    count: Final[int]

class Moves:
    def __init__(
        self,
        collective: str,
        ranks: int,
        pieces: int = 1,
        root: int = 0,
        peer: int = 0,
        in_place: bool = False,
        pairs: Sequence[tuple[int, int]] = ...,
    ) -> None: ...
    def round(self) -> None: ...
    def copy(self, source: Place, target: Place, channel: int = 0) -> None: ...
    def reduce(self, source: Place, target: Place, channel: int = 0) -> None: ...
    def finish(self, name: str) -> Schedule: ...

class Schedule:
    collective: Final[str]
    ranks: Final[int]
    steps: Final[int]
    algorithm: Final[str]
    channels: Final[int]
    def program(self, rank: int) -> list[dict[str, Any]]: ...
    def text(self) -> str: ...
    def msccl_xml(self) -> str: ...
    def verify(self) -> tuple[bool, str, int, int, bool]: ...

class MachineSpec:
    name: str
    chip: str
    levels: Final[list[tuple[str, str, list[int]]]]
    def set_dims(self, level: int, dims: Sequence[int]) -> None: ...
    figures: Final[dict[str, tuple[float, str, str, float, float, str]]]
    digest: Final[str]
    def set_figure(self, key: str, value: str | float) -> None: ...
    def what_if(self, change: str) -> None: ...
    def facts(self) -> dict[str, Any]: ...
    def route(self, source: int, target: int) -> list[tuple[str, float, int]]: ...

class CoreProgram:
    name: Final[str]
    instructions: Final[int]
    buffers: Final[list[tuple[str, str, str, int]]]
    def text(self) -> str: ...
    def unwritten_reads(self) -> list[str]: ...
    def check(self, chip: str) -> None: ...
    def run(
        self, chip: str, compute: bool, inputs: Sequence[tuple[str, _Array]], outputs: Sequence[tuple[str, _Array]]
    ) -> dict[str, Any]: ...

class AdamWCall:
    keep: str
    gradient_type: str
    moment_type: str
    weights: int
    rest: int
    gradient: int
    first: int
    second: int
    count: int
    learning_rate: float
    beta1: float
    beta2: float
    epsilon: float
    weight_decay: float
    scale: float
    step: int
    seed: int
    tensor: int
    offset: int
    threads: int
    def run(self) -> None: ...

def make_schedule(
    config: str,
    collective: str,
    dims: Sequence[int],
    root: int = 0,
    peer: int = 0,
    in_place: bool = False,
    pairs: Sequence[tuple[int, int]] = ...,
) -> Schedule: ...
def parse_schedule(text: str) -> Schedule: ...
def parse_msccl(xml: str) -> Schedule: ...
def parse_mscclpp(json: str) -> Schedule: ...
def algorithms() -> list[tuple[str, str, str, list[str]]]: ...
def collectives() -> list[str]: ...
def run_schedule(
    schedule: Schedule,
    inputs: Sequence[_Array],
    outputs: Sequence[_Array],
    count: int,
    dtype: str,
    op: str = "sum",
    timeout_s: float = 30.0,
    counts: Sequence[Sequence[int]] = ...,
    arriving_counts: Sequence[Sequence[int]] = ...,
) -> None: ...
def machine_spec(name: str) -> MachineSpec: ...
def machine_file(typed: str) -> str | None: ...
def machine_of_file(typed: str, path: str, text: str) -> MachineSpec: ...
def machine_names() -> list[str]: ...
def chip_names() -> list[str]: ...
def chip_figures(name: str) -> dict[str, tuple[float, str, str, float, float, str]]: ...
def price(
    machine: MachineSpec,
    schedule: Schedule | None,
    collective: str,
    bytes: float,
    config: str = "",
    ranks: int = 0,
    root: int = 0,
    element: float = 4.0,
    era: str = "",
    fold: bool = True,
    in_place: bool = False,
    interval: bool = True,
    explain: bool = True,
) -> dict[str, Any]: ...
def timeline(machine: MachineSpec, schedule: Schedule, bytes: float) -> dict[str, Any]: ...
def play(
    machine: MachineSpec,
    name: str,
    text: str,
    algorithm: str = "",
    era: str = "",
    flops: float = 0.0,
    memory: float = 0.0,
    within: float = 0.0,
    most_effort: int = 0,
) -> dict[str, Any]: ...

class CoreChip:
    def __init__(self, name: str, changes: Sequence[tuple[str, str]], end: int) -> None: ...
    sbuf_bytes: Final[float]

class CoreDraft:
    def __init__(
        self,
        name: str,
        buffer_names: Sequence[str],
        buffers: _Array,
        views: _Array,
        kinds: Sequence[str],
        instructions: _Array,
        view_numbers: _Array,
        keys: _Array,
        values: _Array,
        follows: Sequence[tuple[int, int]],
        after: Sequence[tuple[int, int]],
        lines: Sequence[str],
    ) -> None: ...
    def assemble(
        self, chip: CoreChip, window: int, critical_path: bool, copies: int, fuse: bool, regions: bool,
        spill: bool
    ) -> CoreAssembled: ...

class CoreAssembled:
    order: Final[_Array]
    engines: Final[_Array]
    spilled_bytes: Final[int]
    most_sbuf: Final[int]
    most_psum: Final[int]
    program: Final[CoreProgram]
    def time(self, chip: CoreChip, keep_timeline: bool) -> CoreTimedRun: ...

class CoreTimedRun:
    totals: Final[dict[str, Any]]
    start: Final[_Array]
    end: Final[_Array]
    def path(self) -> list[tuple[str, str, str, int, int]]: ...
    def summary(self) -> str: ...
    def html(self, title: str, introduction: str, made_by: Sequence[tuple[str, str]]) -> str: ...
    def perfetto(self, made_by: Sequence[tuple[str, str]]) -> bytes: ...

def core_vocabulary() -> dict[str, list[str]]: ...
def dtype_names() -> list[str]: ...
def widened(middle: float, low: float, high: float, kind: str) -> tuple[float, float]: ...
def operation_time(
    chip: str,
    what_if: Sequence[str],
    cores: float,
    kind: str,
    rows: int,
    columns: int,
    inner: int,
    batch: int,
    shared: int,
    type: str,
    result: str,
    fused: bool,
    accumulate: bool,
    causal: bool,
    flash: bool,
    dropout: bool,
    inputs: float,
    outputs: float,
    vector: float,
    scalar: float,
) -> dict[str, Any]: ...
def operation_kinds() -> dict[str, str]: ...
def parse_core_program(text: str) -> CoreProgram: ...
def shipped_core_program(name: str, chip: str, settings: Sequence[tuple[str, str]]) -> CoreProgram: ...
def shipped_core_programs() -> list[tuple[str, str, list[tuple[str, str, float | str]]]]: ...
def element_bytes(type: str) -> int: ...
def cast(
    source_type: str,
    source: int,
    target_type: str,
    target: int,
    count: int,
    rounding: str = "nearest",
    seed: int = 0,
    step: int = 0,
    tensor: int = 0,
    offset: int = 0,
) -> None: ...

class TrainConfig:
    notes: Final[list[str]]
    settings: Final[list[tuple[str, str]]]
    seq_length: Final[int]
    max_steps: Final[int]
    log_every_n_steps: Final[int]
    validation_samples: Final[int | None]
    cut_attention: Final[bool]
    learning_rate: Final[float]
    folder: Final[str]
    def set_groups(self, group: Callable[[str], tuple[float, float]]) -> None: ...

def train_config(name: str, text: str, changes: Sequence[str]) -> TrainConfig: ...

class World:
    def __init__(self) -> None: ...
    rank: Final[int]
    ranks: Final[int]
    def barrier(self) -> None: ...
    def finalize(self) -> None: ...

class Job:
    def __init__(self, config: TrainConfig, world: World, threads: int) -> None: ...
    micro_batches: Final[int]
    micro_batch_size: Final[int]
    data_rank: Final[int]
    data_ranks: Final[int]
    parameters: Final[list[tuple[str, tuple[int, int], tuple[int, int], tuple[int, int], bool, bool]]]
    def set_batch(self, micro: int, tokens: _Array, labels: _Array, starts: _Array | None = None) -> None: ...
    def run(self, step: int, learning_rate: float) -> tuple[float, float]: ...
    def values(self, name: str) -> _Array: ...
    # Every rank calls it: with ZeRO-1 they exchange what it gives.
    def gradients(self, name: str) -> _Array: ...
    def fill(self, name: str, values: _Array) -> None: ...
    def save(self, root: str, step: int) -> str: ...
    def load(self, path: str) -> int: ...

class StepRecord:
    step: Final[int]
    loss: Final[float]
    learning_rate: Final[float]
    gradient_norm: Final[float]
    seconds: Final[float]
    tokens_per_second: Final[float]
    mfu: Final[float]
    validation_loss: Final[float]

def train_fit(
    config: TrainConfig,
    world: World,
    on_event: Callable[..., tuple[bool, list[tuple[str, float]]]],
    say: Callable[[str], None],
    data: Any,
    val_data: Any,
    learning_rate: Callable[[int], float] | None,
    ckpt_path: str = "",
) -> list[StepRecord]: ...
