"""Functional collectives, of DTensor and of torch.distributed._functional_collectives: they give new tensors, and a
`wait_tensor` before the first use."""

from typing import TYPE_CHECKING, Any

import torch
from torch._subclasses.fake_tensor import FakeTensor

from trellis.simulate.world.errors import CannotRecord
from trellis.simulate.world.groups import name_of
from trellis.simulate.world.recorder import size_of

if TYPE_CHECKING:
    from trellis.simulate.world.communication import Communication

__all__ = ["done"]


def _result(owner: "Communication", like: torch.Tensor, shape: list[int]) -> torch.Tensor:
    """A new tensor; of real data, what every rank is taken to have, repeated or cut."""
    if isinstance(like, FakeTensor):
        with owner.recorder.fake:
            out = like.new_empty(shape)
        owner.recorder.memory.see(out, owner.recorder.now())
        return out
    out = like.new_empty(shape)
    flat, into = like.reshape(-1), out.view(-1)
    for begin in range(0, into.numel(), max(flat.numel(), 1)):
        part = into[begin : begin + flat.numel()]
        part.copy_(flat[: part.numel()])
    return out


def done(owner: "Communication", func: Any, args: Any, kwargs: Any) -> Any:
    name = func._schema.name.partition("::")[2]
    given = dict(zip((a.name for a in func._schema.arguments), args, strict=False)) | kwargs
    if name == "wait_tensor":
        owner.wait_tensor(args[0])
        return args[0]
    if name == "_wrap_tensor_autograd":
        from torch.distributed._functional_collectives import AsyncCollectiveTensor

        return AsyncCollectiveTensor(args[0])
    if name in ("isend", "irecv", "batch_p2p_ops"):
        return _messages(owner, name, given)
    group = name_of(given["group_name"])
    members = owner.groups.of(group)[1]
    inputs = given.get("inputs") or [given["input"]]
    outputs = [_one(owner, name, given, tensor, group, len(members)) for tensor in inputs]
    return outputs if "inputs" in given else outputs[0]


def _one(owner: "Communication", name: str, given: Any, tensor: torch.Tensor, group: str, size: int) -> torch.Tensor:
    reduction = {"avg": "average"}.get(str(given.get("reduce_op", "")).lower(), str(given.get("reduce_op", "")).lower())
    base = name.removesuffix("_out").removesuffix("_coalesced")
    if base in ("all_reduce", "all_reduce_", "all_reduce_coalesced_"):
        out = tensor if base.endswith("_") else _result(owner, tensor, list(tensor.shape))
        if out is not tensor:
            owner.contents.put(out, owner.contents.value(tensor))
        owner.contents.add_up([out], group, reduction)
        return owner.pending(out, owner.collective("all_reduce", group, [tensor], size_of(tensor), reduction))
    if base == "all_gather_into_tensor":
        out = given.get("out")
        if out is None:
            out = _result(owner, tensor, [tensor.shape[0] * size, *tensor.shape[1:]])
        owner.contents.gathered(out, tensor)
        return owner.pending(out, owner.collective("all_gather", group, [tensor], size_of(out)))
    if base == "reduce_scatter_tensor":
        out = given.get("out")
        if out is None:
            out = _result(owner, tensor, [tensor.shape[0] // size, *tensor.shape[1:]])
        owner.contents.scattered(out, tensor, group, reduction)
        return owner.pending(out, owner.collective("reduce_scatter", group, [tensor], size_of(tensor), reduction))
    if base == "all_to_all_single":
        splits = given.get("output_split_sizes") or []
        rows = sum(splits) if splits else tensor.shape[0]
        out = _result(owner, tensor, [rows, *tensor.shape[1:]])
        return owner.pending(out, owner.exchange(out, tensor, splits, given.get("input_split_sizes"), group))
    if base in ("broadcast", "broadcast_"):
        out = tensor if base.endswith("_") else _result(owner, tensor, list(tensor.shape))
        if out is not tensor:
            owner.contents.put(out, owner.contents.value(tensor))
        owner.of_root([out], group, given["src"])
        return owner.pending(out, owner.collective("broadcast", group, [tensor], size_of(tensor), root=given["src"]))
    if base == "shard_dim_alltoall":
        shape = list(tensor.shape)
        shape[given["gather_dim"]] *= size
        shape[given["shard_dim"]] //= size
        out = _result(owner, tensor, shape)
        number = owner.collective("all_to_all", group, [tensor], size_of(tensor))
        owner.waited(number)
        return out
    raise CannotRecord(owner.recorder.places.now(), f"{name} is not known here", "use another collective")


def _messages(owner: "Communication", name: str, given: Any) -> Any:
    group = name_of(given["group_name"])
    if name == "batch_p2p_ops":
        for op, peer, tag, tensor in zip(given["op_list"], given["peer_list"], given["tag_list"], given["tensors"],
                                         strict=True):  # fmt: skip
            if op != "isend":
                owner.recorder.values.forget(tensor)
            owner.pending(tensor, owner.message("send" if op == "isend" else "receive", group, peer, tag, [tensor]))
        return given["tensors"]
    tensor = given["tensor"]
    peer, kind = (given["dst"], "send") if name == "isend" else (given["src"], "receive")
    members = owner.groups.of(group)[1]
    if kind == "receive":
        owner.recorder.values.forget(tensor)
    return owner.pending(tensor, owner.message(kind, group, members.index(peer), given["tag"], [tensor]))
