"""What of torch is replaced, so that a script finds the world that it expects."""

import contextlib
import inspect
import types
import weakref
from typing import Any

import torch
import torch.distributed as dist
from torch._subclasses.fake_tensor import FakeTensor
from torch.distributed import distributed_c10d as c10d

from trellis.simulate.record.resize import UNKNOWN
from trellis.simulate.world import flex, kernels, threads
from trellis.simulate.world.checkpoints import saving
from trellis.simulate.world.communication import Communication
from trellis.simulate.world.fakes import batch_norm, losses, recurrent
from trellis.simulate.world.groups import Groups
from trellis.simulate.world.imports import when_imported
from trellis.simulate.world.names import Names, here
from trellis.simulate.world.recorder import Recorder
from trellis.simulate.world.settings import Settings

__all__ = ["install"]

_BACKEND = "simulated"
_NOT_COMPILED = "torch.compile is taken as no change: no operations are merged"


def _create(common: Any, options: Any) -> Any:
    return torch._C._distributed_c10d.FakeProcessGroup._create_internal(common.group_rank, common.group_size)


def _groups(settings: Settings, groups: Groups) -> None:
    """torch's own makers of groups, over a backend that does nothing."""
    devices = ["cpu"] if settings.device == "cpu" else ["cpu", "neuron", "cuda"]
    dist.Backend.register_backend(_BACKEND, _create, extended_api=True, devices=devices)
    for device, backend in (("neuron", "neuron"), ("cuda", "nccl")):
        dist.Backend.default_device_backend_map[device] = backend
    begin, make = c10d.init_process_group, c10d._new_group_with_tag

    def init_process_group(backend: Any = None, init_method: Any = None, timeout: Any = None, world_size: int = -1,
                           rank: int = -1, *_: Any, **__: Any) -> None:  # fmt: skip
        begin(_BACKEND, store=dist.HashStore(), rank=settings.rank, world_size=settings.world)
        group = c10d._get_default_group()
        groups.default(group.group_name)
        groups.backends[group.group_name] = str(backend or "nccl").lower()

    def made(group: Any, ranks: list[int], description: str | None, backend: Any, within: int | None) -> Any:
        name = getattr(group, "group_name", None) if settings.rank in ranks else None
        groups.made(ranks, description, name, within)
        if name is not None:
            groups.backends[name] = str(backend or next(iter(groups.backends.values()))).lower()
        return group

    def new_group_with_tag(ranks: Any = None, timeout: Any = None, backend: Any = None, backend_options: Any = None,
                           pg_tag: Any = None, use_local_synchronization: bool = False, group_desc: Any = None,
                           device_id: Any = None, sort_ranks: bool = True) -> Any:  # fmt: skip
        group = make(ranks, timeout, None, None, pg_tag, use_local_synchronization, group_desc, None, sort_ranks)
        members = list(range(settings.world)) if ranks is None else sorted(ranks) if sort_ranks else list(ranks)
        return made(
            group, members, group_desc, backend, -1 if use_local_synchronization and ranks is not None else None
        )

    def split_group(parent_pg: Any = None, split_ranks: Any = None, timeout: Any = None, pg_options: Any = None,
                    group_desc: Any = None, backend: Any = None) -> Any:  # fmt: skip
        """`split_ranks` are places in the parent, whose members alone make the groups."""
        parent = parent_pg or c10d._get_default_group()
        family, members = groups.of(parent.group_name)
        mine = c10d.GroupMember.NON_GROUP_MEMBER if hasattr(c10d, "_NonGroupMember") else None  # as that torch's own
        for places in split_ranks or []:
            ranks = [members[place] for place in sorted(places)]
            group = make(ranks, timeout, None, None, None, True, group_desc, None, False)
            made(group, ranks, group_desc, backend, family or None)
            mine = group if settings.rank in ranks else mine
        return mine

    def get_backend(group: Any = None) -> str:
        return groups.backends.get((group or c10d._get_default_group()).group_name, "nccl")

    replaced = {"init_process_group": init_process_group, "_new_group_with_tag": new_group_with_tag,
                "split_group": split_group, "get_backend": get_backend}  # fmt: skip
    from torch.distributed import device_mesh

    for name, value in replaced.items():
        setattr(c10d, name, value)
        for module in (dist, device_mesh):
            if hasattr(module, name):
                setattr(module, name, value)
    dist.is_nccl_available = lambda: True
    dist.monitored_barrier = c10d.monitored_barrier = lambda *_, **__: None
    _alone()


