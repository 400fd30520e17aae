#include "train/whole/chakra.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <stdexcept>

#include "text/protobuf.h"
#include "train/whole/check.h"
#include "train/whole/traffic.h"

namespace trellis::train {
namespace {

using Node = text::ProtobufMessage;

constexpr std::uint32_t data_deps = 5;  // ASTRA-sim does not wait for what is among ctrl_deps
enum class NodeType : std::uint8_t { compute = 4, send = 5, receive = 6, collective = 7 };

// AttributeProto: a name, and a value in the field of its type. Chakra's own reader looks into one field for each name
// and takes another one's value for 0.
void put_number(Node& node, std::string_view name, std::uint32_t field, std::uint64_t value) {
  Node a;
  a.text(1, name);
  a.number(field, value);
  node.message(10, a);
}
void put_attribute(Node& node, std::string_view name, std::int64_t value) {
  put_number(node, name, 9, static_cast<std::uint64_t>(value));
}
void put_attribute(Node& node, std::string_view name, std::int32_t value) {
  put_number(node, name, 7, static_cast<std::uint64_t>(value));
}
void put_attribute(Node& node, std::string_view name, std::uint64_t value) { put_number(node, name, 13, value); }
void put_attribute(Node& node, std::string_view name, std::string_view value) {
  Node a;
  a.text(1, name);
  a.text(29, value);
  node.message(10, a);
}

// ASTRA-sim wants a number: of an axis and a group's first rank.
std::int64_t number_of(Axis axis, const Group& group, const Mesh& mesh) {
  return std::int64_t{static_cast<std::uint8_t>(axis)} * mesh.ranks() + group.front() + 1;
}

class Trace {
 public:
  Trace(const Step& step, Rank rank) : step_(step), mesh_(step.mesh), rank_(rank) {
    Node metadata;
    metadata.text(1, "0.0.4");
    out_.after_its_size(metadata.bytes());
  }

  std::string run() {
    for (const Operation& o : step_.program.operations) {
      if (o.kind == Operation::Kind::wait) {
        if (o.ahead) continue;  // for what the step before began
        after_.push_back(tickets_.at(o.ticket));
        continue;
      }
      const std::uint64_t id = ++count_;
      Node node;
      node.number(1, id);
      node.text(2, o.name);
      describe(node, o);
      // What runs beside other operations follows the one before it; the rest also follow what was waited for.
      if (last_ != 0) node.number(data_deps, last_);
      if (o.ticket != 0) {
        tickets_[o.ticket] = id;
      } else {
        for (std::uint64_t before : after_) node.number(data_deps, before);
        after_.clear();
        last_ = id;
      }
      out_.after_its_size(node.bytes());
    }
    return out_.take();
  }

 private:
  void describe(Node& node, const Operation& o) const {
    if (o.kind == Operation::Kind::compute) {
      node.number(3, static_cast<std::uint64_t>(NodeType::compute));
      put_attribute(node, "num_ops", static_cast<std::int64_t>(o.flops));
      put_attribute(node, "tensor_size", static_cast<std::uint64_t>(step_.program.bytes_touched(o)));
      return;
    }
    const Exchange& e = o.exchange;
    auto bytes = static_cast<std::int64_t>(step_.program.bytes_exchanged(o));
    if (e.kind == Exchange::Kind::send || e.kind == Exchange::Kind::receive) {
      const bool send = e.kind == Exchange::Kind::send;
      Place other = mesh_.place(rank_);
      other.pipeline = e.peer;
      node.number(3, static_cast<std::uint64_t>(send ? NodeType::send : NodeType::receive));
      put_attribute(node, "comm_size", bytes);
      put_attribute(node, "comm_tag", std::int32_t{e.label});
      put_attribute(node, "comm_src", std::int32_t{send ? rank_ : mesh_.rank(other)});
      put_attribute(node, "comm_dst", std::int32_t{send ? mesh_.rank(other) : rank_});
      return;
    }
    const Group group = group_of(step_, e.axis, rank_);
    if (e.kind == Exchange::Kind::shift)
      throw std::invalid_argument(
          "a ring of keys and values is no collective of such traces: expected model.fusions.ring_attention false");
    const bool to_all = e.kind == Exchange::Kind::all_to_all || e.kind == Exchange::Kind::all_to_all_v;
    const std::int64_t type = e.kind == Exchange::Kind::all_reduce   ? 0
                              : e.kind == Exchange::Kind::all_gather ? 2
                              : to_all                               ? 6
                                                                     : 7;
    if (to_all || e.kind == Exchange::Kind::reduce_scatter) bytes *= static_cast<std::int64_t>(group.size());
    node.number(3, static_cast<std::uint64_t>(NodeType::collective));
    put_attribute(node, "comm_type", type);
    put_attribute(node, "comm_size", bytes);
    put_attribute(node, "pg_name", fmt::to_string(number_of(e.axis, group, mesh_)));
  }

  const Step& step_;
  const Mesh& mesh_;
  Rank rank_;
  Node out_;
  std::uint64_t count_ = 0, last_ = 0;  // ids begin at 1
  std::vector<std::uint64_t> after_;
  std::map<int, std::uint64_t> tickets_;
};

}  // namespace

std::string chakra_trace(const std::vector<Step>& classes, Rank rank) {
  return Trace(classes.at(class_of(classes[0].config, classes[0].mesh, rank)), rank).run();
}

std::string chakra_groups(const std::vector<Step>& classes) {
  std::map<std::int64_t, Group> groups;
  const Mesh& mesh = classes.at(0).mesh;
  for (Rank rank = 0; rank < mesh.ranks(); ++rank) {
    const Step& step = classes[class_of(classes[0].config, mesh, rank)];
    for (const Operation& o : step.program.operations) {
      if (o.kind != Operation::Kind::exchange || o.exchange.kind == Exchange::Kind::send ||
          o.exchange.kind == Exchange::Kind::receive)
        continue;
      Group group = group_of(step, o.exchange.axis, rank);
      const std::int64_t number = number_of(o.exchange.axis, group, mesh);
      groups.try_emplace(number, std::move(group));
    }
  }
  std::string text;
  for (const auto& [number, group] : groups)
    text += fmt::format("{}\"{}\": [{}]", text.empty() ? "{" : ",\n ", number, fmt::join(group, ", "));
  return text.empty() ? "{}\n" : text + "}\n";
}

}  // namespace trellis::train
