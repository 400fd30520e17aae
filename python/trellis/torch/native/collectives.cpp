// Operations whose result is a sum, or one rank's data on all ranks.
#include <ATen/ATen.h>

#include "trellis/torch/native/issue_operation.h"
#include "trellis/torch/native/tensors/argument_checks.h"

namespace trellis::process_group {

using c10d::OpType;
using ccl::Communicator;

// Block r of every rank, reduced on rank r: for reductions that no kernel does.
at::Tensor TrellisBackend::exchanged_and_folded(const at::Tensor& blocks, const c10d::ReduceOp& op) {
  at::Tensor arrived = at::empty_like(blocks);
  const TorchElements elements = moved(blocks.scalar_type());
  comm_->all_to_all(blocks.data_ptr(), arrived.data_ptr(), blocks.numel() / size_ * elements.each, elements.type);
  return folded(arrived, op);
}

void TrellisBackend::sum(const at::Tensor& tensor, const c10d::ReduceOp& op) {
  FlatTensor flat(tensor);
  if (const auto reduction = reduction_of(tensor.scalar_type(), op)) {
    comm_->all_reduce(flat.data(), flat.data(), flat.count() * reduction->elements.each, reduction->elements.type,
                      reduction->op);
  } else {
    const std::int64_t count = tensor.numel(), block = (count + size_ - 1) / size_;
    at::Tensor blocks = at::zeros({size_ * block}, flat.tensor().options());
    blocks.narrow(0, 0, count).copy_(flat.tensor().view({-1}));
    gather_all(blocks, exchanged_and_folded(blocks.view({size_, block}), op));
    flat.tensor().view({-1}).copy_(blocks.narrow(0, 0, count));
  }
  flat.give_back();
}

TrellisBackend::Work TrellisBackend::broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) {
  const at::Tensor tensor = only("broadcast", tensors);
  check_dense("broadcast", tensor);
  check_peer("the root of broadcast", static_cast<int>(options.rootRank));
  const auto root = static_cast<ccl::Rank>(options.rootRank);
  return issue(
      {OpType::BROADCAST, "trellis:broadcast", options.timeout, options.asyncOp, {"broadcast", tensor.nbytes(), root}},
      tensors, [tensor, root](Communicator& comm) {
        FlatTensor flat(tensor);
        const TorchElements elements = moved(tensor.scalar_type());
        comm.broadcast(flat.data(), flat.data(), flat.count() * elements.each, elements.type, root);
        flat.give_back();
      });
}

TrellisBackend::Work TrellisBackend::allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) {
  const at::Tensor tensor = only("all_reduce", tensors);
  if (tensor.is_sparse()) return allreduce_sparse(tensors, options);
  check_dense("all_reduce", tensor);
  reduction_of(tensor.scalar_type(), options.reduceOp);
  return issue(
      {OpType::ALLREDUCE, "trellis:all_reduce", options.timeout, options.asyncOp, {"all_reduce", tensor.nbytes()}},
      tensors, [this, tensor, op = options.reduceOp](Communicator&) { sum(tensor, op); });
}

TrellisBackend::Work TrellisBackend::allreduce_coalesced(Tensors& tensors,
                                                         const c10d::AllreduceCoalescedOptions& options) {
  for (const at::Tensor& tensor : tensors) {
    check_dense("all_reduce_coalesced", tensor);
    reduction_of(tensor.scalar_type(), options.reduceOp);
  }
  return issue({OpType::ALLREDUCE_COALESCED,
                "trellis:all_reduce",
                options.timeout,
                options.asyncOp,
                {"all_reduce", bytes_of(tensors)}},
               tensors, [this, tensors, op = options.reduceOp](Communicator&) {
                 for (const at::Tensor& tensor : tensors) sum(tensor, op);
               });
}

// The sum of sparse tensors: all ranks' indices and values, joined.
TrellisBackend::Work TrellisBackend::allreduce_sparse(Tensors& tensors, const c10d::AllreduceOptions& options) {
  const at::Tensor tensor = only("all_reduce", tensors);
  TORCH_CHECK_VALUE(options.reduceOp == c10d::ReduceOp::SUM, "trellis: sparse tensors can only be summed");
  TORCH_CHECK_VALUE(!estimate_.on(), "trellis: no estimate of a sparse sum: its size depends on data");
  return issue({OpType::_ALLREDUCE_SPARSE, "trellis:all_reduce", options.timeout, options.asyncOp, {"all_gather"}},
               tensors, [this, tensor](Communicator&, TorchWork& work) mutable {
                 const at::Tensor own = tensor.coalesce();
                 const auto own_count = at::full({1}, own._nnz(), at::kLong);
                 at::Tensor counts = at::empty({size_}, at::kLong);
                 gather_all(counts, own_count);
                 const std::int64_t most = std::max<std::int64_t>(counts.max().item<std::int64_t>(), 1);
                 const auto padded = [&](const at::Tensor& rows) {
                   auto sizes = rows.sizes().vec();
                   sizes[0] = most;
                   at::Tensor all = at::zeros(sizes, rows.options());
                   all.narrow(0, 0, rows.size(0)).copy_(rows);
                   sizes.insert(sizes.begin(), size_);
                   at::Tensor gathered = at::empty(sizes, rows.options());
                   gather_all(gathered, all);
                   return gathered;
                 };
                 const at::Tensor indices = padded(own._indices().t().contiguous()),
                                  values = padded(own._values().contiguous());
                 work.was({counts.nbytes(), indices.nbytes(), values.nbytes()});
                 std::vector<at::Tensor> whose, what;
                 for (int rank = 0; rank < size_; ++rank) {
                   const auto count = counts[rank].item<std::int64_t>();
                   whose.push_back(indices[rank].narrow(0, 0, count));
                   what.push_back(values[rank].narrow(0, 0, count));
                 }
                 const auto sum = at::sparse_coo_tensor(at::cat(whose).t(), at::cat(what), tensor.sizes());
                 tensor.copy_(sum.coalesce());
               });
}

