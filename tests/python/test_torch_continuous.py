"""PyTorch's base class whose ranks stay for all tests of a class, MultiProcContinuousTest, with our backend."""

import pytest

pytest.importorskip("expecttest")
torch = pytest.importorskip("torch")

import torch.distributed as dist  # noqa: E402
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor  # noqa: E402
from torch.testing._internal.common_distributed import MultiProcContinuousTest  # noqa: E402

import trellis.torch  # noqa: E402, F401


class Continuous(MultiProcContinuousTest):
    world_size = 3

    @classmethod
    def backend_str(cls):
        return "trellis"

    @classmethod
    def device_type(cls):
        return "cpu"

    def test_every_rank_is_there(self):
        self.assertEqual(dist.get_backend(), "trellis")
        self.assertEqual((dist.get_rank(), dist.get_world_size()), (self.rank, self.world_size))

    def test_collectives(self):
        mine = torch.full((5,), float(self.rank + 1))
        total = mine.clone()
        dist.all_reduce(total)
        self.assertEqual(total, torch.full((5,), 6.0))
        gathered = torch.empty(15)
        dist.all_gather_into_tensor(gathered, mine)
        self.assertEqual(gathered, torch.arange(1.0, 4.0).repeat_interleave(5))
        names = [None] * self.world_size
        dist.all_gather_object(names, {"rank": self.rank})
        self.assertEqual(names, [{"rank": rank} for rank in range(self.world_size)])

    def test_messages_go_around(self):
        after, before = (self.rank + 1) % self.world_size, (self.rank - 1) % self.world_size
        arrived = torch.zeros(1, dtype=torch.int64)
        work = [dist.isend(torch.tensor([self.rank]), after), dist.irecv(arrived, before)]
        for one in work:
            one.wait()
        self.assertEqual(arrived.item(), before)

    def test_sub_groups_come_and_go(self):
        for _ in range(3):
            group = dist.new_group([0, 2])
            if self.rank != 1:
                value = torch.ones(1)
                dist.all_reduce(value, group=group)
                self.assertEqual(value.item(), 2)
                dist.destroy_process_group(group)

    def test_dtensor_changes_its_placement(self):
        mesh = dist.init_device_mesh("cpu", (self.world_size,))
        whole = torch.arange(7 * 4, dtype=torch.float32).reshape(7, 4).requires_grad_()
        for dim in (0, 1):
            sharded = distribute_tensor(whole, mesh, [Shard(dim)])
            self.assertEqual(sharded.redistribute(mesh, [Replicate()]).to_local(), whole)
            self.assertEqual(sharded.redistribute(mesh, [Shard(1 - dim)]).full_tensor(), whole)
        partial = DTensor.from_local(whole, mesh, [Partial()])
        self.assertEqual(partial.redistribute(mesh, [Replicate()]).to_local(), whole * self.world_size)
        self.assertEqual(partial.redistribute(mesh, [Shard(0)]).full_tensor(), whole * self.world_size)
        partial.redistribute(mesh, [Shard(1)]).to_local().sum().backward()
        self.assertEqual(whole.grad, torch.ones_like(whole))