def _alone() -> None:
    """What torch asks all ranks by a store, for most of which there is no process here."""
    level = dist.get_debug_level

    def get_debug_level() -> Any:
        """DETAIL makes torch compare what ranks do, by gloo."""
        return dist.DebugLevel.INFO if level() == dist.DebugLevel.DETAIL else level()

    dist.get_debug_level = c10d.get_debug_level = get_debug_level
    c10d._store_based_barrier = lambda *_, **__: None  # TORCH_DIST_INIT_BARRIER


def _objects() -> None:
    """Python objects travel in tensors of the host, whose data is real, whatever device a script names for them."""
    pack, host = c10d._object_to_tensor, torch.device("cpu")
    told: Any = lambda obj, device, *rest, **more: pack(obj, host, *rest, **more)  # noqa: E731
    c10d._object_to_tensor = told
    c10d._get_object_coll_device = lambda group=None: "cpu"
    for name in ("recv_object_list", "broadcast_object_list"):
        move = getattr(c10d, name)

        def moved(*args: Any, _move: Any = move, **kwargs: Any) -> Any:
            return _move(*args, **{k: v for k, v in kwargs.items() if k != "device"})

        setattr(c10d, name, moved)
        setattr(dist, name, moved)


def _meshes(groups: Groups) -> None:
    from torch.distributed import device_mesh

    init, mesh = device_mesh.init_device_mesh, device_mesh.DeviceMesh.__init__

    def init_device_mesh(device_type: str, *args: Any, **kwargs: Any) -> Any:
        return init(here(device_type), *args, **kwargs)

    def of_device(self: Any, device_type: str, *args: Any, **kwargs: Any) -> None:
        mesh(self, here(device_type), *args, **kwargs)
        for name, size in zip(self.mesh_dim_names or (), self.shape, strict=False):
            groups.axis(name, size)

    device_mesh.init_device_mesh = dist.init_device_mesh = init_device_mesh
    device_mesh.DeviceMesh.__init__ = of_device  # type: ignore[method-assign]


def _mixed_precision() -> None:
    cast = torch.amp.autocast_mode.autocast
    begin = cast.__init__

    def of_device(self: Any, device_type: str, *args: Any, **kwargs: Any) -> None:
        begin(self, here(device_type), *args, **kwargs)

    cast.__init__ = of_device  # type: ignore[method-assign]

    def asked(ask: Any) -> Any:
        """Where no device is named, torch means cuda."""

        def of_here(*given: Any, device_type: str = "cuda", **more: Any) -> Any:
            if given and isinstance(given[0], str):
                device_type, *given = given  # type: ignore[assignment]
            return ask(here(device_type), *given, **more)

        return of_here

    for name in ("is_autocast_enabled", "get_autocast_dtype", "set_autocast_enabled", "set_autocast_dtype"):
        setattr(torch, name, asked(getattr(torch, name)))
    torch.get_autocast_gpu_dtype = torch.get_autocast_dtype  # type: ignore[assignment]
    torch.set_autocast_gpu_dtype = torch.set_autocast_dtype  # type: ignore[assignment]


