#include "train/mesh/mesh.h"

#include <algorithm>

#include "text/refuse.h"
#include "text/words.h"

namespace trellis::train {
namespace {

void check(const MeshShape& s) {
  const std::pair<const char*, Rank> sizes[] = {{"pipeline_parallel_size", s.pipeline},
                                                {"data_parallel_size", s.data},
                                                {"context_parallel_size", s.context},
                                                {"tensor_parallel_size", s.tensor},
                                                {"expert_parallel_size", s.expert}};
  for (const auto& [field, size] : sizes)
    if (size < 1) text::refuse("{} is {}: expected at least 1", field, size);
  if (s.data * s.context % s.expert != 0)
    text::refuse("expert_parallel_size is {}: expected a divisor of data x context = {}", s.expert, s.data * s.context);
}

// Rank at a place by the wiring; `position` is the place's index in plain order.
Rank wired(const MeshShape& s, Wiring wiring, Rank node, const Place& p) {
  const Rank plain = ((p.pipeline * s.data + p.data) * s.context + p.context) * s.tensor + p.tensor;
  if (wiring == Wiring::trn1) {
    const Rank apart = node / 4;
    const Rank outer = (p.pipeline * (s.data / apart) + p.data / apart) * s.context + p.context;
    return (outer * s.tensor + p.tensor) * apart + p.data % apart;
  }
  if (wiring == Wiring::logic2) {
    const Rank row = s.tensor / 2, group = plain / s.tensor, first = group / 2 * 2 * s.tensor;
    const bool second = p.tensor >= row;
    const Rank line = group % 2 == 0 ? (second ? 3 : 0) : (second ? 2 : 1);
    return first + line * row + p.tensor % row;
  }
  return plain;
}

void check(const MeshShape& s, Wiring wiring, Rank node) {
  check(s);
  if (wiring == Wiring::trn1) {
    if (s.tensor != 4) text::refuse("tensor_parallel_size is {}: expected 4 for the strided groups of trn1", s.tensor);
    if (node < 4 || node % 4 != 0) text::refuse("ranks of a node are {}: expected a multiple of 4", node);
    if (s.data % (node / 4) != 0)
      text::refuse("data_parallel_size is {}: expected a multiple of {}, a quarter of a node", s.data, node / 4);
    if (s.expert > 1) text::refuse("expert_parallel_size is {}: expected 1 with the strided groups of trn1", s.expert);
  }
  if (wiring == Wiring::logic2) {
    if (s.tensor % 2 != 0) text::refuse("tensor_parallel_size is {}: expected an even number with logic2", s.tensor);
    if (s.ranks() % (2 * s.tensor) != 0)
      text::refuse("{} ranks: expected a multiple of {}, two tensor groups a node, with logic2", s.ranks(),
                   2 * s.tensor);
  }
}

}  // namespace

std::string_view name(Wiring w) { return text::word_of(w, {"plain", "trn1", "logic2"}); }

std::string_view name(Axis a) {
  return text::word_of(
      a, {"tensor", "data", "pipeline", "context", "expert_model", "expert_data", "sharding", "kv", "tied"});
}

Axis replica_axis(const MeshShape& s) { return s.context > 1 ? Axis::sharding : Axis::data; }

Rank size_of(const MeshShape& s, Axis axis) {
  switch (axis) {
    case Axis::tensor:
      return s.tensor;
    case Axis::data:
      return s.data;
    case Axis::pipeline:
      return s.pipeline;
    case Axis::context:
      return s.context;
    case Axis::expert_model:
      return s.expert;
    case Axis::expert_data:
      return s.data * s.context / s.expert;
    case Axis::sharding:
      return s.data * s.context;
    default:
      text::refuse("groups of axis {} depend on the model", name(axis));
  }
}

Rank index_of(const MeshShape& s, Axis axis, const Place& p) {
  const Rank both = p.data * s.context + p.context;
  switch (axis) {
    case Axis::tensor:
      return p.tensor;
    case Axis::data:
      return p.data;
    case Axis::pipeline:
      return p.pipeline;
    case Axis::context:
      return p.context;
    case Axis::expert_model:
      return both % s.expert;
    case Axis::expert_data:
      return both / s.expert;
    case Axis::sharding:
      return both;
    default:
      text::refuse("groups of axis {} depend on the model", name(axis));
  }
}

Mesh::Mesh(const MeshShape& shape, Wiring wiring, Rank node) : shape_(shape), wiring_(wiring) {
  check(shape, wiring, node);
  ranks_.resize(static_cast<std::size_t>(shape.ranks()));
  places_.resize(ranks_.size());
  Place p;
  for (p.pipeline = 0; p.pipeline < shape.pipeline; ++p.pipeline)
    for (p.data = 0; p.data < shape.data; ++p.data)
      for (p.context = 0; p.context < shape.context; ++p.context)
        for (p.tensor = 0; p.tensor < shape.tensor; ++p.tensor) {
          const Rank r = wired(shape, wiring, node, p);
          at(p) = r;
          places_[static_cast<std::size_t>(r)] = p;
        }
}

Rank& Mesh::at(const Place& p) {
  const MeshShape& s = shape_;
  return ranks_[static_cast<std::size_t>(((p.pipeline * s.data + p.data) * s.context + p.context) * s.tensor +
                                         p.tensor)];
}

Rank Mesh::rank(const Place& p) const { return const_cast<Mesh*>(this)->at(p); }

Place Mesh::place(Rank r) const {
  if (r < 0 || r >= ranks()) text::refuse("rank {}: expected 0 to {}", r, ranks() - 1);
  return places_[static_cast<std::size_t>(r)];
}

Groups Mesh::groups(Axis axis) const {
  // The mesh as four sizes, outermost first; for the axes of experts, data x context is divided into expert_data x
  // expert_model. A group runs along one or two of the four; groups are listed in the order of the remaining ones.
  const bool experts = axis == Axis::expert_model || axis == Axis::expert_data;
  const Rank both = shape_.data * shape_.context;
  const Rank sizes[4] = {shape_.pipeline, experts ? both / shape_.expert : shape_.data,
                         experts ? shape_.expert : shape_.context, shape_.tensor};
  const bool along[4] = {
      axis == Axis::pipeline, axis == Axis::data || axis == Axis::expert_data || axis == Axis::sharding,
      axis == Axis::context || axis == Axis::expert_model || axis == Axis::sharding, axis == Axis::tensor};
  if (axis == Axis::kv || axis == Axis::tied) text::refuse("groups of axis {} depend on the model", name(axis));
  Groups groups;
  const auto count = [&](int i, bool inside) { return along[i] == inside ? sizes[i] : Rank{1}; };
  const auto each = [&](bool inside, const auto& body) {
    Rank i[4];
    for (i[0] = 0; i[0] < count(0, inside); ++i[0])
      for (i[1] = 0; i[1] < count(1, inside); ++i[1])
        for (i[2] = 0; i[2] < count(2, inside); ++i[2])
          for (i[3] = 0; i[3] < count(3, inside); ++i[3]) body(i);
  };
  each(false, [&](const Rank* outer) {
    Group group;
    each(true, [&](const Rank* inner) {
      const Rank position =
          ((((outer[0] + inner[0]) * sizes[1] + outer[1] + inner[1]) * sizes[2]) + outer[2] + inner[2]) * sizes[3] +
          outer[3] + inner[3];
      group.push_back(ranks_[static_cast<std::size_t>(position)]);
    });
    groups.push_back(std::move(group));
  });
  return groups;
}

Group Mesh::group(Axis axis, Rank r) const {
  const Place p = place(r);
  Group group;
  Place q = p;
  const auto along = [&](Rank Place::*coordinate, Rank size) {
    for (q.*coordinate = 0; q.*coordinate < size; ++(q.*coordinate)) group.push_back(rank(q));
  };
  if (axis == Axis::tensor) along(&Place::tensor, shape_.tensor);
  if (axis == Axis::pipeline) along(&Place::pipeline, shape_.pipeline);
  if (axis == Axis::context) along(&Place::context, shape_.context);
  if (axis == Axis::data) along(&Place::data, shape_.data);
  if (!group.empty()) return group;
  for (const Group& each : groups(axis))
    if (std::ranges::find(each, r) != each.end()) return each;
  return {};
}

Groups Mesh::kv_groups(Rank copies) const {
  if (copies < 1 || shape_.tensor % copies != 0)
    text::refuse("kv_replicator is {}: expected a divisor of tensor_parallel_size {}", copies, shape_.tensor);
  const Rank heads = shape_.tensor / copies;
  Groups result;
  for (const Group& tensor : groups(Axis::tensor))
    for (Rank h = 0; h < heads; ++h) {
      Group group;
      for (Rank c = 0; c < copies; ++c)
        group.push_back(tensor[static_cast<std::size_t>(wiring_ == Wiring::trn1 ? c * heads + h : h * copies + c)]);
      result.push_back(std::move(group));
    }
  return result;
}

}  // namespace trellis::train
