#include "train/whole/chakra.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <vector>

#include "text/protobuf_writer.h"
#include "train/whole/check.h"
#include "train/whole/traffic.h"

namespace trellis::train {
namespace {

using Node = text::ProtobufWriter;

constexpr std::uint32_t data_deps = 5;         // ASTRA-sim does not wait for what is among ctrl_deps
constexpr std::int32_t first_shift = 1 << 20;  // tags of shifts come after those of the pipeline's messages
enum class NodeType : std::uint8_t { compute = 4, send = 5, receive = 6, collective = 7 };

// AttributeProto: a name, and a value in the field of its type. Chakra's own reader looks into one field for each name,
// and reads 0 if the value is in another one.
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

// ASTRA-sim names groups by numbers. An axis and a group's first rank make up a number.
std::int64_t number_of(Axis axis, const Group& group, const Mesh& mesh) {
  return std::int64_t{static_cast<std::uint8_t>(axis)} * mesh.ranks() + group.front() + 1;
}

class Trace {
 public:
  Trace(const RankStep& step, Rank rank) : step_(step), mesh_(step.mesh), rank_(rank) {
    Node metadata;
    metadata.text(1, "0.0.4");
    out_.after_its_size(metadata.bytes());
  }

  std::string run() {
    for (const Operation& o : step_.program.operations) {
      if (o.kind == Operation::Kind::wait) {
        if (o.ahead) continue;  // it waits for what the step before began
        const std::vector<std::uint64_t>& begun = tickets_.at(o.ticket);
        after_.insert(after_.end(), begun.begin(), begun.end());
        continue;
      }
      const std::vector<std::uint64_t> ids = write(o);
      if (o.ticket != 0) {
        tickets_[o.ticket] = ids;
      } else {
        last_ = ids;
        after_.clear();
      }
    }
    return out_.take();
  }

 private:
  // An operation is a node. A shift is two, a send and a receive, which do not wait for each other.
  std::vector<std::uint64_t> write(const Operation& o) {
    std::vector<std::uint64_t> ids;
    if (o.kind != Operation::Kind::exchange || o.exchange.kind != Exchange::Kind::shift) {
      Node node = begin(o, ids);
      describe(node, o);
      end(node, o);
      return ids;
    }
    const Group group = group_of(step_, o.exchange.axis, rank_);
    const auto place = static_cast<std::size_t>(std::find(group.begin(), group.end(), rank_) - group.begin());
    const Rank next = group[(place + 1) % group.size()], before = group[(place + group.size() - 1) % group.size()];
    const std::int32_t tag = first_shift + shifts_++;
    for (const bool send : {true, false}) {
      Node node = begin(o, ids);
      message(node, o, send, send ? next : before, tag);
      end(node, o);
    }
    return ids;
  }

  Node begin(const Operation& o, std::vector<std::uint64_t>& ids) {
    ids.push_back(++count_);
    Node node;
    node.number(1, count_);
    node.text(2, o.name);
    return node;
  }

  // A node depends on the last operation without a ticket. If it has no ticket itself, it also depends on the exchanges
  // that were waited for since.
  void end(Node& node, const Operation& o) {
    for (std::uint64_t before : last_) node.number(data_deps, before);
    if (o.ticket == 0)
      for (std::uint64_t before : after_) node.number(data_deps, before);
    out_.after_its_size(node.bytes());
  }

  void message(Node& node, const Operation& o, bool send, Rank other, std::int32_t tag) const {
    node.number(3, static_cast<std::uint64_t>(send ? NodeType::send : NodeType::receive));
    put_attribute(node, "comm_size", static_cast<std::int64_t>(step_.program.bytes_exchanged(o)));
    put_attribute(node, "comm_tag", tag);
    put_attribute(node, "comm_src", std::int32_t{send ? rank_ : other});
    put_attribute(node, "comm_dst", std::int32_t{send ? other : rank_});
  }

  void describe(Node& node, const Operation& o) const {
    if (o.kind == Operation::Kind::compute) {
      node.number(3, static_cast<std::uint64_t>(NodeType::compute));
      put_attribute(node, "num_ops", static_cast<std::int64_t>(o.flops));
      put_attribute(node, "tensor_size", static_cast<std::uint64_t>(step_.program.bytes_touched(o)));
      return;
    }
    const Exchange& e = o.exchange;
    if (e.kind == Exchange::Kind::send || e.kind == Exchange::Kind::receive) {
      Place other = mesh_.place(rank_);
      other.pipeline = e.peer;
      message(node, o, e.kind == Exchange::Kind::send, mesh_.rank(other), e.label);
      return;
    }
    const Group group = group_of(step_, e.axis, rank_);
    const bool to_all = e.kind == Exchange::Kind::all_to_all || e.kind == Exchange::Kind::all_to_all_v;
    const std::int64_t type = e.kind == Exchange::Kind::all_reduce   ? 0
                              : e.kind == Exchange::Kind::all_gather ? 2
                              : to_all                               ? 6
                                                                     : 7;
    auto bytes = static_cast<std::int64_t>(step_.program.bytes_exchanged(o));
    if (to_all || e.kind == Exchange::Kind::reduce_scatter) bytes *= static_cast<std::int64_t>(group.size());
    node.number(3, static_cast<std::uint64_t>(NodeType::collective));
    put_attribute(node, "comm_type", type);
    put_attribute(node, "comm_size", bytes);
    put_attribute(node, "pg_name", fmt::to_string(number_of(e.axis, group, mesh_)));
  }

  const RankStep& step_;
  const Mesh& mesh_;
  Rank rank_;
  Node out_;
  std::uint64_t count_ = 0;  // ids begin at 1
  std::int32_t shifts_ = 0;
  std::vector<std::uint64_t> last_, after_;
  std::map<int, std::vector<std::uint64_t>> tickets_;
};

}  // namespace

std::string chakra_trace(const std::vector<RankStep>& classes, Rank rank) {
  return Trace(classes.at(class_of(classes[0].config, classes[0].mesh, rank)), rank).run();
}

std::string chakra_groups(const std::vector<RankStep>& classes) {
  std::map<std::int64_t, Group> groups;
  const Mesh& mesh = classes.at(0).mesh;
  for (Rank rank = 0; rank < mesh.ranks(); ++rank) {
    const RankStep& step = classes[class_of(classes[0].config, mesh, rank)];
    for (const Operation& o : step.program.operations) {
      if (o.kind != Operation::Kind::exchange || o.exchange.kind == Exchange::Kind::send ||
          o.exchange.kind == Exchange::Kind::receive || o.exchange.kind == Exchange::Kind::shift)
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