def _backward(communication: Communication, names: Names, on_device: bool) -> None:
    """Backward runs on the thread that calls it, and ends with the reducer's waits."""
    torch.autograd.set_multithreading_enabled(False)
    run = torch.autograd.graph._engine_run_backward

    def run_backward(*args: Any, **kwargs: Any) -> Any:
        with names if on_device else contextlib.nullcontext():  # hooks compute, too
            done = run(*args, **kwargs)
        communication.backward_ended()
        return done

    torch.autograd.graph._engine_run_backward = run_backward
    torch.autograd._engine_run_backward = run_backward  # type: ignore[attr-defined]


def _moved(parameter: Any, fn: Any) -> Any:
    """What the parameter becomes, if that is fake: it is moved once, however many modules share it. Else None."""
    known = parameter.__dict__.get("_moved_to")
    if known is None:
        with torch.no_grad():
            moved = fn(parameter)
        if not isinstance(moved, FakeTensor):
            return None
        known = parameter if moved is parameter else torch.nn.Parameter(moved.detach(), parameter.requires_grad)
        if known is not parameter:
            parameter._moved_to = known
    return known


def _optimizers_that_follow() -> Any:
    """What lets optimizers that were made before their model was moved have the parameters that it has now."""
    made: weakref.WeakSet[torch.optim.Optimizer] = weakref.WeakSet()
    begin = torch.optim.Optimizer.__init__

    def begun(self: Any, *args: Any, **kwargs: Any) -> None:
        begin(self, *args, **kwargs)
        made.add(self)

    torch.optim.Optimizer.__init__ = begun  # type: ignore[method-assign]

    def follow() -> None:
        for optimizer in made:
            for group in optimizer.param_groups:
                now = [p.__dict__.get("_moved_to", p) for p in group["params"]]
                for before, after in zip(group["params"], now, strict=True):
                    if after is not before and before in optimizer.state:
                        optimizer.state[after] = optimizer.state.pop(before)
                group["params"] = now

    return follow


def _modules() -> None:
    """A module whose parameters are fake on the host, or become so, gets others when it is moved to the device."""
    apply = torch.nn.Module._apply
    follow = _optimizers_that_follow()

    def moves(parameter: Any) -> bool:
        return isinstance(parameter, FakeTensor) or (type(parameter) is torch.nn.Parameter and parameter.is_cpu)

    def moved(self: torch.nn.Module, fn: Any, recurse: bool = True) -> torch.nn.Module:
        if recurse:
            for child in self.children():
                child._apply(fn)
        told = {key: _moved(p, fn) for key, p in self._parameters.items() if moves(p)}
        others = {key: other for key, other in told.items() if other is not None}
        before = [self._parameters[key] for key in others]
        for key in others:
            self._parameters[key] = None
        apply(self, fn, recurse=False)
        self._parameters.update(others)
        if any(other is not one for other, one in zip(others.values(), before, strict=True)):
            follow()
        return self

    torch.nn.Module._apply = moved  # type: ignore[method-assign]


def _sharded_at_first(recorder: Recorder) -> None:
    """FullyShardedDataParallel moves a module's own parameters by their data: here as modules are moved."""
    from torch.distributed.fsdp import _flat_param, _init_utils

    def same(*tensors: Any) -> bool:
        one, other = (getattr(tensor, "_local_tensor", tensor).untyped_storage() for tensor in tensors)
        return bool(one._cdata == other._cdata)

    asked = {"_data_ptr_allocated": lambda tensor: tensor.untyped_storage().size() > 0, "_same_storage": same}
    for name, answer in asked.items():  # by the addresses of data, which are not there
        if hasattr(_flat_param, name):
            setattr(_flat_param, name, answer)

    def move(module: torch.nn.Module, ignored: Any, ignored_buffers: Any, device: Any) -> None:
        recorder.record.sharded[UNKNOWN] = {}
        held = [*module.parameters(), *module.buffers()]
        if device is not None and any(t.device.type == "cpu" for t in held):
            module.to(device)

    named = _init_utils._get_device_from_device_id
    _init_utils._get_device_from_device_id = lambda *given: here(named(*given))
    _init_utils._move_module_to_device = move  # type: ignore[assignment]


