// A communicator's collectives over spans: the element type and the count come from the arguments; sizes are checked.
#pragma once

#include <algorithm>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "ccl/call.h"
#include "kernels/types/dtype_of.h"

namespace trellis::ccl {

// The base of Communicator, which has run(Call, Stream*), rank() and ranks(). T is deduced from the output, or from the
// input of a send, which has no output; an input may be const or not.
template <class Communicator>
class SpanCalls {
  template <class T>
  using In = std::span<const std::type_identity_t<T>>;
  using Stream = device::Stream;

 public:
  template <kernels::Element T>
  void all_reduce(std::span<T> data, ReduceOp op = {}, Stream* stream = {}) {
    call<T>(Collective::all_reduce, data, data, data.size(), {.op = op}, stream);
  }
  template <kernels::Element T>
  void all_reduce(In<T> in, std::span<T> out, ReduceOp op = {}, Stream* stream = {}) {
    expect_as_many(Collective::all_reduce, in.size(), out.size());
    call<T>(Collective::all_reduce, in, out, out.size(), {.op = op}, stream);
  }
  template <kernels::Element T>
  void reduce_scatter(In<T> in, std::span<T> out, ReduceOp op = {}, Stream* stream = {}) {
    expect_blocks(Collective::reduce_scatter, "input", in.size(), out.size(), self().ranks());
    call<T>(Collective::reduce_scatter, in, out, out.size(), {.op = op}, stream);
  }
  template <kernels::Element T>
  void all_gather(In<T> in, std::span<T> out, Stream* stream = {}) {
    expect_blocks(Collective::all_gather, "output", out.size(), in.size(), self().ranks());
    call<T>(Collective::all_gather, in, out, in.size(), {}, stream);
  }
  template <kernels::Element T>
  void broadcast(std::span<T> data, Rank root, Stream* stream = {}) {
    call<T>(Collective::broadcast, data, data, data.size(), {.operation = {.root = root}}, stream);
  }
  // The output of reduce and gather, and the input of scatter, are the root's alone: others may pass an empty span.
  template <kernels::Element T>
  void reduce(In<T> in, std::span<T> out, Rank root, ReduceOp op = {}, Stream* stream = {}) {
    if (self().rank() == root) expect_as_many(Collective::reduce, in.size(), out.size());
    call<T>(Collective::reduce, in, out, in.size(), {.operation = {.root = root}, .op = op}, stream);
  }
  template <kernels::Element T>
  void gather(In<T> in, std::span<T> out, Rank root, Stream* stream = {}) {
    if (self().rank() == root) expect_blocks(Collective::gather, "output", out.size(), in.size(), self().ranks());
    call<T>(Collective::gather, in, out, in.size(), {.operation = {.root = root}}, stream);
  }
  template <kernels::Element T>
  void scatter(In<T> in, std::span<T> out, Rank root, Stream* stream = {}) {
    if (self().rank() == root) expect_blocks(Collective::scatter, "input", in.size(), out.size(), self().ranks());
    call<T>(Collective::scatter, in, out, out.size(), {.operation = {.root = root}}, stream);
  }
  template <kernels::Element T>
  void all_to_all(In<T> in, std::span<T> out, Stream* stream = {}) {
    expect_as_many(Collective::all_to_all, in.size(), out.size());
    const std::size_t block = block_of(Collective::all_to_all, out.size(), self().ranks());
    call<T>(Collective::all_to_all, in, out, block, {}, stream);
  }
  template <kernels::Element T>
  void permute(In<T> in, std::span<T> out, std::vector<schedule::Pair> pairs, Stream* stream = {}) {
    if (!in.empty() && !out.empty()) expect_as_many(Collective::permute, in.size(), out.size());
    call<T>(Collective::permute, in, out, std::max(in.size(), out.size()), {.operation = {.pairs = std::move(pairs)}},
            stream);
  }

  // `counts` has the elements of each rank's block.
  template <kernels::Element T>
  void all_gather_v(In<T> in, std::span<T> out, std::span<const std::size_t> counts, Stream* stream = {}) {
    expect_own(Collective::all_gather_v, counts, self().rank(), in.size(), out.size(), self().ranks());
    call<T>(Collective::all_gather_v, in, out, 0, {.counts = {counts.begin(), counts.end()}}, stream);
  }
  template <kernels::Element T>
  void reduce_scatter_v(In<T> in, std::span<T> out, std::span<const std::size_t> counts, ReduceOp op = {},
                        Stream* stream = {}) {
    expect_own(Collective::reduce_scatter_v, counts, self().rank(), out.size(), in.size(), self().ranks());
    call<T>(Collective::reduce_scatter_v, in, out, 0, {.op = op, .counts = {counts.begin(), counts.end()}}, stream);
  }
  template <kernels::Element T>
  void all_to_all_v(In<T> in, std::span<const std::size_t> counts, std::span<T> out,
                    std::span<const std::size_t> arriving_counts, Stream* stream = {}) {
    expect_counts(Collective::all_to_all_v, "input", counts, in.size(), self().ranks());
    expect_counts(Collective::all_to_all_v, "output", arriving_counts, out.size(), self().ranks());
    call<T>(
        Collective::all_to_all_v, in, out, 0,
        {.counts = {counts.begin(), counts.end()}, .arriving_counts = {arriving_counts.begin(), arriving_counts.end()}},
        stream);
  }
  template <class T>
  requires kernels::Element<std::remove_const_t<T>>
  void send(std::span<T> data, Rank to, Stream* stream = {}) {
    self().send(data.data(), data.size(), kernels::dtype_of<std::remove_const_t<T>>, to, stream);
  }
  template <kernels::Element T>
  void recv(std::span<T> data, Rank from, Stream* stream = {}) {
    self().recv(data.data(), data.size(), kernels::dtype_of<T>, from, stream);
  }

 private:
  Communicator& self() { return static_cast<Communicator&>(*this); }

  template <class T>
  void call(Collective collective, In<T> in, std::span<T> out, std::size_t count, Call c, Stream* stream) {
    c.operation.collective = collective, c.input = in.data(), c.output = out.data();
    c.count = count, c.type = kernels::dtype_of<T>;
    self().run(c, stream);
  }
};

}  // namespace trellis::ccl