TrellisBackend::Work TrellisBackend::reduce(Tensors& tensors, const c10d::ReduceOptions& options) {
  const at::Tensor tensor = only("reduce", tensors);
  check_dense("reduce", tensor);
  check_peer("the root of reduce", static_cast<int>(options.rootRank));
  reduction_of(tensor.scalar_type(), options.reduceOp);
  const auto root = static_cast<ccl::Rank>(options.rootRank);
  return issue({OpType::REDUCE, "trellis:reduce", options.timeout, options.asyncOp, {"reduce", tensor.nbytes(), root}},
               tensors, [this, tensor, root, op = options.reduceOp](Communicator& comm) {
                 const auto reduction = reduction_of(tensor.scalar_type(), op);
                 if (!reduction) {
                   const at::Tensor all = tensor.clone();
                   sum(all, op);
                   if (rank_ == root) tensor.copy_(all);
                   return;
                 }
                 FlatTensor flat(tensor);
                 comm.reduce(flat.data(), rank_ == root ? flat.data() : nullptr,
                             flat.count() * reduction->elements.each, reduction->elements.type, reduction->op, root);
                 if (rank_ == root) flat.give_back();
               });
}

void TrellisBackend::sum_and_scatter(const at::Tensor& out, const at::Tensor& in, const c10d::ReduceOp& op) {
  FlatTensor result(out), input(in);
  if (const auto reduction = reduction_of(in.scalar_type(), op)) {
    comm_->reduce_scatter(input.data(), result.data(), result.count() * reduction->elements.each,
                          reduction->elements.type, reduction->op);
  } else {
    result.tensor().copy_(exchanged_and_folded(input.tensor().view({size_, out.numel()}), op).view(out.sizes()));
  }
  result.give_back();
}

TrellisBackend::Work TrellisBackend::_reduce_scatter_base(at::Tensor& out, at::Tensor& in,
                                                          const c10d::ReduceScatterOptions& options) {
  std::vector<at::Tensor> outs{out}, ins{in};
  return reduce_scatter_tensor_coalesced(outs, ins, options);
}

TrellisBackend::Work TrellisBackend::reduce_scatter_tensor_coalesced(Tensors& outs, Tensors& ins,
                                                                     const c10d::ReduceScatterOptions& options) {
  TORCH_CHECK_VALUE(outs.size() == ins.size(), "trellis: reduce_scatter of ", ins.size(), " tensors into ",
                    outs.size());
  for (std::size_t i = 0; i < ins.size(); ++i) {
    check_blocks("reduce_scatter", ins[i], outs[i], size_);
    reduction_of(ins[i].scalar_type(), options.reduceOp);
  }
  return issue({OpType::_REDUCE_SCATTER_BASE,
                "trellis:reduce_scatter_tensor",
                options.timeout,
                options.asyncOp,
                {"reduce_scatter", bytes_of(ins)},
                &ins},
               outs, [this, outs, ins, op = options.reduceOp](Communicator&) {
                 for (std::size_t i = 0; i < ins.size(); ++i) sum_and_scatter(outs[i], ins[i], op);
               });
}

TrellisBackend::Work TrellisBackend::reduce_scatter(Tensors& outs, Lists& ins,
                                                    const c10d::ReduceScatterOptions& options) {
  const at::Tensor out = only("reduce_scatter", outs);
  TORCH_CHECK_VALUE(ins.size() == 1 && static_cast<int>(ins.front().size()) == size_,
                    "trellis: reduce_scatter takes a list of ", size_, " tensors");
  const Tensors blocks = ins.front();
  TORCH_CHECK_VALUE(blocks[rank_].numel() == out.numel(), "trellis: reduce_scatter: the output has ", out.numel(),
                    " elements, its block ", blocks[rank_].numel());
  TORCH_CHECK_VALUE(blocks[rank_].scalar_type() == out.scalar_type(), "trellis: reduce_scatter: the input is ",
                    blocks[rank_].scalar_type(), ", the output ", out.scalar_type());
  reduction_of(out.scalar_type(), options.reduceOp);
  return issue({OpType::REDUCE_SCATTER,
                "trellis:reduce_scatter",
                options.timeout,
                options.asyncOp,
                {"reduce_scatter", bytes_of(blocks)},
                &blocks},
               outs, [this, out, blocks, op = options.reduceOp](Communicator& comm) {
                 const FlatTensorList row(blocks, FlatTensorList::For::reading);
                 const auto reduction = reduction_of(out.scalar_type(), op);
                 if (row.even()) return sum_and_scatter(out, row.tensor(), op);
                 TORCH_CHECK_VALUE(reduction,
                                   "trellis: reduce_scatter of blocks of different sizes has no such reduction");
                 FlatTensor result(out);
                 ccl::Call call{.operation = {.collective = schedule::Collective::reduce_scatter_v},
                                .input = row.data(),
                                .output = result.data(),
                                .type = reduction->elements.type,
                                .op = reduction->op,
                                .counts = row.counts()};
                 for (std::size_t& count : call.counts) count *= reduction->elements.each;
                 comm.run(call);
                 result.give_back();
               });
}

TrellisBackend::Work TrellisBackend::barrier(const c10d::BarrierOptions& options) {
  return issue({OpType::BARRIER, "trellis:barrier", options.timeout, options.asyncOp, {"barrier", 0}}, {},
               [](Communicator& comm) { comm.barrier(); });
}

}  // namespace trellis::process_group