def _profilers(recorder: Recorder) -> None:
    """torch's profilers see this host alone. Asked for an event of the device at each operation they would print a
    stack."""
    from torch.autograd import profiler

    begin, mark = profiler.profile.__init__, profiler.emit_nvtx.__init__

    def of_host(self: Any, *args: Any, use_cuda: bool = False, use_device: Any = None, use_cpu: bool = True,
                **more: Any) -> None:  # fmt: skip
        if use_cuda or use_device:
            recorder.assume("the job profiles itself: it is told of this host's times alone")
        begin(self, *args, use_cpu=True, **more)

    profiler.profile.__init__ = of_host  # type: ignore[method-assign]
    profiler.emit_nvtx.__init__ = lambda self, *_, **__: mark(self, enabled=False)  # type: ignore[method-assign]


def _spawned(settings: Settings) -> None:
    """A script that starts the ranks of its host by itself: this process is one of them."""
    import torch.multiprocessing as mp

    def spawn(fn: Any, args: Any = (), nprocs: int = 1, *_: Any, **__: Any) -> None:
        fn(settings.rank % max(nprocs, 1), *args)

    mp.spawn = spawn  # type: ignore[assignment]
    mp.start_processes = spawn  # type: ignore[assignment]


def _untraced(module: types.ModuleType) -> None:
    """transformers masks attention in another way where it takes tensors for those of a tracer."""
    module.is_fake_tensor = lambda x: False  # type: ignore[attr-defined]


def _rest(recorder: Recorder) -> None:
    def compile_nothing(model: Any = None, **_: Any) -> Any:
        recorder.assume(_NOT_COMPILED)
        return recorder.places.compile if model is None else recorder.places.compile(model)

    def compile_in_place(module: torch.nn.Module, *_: Any, **__: Any) -> None:
        recorder.assume(_NOT_COMPILED)
        recorder.places.compile_in_place(module)

    torch.compile = compile_nothing  # type: ignore[assignment]
    torch.nn.Module.compile = compile_in_place  # type: ignore[assignment,method-assign]
    resize = torch.UntypedStorage.resize_

    def resized(self: Any, size: int) -> Any:
        done = resize(self, size)
        recorder.memory.resized(self)
        return done

    torch.UntypedStorage.resize_ = resized  # type: ignore[method-assign]
    from torch.nn.parallel import distributed
    from torch.utils import data

    distributed._verify_param_shape_across_processes = lambda *_, **__: True  # type: ignore[assignment]
    load = data.DataLoader.__init__
    accepts = inspect.signature(load)

    def load_here(self: Any, *args: Any, **kwargs: Any) -> None:
        given = accepts.bind(self, *args, **kwargs)
        for name in ("prefetch_factor", "persistent_workers", "multiprocessing_context", "timeout"):
            given.arguments.pop(name, None)
        given.arguments |= {"num_workers": 0, "pin_memory": False}
        load(*given.args, **given.kwargs)

    data.DataLoader.__init__ = load_here  # type: ignore[method-assign]


def install(settings: Settings, recorder: Recorder, groups: Groups, communication: Communication, names: Names) -> None:
    _groups(settings, groups)
    if settings.device != "cpu":
        _objects()
        _meshes(groups)
        _mixed_precision()
        _modules()
        _sharded_at_first(recorder)
        batch_norm.install(recorder)
        recurrent.install(recorder)
        losses.install()
        _profilers(recorder)
        names.install()
        kernels.install(recorder)
        flex.install(recorder)
        threads.install(recorder)
    _backward(communication, names, settings.device != "cpu")
    _rest(recorder)
    _spawned(settings)
    saving.install(recorder, communication)
    when_imported("transformers.utils.import_utils", _untraced)
