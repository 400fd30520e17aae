// Operations that collect, distribute and exchange blocks.
#include <ATen/ATen.h>

#include "trellis/torch/native/issue_operation.h"
#include "trellis/torch/native/tensors/argument_checks.h"

namespace trellis::process_group {

using c10d::OpType;
using ccl::Communicator;
using schedule::Collective;

namespace {

using Splits = std::vector<std::int64_t>;

void scale(std::vector<std::size_t>& counts, std::size_t each) {
  for (std::size_t& count : counts) count *= each;
}

// The elements of each block. torch gives rows of the first dimension, or nothing for equal blocks.
std::vector<std::size_t> counts_of(const char* whose, const at::Tensor& tensor, const Splits& rows, int size) {
  const std::int64_t all = tensor.dim() > 0 ? tensor.size(0) : 1;
  if (rows.empty()) {
    TORCH_CHECK_VALUE(all % size == 0, "trellis: all_to_all: the ", whose, "'s first dimension, ", all,
                      ", is no multiple of the ", size, " ranks");
    return std::vector<std::size_t>(size, static_cast<std::size_t>(tensor.numel() / size));
  }
  std::int64_t sum = 0;
  for (const std::int64_t part : rows) sum += part;
  TORCH_CHECK_VALUE(static_cast<int>(rows.size()) == size && sum == all, "trellis: all_to_all: the ", whose, "'s ",
                    rows.size(), " splits have ", sum, " rows in all, expected ", size, " splits of ", all);
  std::vector<std::size_t> counts;
  for (const std::int64_t part : rows)
    counts.push_back(static_cast<std::size_t>(all == 0 ? 0 : part * (tensor.numel() / all)));
  return counts;
}

void exchange(Communicator& comm, const void* in, void* out, std::vector<std::size_t> counts,
              std::vector<std::size_t> arriving, TorchElements elements) {
  scale(counts, elements.each);
  scale(arriving, elements.each);
  comm.run({.operation = {.collective = Collective::all_to_all_v},
            .input = in,
            .output = out,
            .type = elements.type,
            .counts = std::move(counts),
            .arriving_counts = std::move(arriving)});
}

}  // namespace

void TrellisBackend::gather_all(const at::Tensor& out, const at::Tensor& in) {
  FlatTensor result(out);
  const FlatTensor input(in);
  const TorchElements elements = moved(in.scalar_type());
  comm_->all_gather(input.data(), result.data(), input.count() * elements.each, elements.type);
  result.give_back();
}

TrellisBackend::Work TrellisBackend::_allgather_base(at::Tensor& out, at::Tensor& in,
                                                     const c10d::AllgatherOptions& options) {
  Tensors outs{out}, ins{in};
  return allgather_into_tensor_coalesced(outs, ins, options);
}

TrellisBackend::Work TrellisBackend::allgather_into_tensor_coalesced(Tensors& outs, Tensors& ins,
                                                                     const c10d::AllgatherOptions& options) {
  TORCH_CHECK_VALUE(outs.size() == ins.size(), "trellis: all_gather of ", ins.size(), " tensors into ", outs.size());
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < ins.size(); ++i) {
    check_blocks("all_gather_into_tensor", outs[i], ins[i], size_);
    bytes += outs[i].nbytes();
  }
  return issue({OpType::_ALLGATHER_BASE,
                "trellis:all_gather_into_tensor",
                options.timeout,
                options.asyncOp,
                {"all_gather", bytes},
                &ins},
               outs, [this, outs, ins](Communicator&) {
                 for (std::size_t i = 0; i < ins.size(); ++i) gather_all(outs[i], ins[i]);
               });
}

TrellisBackend::Work TrellisBackend::allgather(Lists& outs, Tensors& ins, const c10d::AllgatherOptions& options) {
  const Tensors blocks = only("all_gather", outs, size_);
  const at::Tensor in = only("all_gather", ins);
  TORCH_CHECK_VALUE(blocks[rank_].numel() == in.numel(), "trellis: all_gather: the input has ", in.numel(),
                    " elements, its place in the output ", blocks[rank_].numel());
  TORCH_CHECK_VALUE(blocks[rank_].scalar_type() == in.scalar_type(), "trellis: all_gather: the input is ",
                    in.scalar_type(), ", the output ", blocks[rank_].scalar_type());
  return issue({OpType::ALLGATHER,
                "trellis:all_gather",
                options.timeout,
                options.asyncOp,
                {"all_gather", in.nbytes() * static_cast<std::uint64_t>(size_)},
                &ins},
               blocks, [this, blocks, in](Communicator& comm) {
                 FlatTensorList row(blocks, FlatTensorList::For::writing);
                 if (row.even()) {
                   const TorchElements elements = moved(in.scalar_type());
                   const FlatTensor input(in);
                   comm.all_gather(input.data(), row.data(), input.count() * elements.each, elements.type);
                 } else {
                   const TorchElements elements = moved(in.scalar_type());
                   const FlatTensor input(in);
                   ccl::Call call{.operation = {.collective = Collective::all_gather_v},
                                  .input = input.data(),
                                  .output = row.data(),
                                  .type = elements.type,
                                  .counts = row.counts()};
                   scale(call.counts, elements.each);
                   comm.run(call);
                 }
                 row.give_back();
               });
}

