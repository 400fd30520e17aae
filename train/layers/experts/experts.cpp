#include "train/layers/experts/experts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "kernels/layers/activation.h"

namespace trellis::train {
namespace {

std::size_t capacity_of(const ExpertOptions& o) {
  if (o.capacity_factor <= 0) return 0;
  const double even = static_cast<double>(o.tokens * o.rule.top_k) / static_cast<double>(o.rule.experts);
  return std::min(o.tokens, static_cast<std::size_t>(std::ceil(o.capacity_factor * even)));
}

}  // namespace

Experts::Experts(Writer& w, Parameters& parameters, const std::string& name, const ExpertOptions& o)
    : options_(o),
      ranks_(static_cast<std::size_t>(w.shape().expert)),
      here_(o.rule.experts / ranks_),
      capacity_(capacity_of(o)) {
  const std::string router = name + "." + o.router;
  router_ = &parameters.add(w, {.name = router + ".weight",
                                .rows = o.rule.experts,
                                .columns = o.hidden,
                                .initial = {Initial::Kind::normal, o.linear.deviation},
                                .partial = w.shape().tensor > 1,
                                .of_products = true});
  if (o.bias)
    bias_ = &parameters.add(w, {.name = router + ".e_score_correction_bias",
                                .rows = o.rule.experts,
                                .initial = {Initial::Kind::zeros},
                                .counted = true});
  if (o.bias && o.bias_rate > 0) load_ = w.tensor(router + ".load", DType::f32, o.rule.experts, 1, Category::gradient);
  const std::size_t first = here_ * static_cast<std::size_t>(index_of(w.shape(), Axis::expert_model, w.place()));
  const auto add = [&](std::size_t e, int i, bool down) {
    return &parameters.add(w, {.name = fmt::format("{}.{}.{}.{}.weight", name, o.experts, e, o.names[i]),
                               .rows = down ? o.hidden : o.inner,
                               .columns = down ? o.inner : o.hidden,
                               .split = down ? Split::columns : Split::rows,
                               .initial = {Initial::Kind::normal, down ? o.output_deviation : o.linear.deviation},
                               .of_products = true,
                               .of_expert = true});
  };
  for (std::size_t e = first; e < first + here_; ++e) {
    gates_.push_back(add(e, 0, false));
    ups_.push_back(add(e, 1, false));
    downs_.push_back(add(e, 2, true));
  }
}

ExpertRows Experts::rows_of(TensorId arriving) const {
  ExpertRows rows{.experts = here_, .fixed = capacity_ * ranks_, .counts = arriving, .ranks = ranks_};
  const auto even =
      static_cast<double>(options_.tokens * options_.rule.top_k * ranks_) / static_cast<double>(options_.rule.experts);
  rows.expected = limited() ? static_cast<double>(rows.fixed) : even;
  rows.taken = std::min(1.0, even / rows.expected);
  return rows;
}

TensorId Experts::sent_rows(Writer& w, const std::string& name, DType type) const {
  const RoutingRule& rule = options_.rule;
  const std::size_t rows = limited() ? rule.experts * capacity_ : options_.tokens * rule.top_k;
  return w.tensor(name, type, rows, options_.hidden);
}

TensorId Experts::arrived_rows(Writer& w, const std::string& name, DType type, std::size_t columns) const {
  const RoutingRule& rule = options_.rule;
  if (limited()) return w.tensor(name, type, rule.experts * capacity_, columns);
  if (ranks_ == 1) return w.tensor(name, type, options_.tokens * rule.top_k, columns);
  return w.bounded(name, type, ranks_ * options_.tokens * std::min(rule.top_k, here_), columns);
}

std::vector<TensorId> Experts::factors(Writer& w, const std::vector<const Parameter*>& of) const {
  std::vector<TensorId> all;
  for (const Parameter* p : of) all.push_back(cast_to(w, "narrow_weight", p->value, narrow(w.tensor(p->value).type)));
  return all;
}

// Sends rows to the ranks of their experts, or back.
TensorId Experts::exchanged(Writer& w, const char* name, TensorId from, bool there, const Saved& s) const {
  if (ranks_ == 1) return from;
  const DType type = w.tensor(from).type;
  const TensorId to = there ? arrived_rows(w, name, type, options_.hidden) : sent_rows(w, name, type);
  if (limited()) {
    w.all_to_all(name, Axis::expert_model, from, to, here_);
    return to;
  }
  const UnevenBlocks by_rank{s.counts, false}, by_expert{s.arriving, true};
  const std::size_t most = options_.tokens * std::min(options_.rule.top_k, here_) * options_.hidden;
  w.exchange(name, {.kind = Exchange::Kind::all_to_all_v,
                    .axis = Axis::expert_model,
                    .transfers = {{{from, 0}, {to, 0}, most, type}},
                    .sent = there ? by_rank : by_expert,
                    .received = there ? by_expert : by_rank,
                    .blocks = here_,
                    .expected = static_cast<double>(options_.tokens * options_.rule.top_k * options_.hidden) /
                                static_cast<double>(ranks_)});
  return to;
}

TensorId Experts::forward(Writer& w, TensorId given, Saved& s) const {
  const TensorId own = cast_to(w, "narrow_x", given, narrow(w.tensor(given).type));
  const TensorId x = options_.linear.sequence ? gathered_rows(w, own) : own;
  s = {.x = given};
  {
    const Writer::Scope scope(w, options_.router);
    const TensorId logits = w.tensor("logits", DType::f32, options_.tokens, options_.rule.experts);
    product(w, "matmul", {x, options_.tokens, options_.hidden},
            {factors(w, {router_})[0], options_.rule.experts, options_.hidden, true}, logits,
            {.model_part = router_->share});
    choose(w, logits, s);
    if (w.phase() == Phase::forward) add_balance(w, s);
  }
  const Writer::Scope scope(w, options_.experts);
  const DType type = w.tensor(x).type;
  const TensorId sent = sent_rows(w, "sent", type);
  w.compute("dispatch", {x, s.slots}, {sent}, 0, shape_over("dispatch", w.tensor(sent)),
            [=, slots = s.slots, k = options_.rule.top_k, n = options_.tokens, rows = w.tensor(sent).rows,
             width = options_.hidden * kernels::size_of(type), empty = limited()](const Memory& at, const StepInputs&) {
              auto* const to = at.as<std::byte>(sent);
              if (empty) std::fill_n(to, rows * width, std::byte{0});
              for (std::size_t i = 0; i < n * k; ++i)
                if (const std::int32_t slot = at.as<std::int32_t>(slots)[i]; slot >= 0)
                  std::copy_n(at.as<std::byte>(x) + i / k * width, width, to + static_cast<std::size_t>(slot) * width);
            });
  s.rows = exchanged(w, "to_experts", sent, true, s);
  const ExpertRows rows = rows_of(s.arriving);
  const std::size_t inner = gates_[0]->slice.row_count;
  s.gate = arrived_rows(w, "gate", type, inner), s.up = arrived_rows(w, "up", type, inner);
  s.inner = arrived_rows(w, "inner", type, inner);
  expert_product(w, "gate", s.rows, gates_, factors(w, gates_), false, s.gate, rows);
  expert_product(w, "up", s.rows, ups_, factors(w, ups_), false, s.up, rows, {.again = true});
  over_expert_rows(w, "swiglu", "swiglu", {s.gate, s.up}, {s.inner}, 8, rows,
                   [=, s = s](const Memory& at, std::size_t n) {
                     kernels::swiglu(type, at.at(s.gate), at.at(s.up), at.at(s.inner), n, at.threads());
                   });
  // Parts of a sum over the tensor axis are kept in f32, as a perceptron's are.
  const DType wide = w.shape().tensor > 1 && !options_.linear.bf16_sums ? DType::f32 : type;
  const TensorId out = arrived_rows(w, "out", wide, options_.hidden);
  expert_product(w, "down", s.inner, downs_, factors(w, downs_), false, out, rows);
  s.returned = exchanged(w, "from_experts", out, false, s);
  return summed_parts(w, combined(w, s, wide), type, options_.linear.sequence);
}

TensorId Experts::backward(Writer& w, TensorId given, const Saved& s) const {
  const TensorId narrow_dy = cast_to(w, "narrow_dy", given, narrow(w.tensor(given).type));
  const TensorId dy = options_.linear.sequence ? gathered_rows(w, narrow_dy) : narrow_dy;
  const DType type = w.tensor(s.rows).type;
  const ExpertRows rows = rows_of(s.arriving);
  const auto [dsent, dweights] = split_gradient(w, dy, s);
  const TensorId dout = exchanged(w, "gradients_to_experts", dsent, true, s);
  const std::size_t inner = gates_[0]->slice.row_count;
  const TensorId dinner = arrived_rows(w, "dinner", type, inner), dgate = arrived_rows(w, "dgate", type, inner),
                 dup = arrived_rows(w, "dup", type, inner);
  expert_product(w, "dinner", dout, downs_, factors(w, downs_), true, dinner, rows);
  over_expert_rows(w, "swiglu_gradient", "swiglu_gradient", {dinner, s.gate, s.up}, {dgate, dup}, 12, rows,
                   [=](const Memory& at, std::size_t n) {
                     kernels::swiglu_gradient(type, at.at(dinner), at.at(s.gate), at.at(s.up), at.at(dgate), at.at(dup),
                                              n, at.threads());
                   });
  const TensorId drows = arrived_rows(w, "drows", DType::f32, options_.hidden);
  expert_product(w, "drows", dgate, gates_, factors(w, gates_), true, drows, rows);
  expert_product(w, "drows", dup, ups_, factors(w, ups_), true, drows, rows, {.accumulate = true, .joined = true});
  const TensorId back = exchanged(w, "gradients_from_experts", drows, false, s);
  const TensorId dlogits = router_gradient(w, dweights, s);
  const TensorId dx = w.tensor("dx", DType::f32, options_.tokens, options_.hidden);
  product(w, "dx", {dlogits, options_.tokens, options_.rule.experts},
          {factors(w, {router_})[0], options_.rule.experts, options_.hidden}, dx);
  gathered_gradient(w, back, dx, s);
  return summed_parts(w, dx, w.tensor(s.x).type, options_.linear.sequence, [&] {
    w.weight_gradient([=, this](Writer& writer) {
      const float factor = options_.mean_gradients ? 1.0F / static_cast<float>(ranks_) : 1.0F;
      expert_gradients(writer, "dgate", dgate, s.rows, gates_, rows, factor);
      expert_gradients(writer, "dup", dup, s.rows, ups_, rows, factor);
      expert_gradients(writer, "ddown", dout, s.inner, downs_, rows, factor);
      if (router_->frozen) return;
      const TensorId own = cast_to(writer, "narrow_x", s.x, narrow(writer.tensor(s.x).type));
      const TensorId x = options_.linear.sequence ? gathered_rows(writer, own) : own;
      product(writer, "drouter", {dlogits, options_.tokens, options_.rule.experts, true},
              {x, options_.tokens, options_.hidden}, router_->gradient,
              {.accumulate = !(router_->overwritten && writer.first_term(router_->gradient))});
    });
  });
}

}  // namespace trellis::train
