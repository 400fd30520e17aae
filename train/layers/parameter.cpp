#include "train/layers/parameter.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "kernels/types/fnv1a.h"
#include "kernels/types/random.h"
#include "text/refuse.h"
#include "text/words.h"
#include "train/mesh/even_split.h"

namespace trellis::train {
namespace {

// What this rank has of n rows or columns.
TensorPart part_of(const NewParameter& p, std::size_t n, const Writer& w) {
  if (p.part) return *p.part;
  const auto parts = static_cast<std::size_t>(w.shape().tensor);
  if (n % parts != 0)
    text::refuse("{}: {} {} do not divide by {} tensor ranks", p.name, n, p.split == Split::rows ? "rows" : "columns",
                 parts);
  return {static_cast<std::size_t>(w.place().tensor) * (n / parts), n / parts};
}

}  // namespace

TensorPart uneven_part(std::size_t n, const Writer& w) {
  const SplitRange run =
      run_of(n, static_cast<std::size_t>(w.shape().tensor), static_cast<std::size_t>(w.place().tensor));
  return {.first = run.first, .count = run.count};
}

bool decays(std::string_view name) {
  const std::string low = text::lower(name);
  return low.find("bias") == low.npos && low.find("norm") == low.npos;
}

Axis data_axis(const MeshShape& s, const Parameter& p) { return p.of_expert ? Axis::expert_data : replica_axis(s); }

const Parameter* Parameters::find(std::string_view name) const {
  const auto found = std::ranges::find(all_, name, &Parameter::name);
  return found == all_.end() ? nullptr : &*found;
}

const Parameter& Parameters::add(Writer& w, const NewParameter& wanted) {
  if (const Parameter* there = find(wanted.name)) return *there;
  Parameter p;
  p.name = wanted.name;
  p.slice = {wanted.rows, wanted.columns, 0, wanted.rows, 0, wanted.columns};
  TensorPart part{.copies = w.shape().tensor, .first_copy = w.place().tensor == 0};
  if (wanted.split == Split::rows) {
    part = part_of(wanted, wanted.rows, w);
    p.slice.row = part.first, p.slice.row_count = part.count;
  } else if (wanted.split == Split::columns) {
    part = part_of(wanted, wanted.columns, w);
    p.slice.column = part.first, p.slice.column_count = part.count;
  }
  p.initial = wanted.initial, p.partial = wanted.partial, p.owner = wanted.owner, p.first_copy = part.first_copy;
  p.frozen = wanted.counted || types_.none_trained || (types_.adapters_alone && !wanted.adapter);
  p.of_expert = wanted.of_expert && w.shape().expert > 1;
  p.decays = decays(p.name);
  p.share = 1.0 / part.copies;
  const auto group = static_cast<std::size_t>(types_.zero ? size_of(w.shape(), data_axis(w.shape(), p)) : 1);
  p.padded_rows = (p.slice.row_count + group - 1) / group * group;
  p.overwritten = wanted.of_products && p.padded_rows == p.slice.row_count;  // products do not write padding
  p.value = w.tensor(p.name, wanted.counted ? DType::f32 : types_.value, p.padded_rows, p.slice.column_count,
                     Category::parameter);
  if (!p.frozen)
    p.gradient =
        w.tensor(p.name + ".gradient", types_.gradient, p.padded_rows, p.slice.column_count, Category::gradient);
  all_.push_back(std::move(p));
  return all_.back();
}

void Parameters::add_projection(std::string word) {
  if (std::ranges::find(projections_, word) == projections_.end()) projections_.push_back(std::move(word));
}

Values initial_values(const Parameter& p, std::uint64_t seed) {
  if (p.initial.kind == Initial::Kind::zeros) return [](std::uint64_t) { return 0.0F; };
  if (p.initial.kind == Initial::Kind::ones) return [](std::uint64_t) { return 1.0F; };
  const kernels::RandomKey key = kernels::random_key({.seed = seed, .step = 0, .tensor = kernels::fnv1a(p.name)});
  return [key, deviation = p.initial.deviation](std::uint64_t index) {
    // Box and Muller's pair of normal numbers from two uniform ones.
    const std::uint64_t word = kernels::random_word(key, index / 2);
    const double u = (static_cast<double>(word >> 32) + 1) / 4294967296.0;
    const double angle = 2 * std::numbers::pi * (static_cast<double>(word & 0xFFFF'FFFF) / 4294967296.0);
    const double radius = std::sqrt(-2 * std::log(u)) * deviation;
    return static_cast<float>(radius * (index % 2 == 0 ? std::cos(angle) : std::sin(angle)));
  };
}

}  // namespace trellis::train
