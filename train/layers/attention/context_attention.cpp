#include "train/layers/attention/context_attention.h"

#include "train/layers/arithmetic.h"
#include "train/layers/attention/accelerator_arrays.h"

namespace trellis::train {
namespace {

// The element at which a part's keys begin, in a tensor with this part alone (`parts` is 1) or with those of all ranks.
std::size_t rows_before(const PartialAttention& a, Rank parts) {
  return parts == 1 ? 0 : static_cast<std::size_t>(a.keys.rank) * a.shape.rows() * a.shape.kv_heads * a.shape.head_size;
}

std::byte* shifted(const Memory& at, TensorId t, DType type, std::size_t elements) {
  return at.as<std::byte>(t) + elements * kernels::size_of(type);
}

}  // namespace

// The part whose keys are here in step `step` of the ring: first this rank's own, then those of the rank before it, ...
PartialAttention ContextAttention::part(Rank step) const {
  SequencePart keys = own;
  keys.rank = (own.rank + own.ranks - step) % own.ranks;
  return {.shape = shape, .queries = own, .keys = keys, .first = step == 0};
}

// FLOPs of so many parts, as equal shares of the whole sequence's: even under a causal mask, a rank has as much to
// compute with any other rank's keys as with its own.
double ContextAttention::flops(std::size_t parts) const {
  AttentionShape all = shape;
  all.sequence = own.whole;
  return all.flops() * static_cast<double>(parts) / static_cast<double>(ranks() * ranks());
}

schedule::OperationShape ContextAttention::operation(const char* kind, DType type, std::size_t parts) const {
  return {.kind = kind,
          .rows = shape.sequence,
          .columns = shape.sequence * parts,
          .inner = shape.head_size,
          .batch = shape.batch * shape.heads,
          .shared = shape.heads / shape.kv_heads,
          .type = std::string(kernels::name(type)),
          .causal = shape.causal,
          .flash = flash,
          .dropout = dropout > 0};
}

ContextAttention::Gathered ContextAttention::gathered(Writer& w, const Inputs& in) const {
  const Tensor like = w.tensor(in.k);
  const Gathered all{w.tensor("keys", like.type, like.rows * ranks(), like.columns),
                     w.tensor("values", like.type, like.rows * ranks(), like.columns)};
  w.exchange("gather_keys", {.kind = Exchange::Kind::all_gather,
                             .axis = Axis::context,
                             .transfers = {{{in.k, 0}, {all.k, 0}, like.elements(), like.type},
                                           {{in.v, 0}, {all.v, 0}, like.elements(), like.type}}});
  return all;
}

// Begins to send two tensors to the next rank; `to` is what comes from the one before.
int ContextAttention::pass_on(Writer& w, const char* name, const std::array<TensorId, 2>& from,
                              std::array<TensorId, 2>& to) const {
  Exchange e{.kind = Exchange::Kind::shift, .axis = Axis::context};
  for (std::size_t i = 0; i < from.size(); ++i) {
    const Tensor like = w.tensor(from[i]);
    to[i] = w.tensor(name, like.type, like.rows, like.columns);
    e.transfers.push_back({{from[i], 0}, {to[i], 0}, like.elements(), like.type});
  }
  return w.begin(name, std::move(e));
}

// Computes attention to the keys of `parts` parts, from part number `first` on, and joins the results to out and logs.
void ContextAttention::attend(Writer& w, const Inputs& in, TensorId k, TensorId v, Rank first, Rank parts, TensorId out,
                              KeptCore& kept) const {
  const TensorId logs = kept.logs;
  const DType type = w.tensor(in.q).type;
  const TensorId scratch = w.tensor("scores", DType::f32, attention_part_scratch(part(first)), 1, Category::scratch);
  std::vector<TensorId> reads{in.q, k, v};
  if (in.starts != no_tensor) reads.push_back(in.starts);
  if (first > 0) reads.insert(reads.end(), {out, logs});
  const schedule::OperationShape priced = operation("attention", type, static_cast<std::size_t>(parts));
  kept.pairs.push_back(accelerator_arrays(w, priced, type, PairArrays::kept));
  std::vector<TensorId> writes{out, logs, scratch};
  writes.insert(writes.end(), kept.pairs.back().begin(), kept.pairs.back().end());
  w.compute("attention", std::move(reads), std::move(writes), flops(static_cast<std::size_t>(parts)), priced,
            [=, own = *this](const Memory& at, const StepInputs& now) {
              for (Rank step = first; step < first + parts; ++step) {
                const PartialAttention a = own.part(step);
                const std::size_t before = rows_before(a, parts);
                attention_part(type, a, at.at(in.q), shifted(at, k, type, before), shifted(at, v, type, before),
                               at.as<float>(out), at.as<float>(logs), at.as<float>(scratch), at.threads(),
                               in.drops(now), in.starts == no_tensor ? nullptr : at.as<std::int32_t>(in.starts));
              }
            });
}

TensorId ContextAttention::forward(Writer& w, const Inputs& in, KeptCore& kept) const {
  const Tensor q = w.tensor(in.q);
  const TensorId out = w.tensor("joined", DType::f32, q.rows, q.columns);
  kept = {.logs = w.tensor("log_sums", DType::f32, q.rows, shape.heads)};
  if (!ring) {
    const Gathered all = gathered(w, in);
    attend(w, in, all.k, all.v, 0, own.ranks, out, kept);
  }
  std::array<TensorId, 2> here{in.k, in.v}, next{};
  for (Rank step = 0; ring && step < own.ranks; ++step, here = next) {
    const bool last = step + 1 == own.ranks;
    const int ticket = last ? 0 : pass_on(w, "pass_on", here, next);
    attend(w, in, here[0], here[1], step, 1, out, kept);
    if (!last) w.wait(ticket);
  }
  return cast_to(w, "attended", out, q.type);
}

// Computes the gradients for `parts` parts, from part number `first` on. to: dq, dk, dv.
void ContextAttention::differentiate(Writer& w, const Inputs& in, TensorId k, TensorId v, Rank first, Rank parts,
                                     const Known& known, const std::array<TensorId, 3>& to) const {
  const DType type = w.tensor(in.q).type;
  const TensorId scratch = w.tensor("scores", DType::f32, attention_part_scratch(part(first)), 1, Category::scratch);
  std::vector<TensorId> reads{in.q, k, v, known.dout, known.logs, known.offsets};
  const std::vector<TensorId>& pairs = known.pairs[static_cast<std::size_t>(first)];
  reads.insert(reads.end(), pairs.begin(), pairs.end());
  if (in.starts != no_tensor) reads.push_back(in.starts);
  if (first > 0) reads.push_back(to[0]);
  const schedule::OperationShape priced = operation("attention_gradient", type, static_cast<std::size_t>(parts));
  std::vector<TensorId> writes = accelerator_arrays(w, priced, type, PairArrays::of_backward);
  writes.insert(writes.begin(), {to[0], to[1], to[2], scratch});
  w.compute("attention_gradient", std::move(reads), std::move(writes), 2.5 * flops(static_cast<std::size_t>(parts)),
            priced,
            [=, own = *this, dout = known.dout, logs = known.logs, offsets = known.offsets](const Memory& at,
                                                                                            const StepInputs& now) {
              for (Rank step = first; step < first + parts; ++step) {
                const PartialAttention a = own.part(step);
                const std::size_t before = rows_before(a, parts);
                attention_part_gradient(type, a, at.at(dout), at.at(in.q), shifted(at, k, type, before),
                                        shifted(at, v, type, before), at.as<float>(logs), at.as<float>(offsets),
                                        at.as<float>(to[0]), at.as<float>(to[1]) + before, at.as<float>(to[2]) + before,
                                        at.as<float>(scratch), at.threads(), in.drops(now),
                                        in.starts == no_tensor ? nullptr : at.as<std::int32_t>(in.starts));
              }
            });
}

std::array<TensorId, 3> ContextAttention::backward(Writer& w, const Inputs& in, TensorId dout, TensorId out,
                                                   const KeptCore& kept) const {
  const Tensor q = w.tensor(in.q), kv = w.tensor(in.k);
  const TensorId offsets = w.tensor("offsets", DType::f32, q.rows, shape.heads);
  w.compute("offsets", {dout, out}, {offsets}, 2.0 * static_cast<double>(q.elements()), fused_over("reduce", q),
            [=, s = shape, type = q.type](const Memory& at, const StepInputs&) {
              attention_offsets(type, s, at.at(dout), at.at(out), at.as<float>(offsets));
            });
  const auto sums = [&](const char* name, std::size_t parts) {
    return w.tensor(name, DType::f32, kv.rows * parts, kv.columns);
  };
  const TensorId dq = w.tensor("dq", DType::f32, q.rows, q.columns);
  const Known known{dout, kept.logs, offsets, kept.pairs};
  std::array<TensorId, 2> gradients{};  // of keys and of values
  if (ring) {
    std::array<TensorId, 2> here{in.k, in.v}, next{}, added{};
    int behind = 0;  // ticket of the shift that sends the gradients on
    for (Rank step = 0; step < own.ranks; ++step, here = next) {
      const bool last = step + 1 == own.ranks;
      const int ticket = last ? 0 : pass_on(w, "pass_on", here, next);
      added = {sums("dk", 1), sums("dv", 1)};
      differentiate(w, in, here[0], here[1], step, 1, known, {dq, added[0], added[1]});
      for (std::size_t i = 0; step > 0 && i < 2; ++i) {
        if (i == 0) w.wait(behind);
        add_into(w, "join", gradients[i], added[i]);
      }
      behind = pass_on(w, "pass_gradients_on", added, gradients);
      if (!last) w.wait(ticket);
    }
    w.wait(behind);
  } else {
    const Gathered all = gathered(w, in);
    const std::array<TensorId, 2> parts{sums("dk_of_all", ranks()), sums("dv_of_all", ranks())};
    differentiate(w, in, all.k, all.v, 0, own.ranks, known, {dq, parts[0], parts[1]});
    gradients = {sums("dk", 1), sums("dv", 1)};
    Exchange e{.kind = Exchange::Kind::reduce_scatter, .axis = Axis::context};
    for (std::size_t i = 0; i < 2; ++i)
      e.transfers.push_back({{parts[i], 0}, {gradients[i], 0}, kv.elements(), DType::f32});
    w.exchange("sum_gradients_of_keys", std::move(e));
  }
  return {cast_to(w, "dq", dq, q.type), cast_to(w, "dk", gradients[0], kv.type),
          cast_to(w, "dv", gradients[1], kv.type)};
}

}  // namespace trellis::train