TrellisBackend::Work TrellisBackend::allgather_coalesced(Lists& outs, Tensors& ins,
                                                         const c10d::AllgatherOptions& options) {
  TORCH_CHECK_VALUE(static_cast<int>(outs.size()) == size_, "trellis: all_gather_coalesced takes ", size_,
                    " lists, not ", outs.size());
  std::vector<Work> parts;
  for (std::size_t i = 0; i < ins.size(); ++i) {
    Lists out(1);
    for (const auto& of_rank : outs) out.front().push_back(of_rank.at(i));
    Tensors in{ins[i]};
    parts.push_back(allgather(out, in, options));
  }
  return c10::make_intrusive<CoalescedWork>(std::move(parts));
}

TrellisBackend::Work TrellisBackend::gather(Lists& outs, Tensors& ins, const c10d::GatherOptions& options) {
  const at::Tensor in = only("gather", ins);
  const auto root = static_cast<ccl::Rank>(options.rootRank);
  check_peer("the root of gather", root);
  const Tensors blocks = rank_ == root ? only("gather", outs, size_) : Tensors{};
  for (const at::Tensor& block : blocks) check_blocks("gather", block, in, 1);
  return issue({OpType::GATHER,
                "trellis:gather",
                options.timeout,
                options.asyncOp,
                {"gather", in.nbytes() * static_cast<std::uint64_t>(size_), root},
                &ins},
               blocks, [blocks, in, root](Communicator& comm) {
                 const TorchElements elements = moved(in.scalar_type());
                 const FlatTensor input(in);
                 std::optional<FlatTensorList> row;
                 if (!blocks.empty()) row.emplace(blocks, FlatTensorList::For::writing);
                 comm.gather(input.data(), row ? row->data() : nullptr, input.count() * elements.each, elements.type,
                             root);
                 if (row) row->give_back();
               });
}

TrellisBackend::Work TrellisBackend::scatter(Tensors& outs, Lists& ins, const c10d::ScatterOptions& options) {
  const at::Tensor out = only("scatter", outs);
  const auto root = static_cast<ccl::Rank>(options.rootRank);
  check_peer("the root of scatter", root);
  const Tensors blocks = rank_ == root ? only("scatter", ins, size_) : Tensors{};
  for (const at::Tensor& block : blocks) check_blocks("scatter", block, out, 1);
  return issue({OpType::SCATTER,
                "trellis:scatter",
                options.timeout,
                options.asyncOp,
                {"scatter", out.nbytes() * static_cast<std::uint64_t>(size_), root},
                &blocks},
               outs, [blocks, out, root](Communicator& comm) {
                 const TorchElements elements = moved(out.scalar_type());
                 FlatTensor result(out);
                 std::optional<FlatTensorList> row;
                 if (!blocks.empty()) row.emplace(blocks, FlatTensorList::For::reading);
                 comm.scatter(row ? row->data() : nullptr, result.data(), result.count() * elements.each, elements.type,
                              root);
                 result.give_back();
               });
}

// Always by counts, also where all blocks are equal here: other ranks' may not be, and no rank knows that of another.
TrellisBackend::Work TrellisBackend::alltoall_base(at::Tensor& out, at::Tensor& in, Splits& output_splits,
                                                   Splits& input_splits, const c10d::AllToAllOptions& options) {
  TORCH_CHECK_VALUE(out.scalar_type() == in.scalar_type(), "trellis: all_to_all: the input is ", in.scalar_type(),
                    ", the output ", out.scalar_type());
  const auto counts = counts_of("input", in, input_splits, size_);
  const auto arriving = counts_of("output", out, output_splits, size_);
  if (output_splits.empty() && input_splits.empty()) check_blocks("all_to_all", out, in, 1);
  const Tensors ins{in};
  return issue({OpType::ALLTOALL_BASE,
                "trellis:all_to_all",
                options.timeout,
                options.asyncOp,
                {"all_to_all", std::max<std::uint64_t>(in.nbytes(), out.nbytes())},
                &ins},
               {out}, [out, in, counts, arriving](Communicator& comm) {
                 const TorchElements elements = moved(in.scalar_type());
                 FlatTensor result(out);
                 const FlatTensor input(in);
                 exchange(comm, input.data(), result.data(), counts, arriving, elements);
                 result.give_back();
               });
}

TrellisBackend::Work TrellisBackend::alltoall(Tensors& outs, Tensors& ins, const c10d::AllToAllOptions& options) {
  TORCH_CHECK_VALUE(static_cast<int>(outs.size()) == size_ && static_cast<int>(ins.size()) == size_,
                    "trellis: all_to_all takes two lists of ", size_, " tensors, not of ", outs.size(), " and ",
                    ins.size());
  for (const at::Tensor& in : ins) check_dense("all_to_all", in);
  for (const at::Tensor& out : outs) check_dense("all_to_all", out);
  TORCH_CHECK_VALUE(ins.front().scalar_type() == outs.front().scalar_type(), "trellis: all_to_all: the input is ",
                    ins.front().scalar_type(), ", the output ", outs.front().scalar_type());
  std::uint64_t bytes = 0;
  for (const at::Tensor& in : ins) bytes += in.nbytes();
  return issue({OpType::ALLTOALL, "trellis:all_to_all", options.timeout, options.asyncOp, {"all_to_all", bytes}, &ins},
               outs, [outs, ins](Communicator& comm) {
                 const FlatTensorList input(ins, FlatTensorList::For::reading);
                 FlatTensorList result(outs, FlatTensorList::For::writing);
                 exchange(comm, input.data(), result.data(), input.counts(), result.counts(),
                          moved(ins.front().scalar_type()));
                 result.give_back();
               });
}

}  // namespace trellis::process_group
