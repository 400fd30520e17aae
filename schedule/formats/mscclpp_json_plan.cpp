#include "schedule/formats/mscclpp_json_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "text/refuse.h"

namespace trellis::schedule::mscclpp {
namespace {

using Json = nlohmann::json;

constexpr std::int32_t most = std::numeric_limits<std::int32_t>::max();
constexpr std::size_t most_blocks = 256;  // per gpu; each block becomes a channel of the schedule

// A JSON value with its path, for error messages.
class Value {
 public:
  Value(const Json& json, std::string place) : json_(json), place_(std::move(place)) {}

  template <class... T>
  [[noreturn]] void fail(fmt::format_string<T...> why, T&&... values) const {
    throw std::invalid_argument(place_ + ": " + fmt::format(why, std::forward<T>(values)...));
  }

  bool has(const char* key) const { return json_.is_object() && json_.contains(key); }
  Value operator[](const char* key) const {
    if (!json_.is_object()) fail("expected an object");
    const auto found = json_.find(key);
    if (found == json_.end()) fail("has no '{}'", key);
    return {*found, fmt::format("{} {}", place_, key)};
  }

  std::string text() const {
    if (!json_.is_string()) fail("expected a text");
    return json_.get<std::string>();
  }
  bool truth() const {
    if (!json_.is_boolean()) fail("expected true or false");
    return json_.get<bool>();
  }
  std::int32_t number(std::int32_t least, std::int32_t greatest) const {
    const bool fits = json_.is_number_unsigned() ? json_.get<std::uint64_t>() <= static_cast<std::uint64_t>(most)
                                                 : json_.is_number_integer();
    if (!fits || json_.get<std::int64_t>() < least || json_.get<std::int64_t>() > greatest)
      fail("expected a whole number, {} to {}", least, greatest);
    return json_.get<std::int32_t>();
  }
  std::size_t size() const {
    if (!json_.is_array()) fail("expected a list");
    return json_.size();
  }
  template <class Visit>
  void each(Visit visit) const {
    for (std::size_t i = 0, n = size(); i < n; ++i) visit(Value(json_[i], fmt::format("{} {}", place_, i)), i);
  }

 private:
  const Json& json_;
  std::string place_;
};

Buffer buffer(const Value& value) {
  const std::string text = value.text();
  if (text == "i") return Buffer::input;
  if (text == "o") return Buffer::output;
  if (text == "s") return Buffer::scratch;
  value.fail("expected i, o or s");
}

void only_memory(const Value& value) {
  const std::string text = value.text();
  if (text == "switch") value.fail("switch channels leave the order of a sum to the switch");
  if (text == "port") value.fail("port channels leave the end of a put to their proxy");
  if (text != "memory") value.fail("expected memory");
}

struct Remote {
  Rank rank;
  Buffer buffer;
};

// What a thread block's operations refer to by index.
struct Names {
  Rank rank;
  std::vector<std::int32_t> channels;  // of the gpu
  std::vector<Remote> remotes;
  std::size_t semaphores;
};

struct Known {
  std::string_view name;
  PlanOperationKind kind;
};
constexpr std::array<Known, 15> kinds{{
    {"nop", PlanOperationKind::nop},
    {"barrier", PlanOperationKind::barrier},
    {"signal", PlanOperationKind::signal},
    {"wait", PlanOperationKind::wait},
    {"rlxsignal", PlanOperationKind::relaxed_signal},
    {"rlxwait", PlanOperationKind::relaxed_wait},
    {"sem_release", PlanOperationKind::release},
    {"sem_acquire", PlanOperationKind::acquire},
    {"copy", PlanOperationKind::copy},
    {"put", PlanOperationKind::put},
    {"get", PlanOperationKind::get},
    {"re", PlanOperationKind::reduce},
    {"res", PlanOperationKind::reduce},
    {"rre", PlanOperationKind::reduce},
    {"rres", PlanOperationKind::reduce},
}};

PlanOperationKind kind_of(const Value& operation) {
  const std::string name = operation["name"].text();
  for (const Known& known : kinds)
    if (known.name == name) return known.kind;
  if (name == "pipeline") operation.fail("a pipeline goes round as often as the size at run time says");
  if (name.ends_with("pkt")) operation.fail("{}: packets keep their order in flags inside the data", name);
  if (name == "glres" || name == "gstore") operation.fail("{}: the order of the sum is the switch's choice", name);
  if (name == "pws" || name == "pwsf" || name == "flush")
    operation.fail("{}: port channels leave the end of a put to their proxy", name);
  operation["name"].fail("'{}' is no operation that is known", name.substr(0, 40));
}

std::vector<PlanChunkRange> chunks(const Value& list, const Names& names) {
  std::vector<PlanChunkRange> all;
  list.each([&](const Value& item, std::size_t) {
    PlanChunkRange chunks;
    if (item.has("switch_channel_id")) item.fail("switch channels leave the order of a sum to the switch");
    if (item.has("buffer_id")) {
      if (names.remotes.empty()) item.fail("names another gpu's buffer, but its thread block refers to none");
      const Remote& remote =
          names.remotes[item["buffer_id"].number(0, static_cast<std::int32_t>(names.remotes.size()) - 1)];
      chunks.rank = remote.rank;
      chunks.buffer = remote.buffer;
    } else {
      chunks.rank = names.rank;
      chunks.buffer = buffer(item["type"]);
    }
    chunks.count = item["size"].number(1, most);
    chunks.first = item["index"].number(0, most - chunks.count);
    if (!all.empty() && all[0].count != chunks.count) item.fail("has {} chunks for {}", chunks.count, all[0].count);
    all.push_back(chunks);
  });
  return all;
}

// Checks that the operation's sources and targets are allowed for its kind.
void check_shape(const Value& value, const PlanOperation& operation, Rank rank) {
  const auto& from = operation.sources;
  const auto& to = operation.targets;
  const auto here = [&](const PlanChunkRange& c) { return c.rank == rank; };
  const auto there = [&](const PlanChunkRange& c) { return c.rank != rank; };
  bool right = !from.empty() && !to.empty() && from[0].count == to[0].count;
  switch (operation.kind) {
    case PlanOperationKind::copy:
      right = right && from.size() == 1 && to.size() == 1 && here(from[0]) && here(to[0]);
      break;
    case PlanOperationKind::put:
      right = right && from.size() == to.size() && std::ranges::all_of(from, here) && std::ranges::all_of(to, there);
      break;
    case PlanOperationKind::get:
      right = right && from.size() == to.size() && std::ranges::all_of(from, there) && std::ranges::all_of(to, here);
      break;
    default:
      right = right && from.size() >= 2 && here(from[0]) && here(to[0]) && std::all_of(to.begin() + 1, to.end(), there);
      break;
  }
  if (!right) value.fail("its sources and targets don't fit this kind of operation");
  if (operation.kind == PlanOperationKind::reduce && value["reduce_op"].text() != "sum")
    value["reduce_op"].fail("expected sum");
}

PlanOperation operation(const Value& value, const Names& names) {
  PlanOperation op;
  op.kind = kind_of(value);
  if (value.has("tbg_info")) value.fail("thread block groups cut chunks at run time");
  const auto ids = [&](const char* key, const std::vector<std::int32_t>& list) {
    value[key].each([&](const Value& id, std::size_t) {
      op.ids.push_back(list.at(id.number(0, static_cast<std::int32_t>(list.size()) - 1)));
    });
  };
  switch (op.kind) {
    case PlanOperationKind::nop:
      break;
    case PlanOperationKind::barrier:
      op.ids.push_back(value["barrier_id"].number(0, most));
      op.blocks = value["num_threadblocks"].number(1, most_blocks);
      break;
    case PlanOperationKind::signal:
    case PlanOperationKind::wait:
    case PlanOperationKind::relaxed_signal:
    case PlanOperationKind::relaxed_wait:
      only_memory(value["channel_type"]);
      ids("channel_ids", names.channels);
      break;
    case PlanOperationKind::release:
    case PlanOperationKind::acquire:
      value["semaphore_ids"].each([&](const Value& id, std::size_t) {
        op.ids.push_back(id.number(0, static_cast<std::int32_t>(names.semaphores) - 1));
      });
      break;
    default:
      if (value.has("channel_type")) only_memory(value["channel_type"]);
      op.sources = chunks(value["src_buff"], names);
      op.targets = chunks(value["dst_buff"], names);
      check_shape(value, op, names.rank);
  }
  return op;
}

PlanThreadBlock block(const Value& value, const Names& of_gpu, const std::vector<Remote>& remotes) {
  Names names{of_gpu.rank, {}, {}, of_gpu.semaphores};
  value["channels"].each([&](const Value& channel, std::size_t) {
    only_memory(channel["channel_type"]);
    channel["channel_ids"].each([&](const Value& id, std::size_t) {
      names.channels.push_back(id.number(0, static_cast<std::int32_t>(of_gpu.channels.size()) - 1));
    });
  });
  if (value.has("remote_buffer_refs"))
    value["remote_buffer_refs"].each([&](const Value& reference, std::size_t) {
      only_memory(reference["access_channel_type"]);
      reference["remote_buffer_ids"].each([&](const Value& id, std::size_t) {
        names.remotes.push_back(remotes.at(id.number(0, static_cast<std::int32_t>(remotes.size()) - 1)));
      });
    });
  PlanThreadBlock block;
  value["ops"].each([&](const Value& item, std::size_t) { block.operations.push_back(operation(item, names)); });
  return block;
}

PlanGpu gpu(const Value& value, Rank rank, Rank ranks) {
  const auto peer = [&](const Value& other) {
    const Rank r = other.number(0, ranks - 1);
    if (r == rank) other.fail("is this gpu itself");
    return r;
  };
  PlanGpu gpu;
  if (value["id"].number(0, ranks - 1) != rank) value["id"].fail("expected {}, its place in the list", rank);
  gpu.inputs = value["input_chunks"].number(0, most);
  gpu.outputs = value["output_chunks"].number(0, most);
  gpu.scratch = value["scratch_chunks"].number(0, most);
  value["channels"].each([&](const Value& channel, std::size_t) {
    only_memory(channel["channel_type"]);
    channel["connected_to"].each([&](const Value& other, std::size_t) { gpu.channels.push_back(peer(other)); });
  });
  std::vector<Remote> remotes;
  value["remote_buffers"].each([&](const Value& remote, std::size_t) {
    remotes.push_back({peer(remote["rank"]), buffer(remote["type"])});
  });
  if (value.has("semaphores"))
    value["semaphores"].each([&](const Value& semaphore, std::size_t) {
      gpu.semaphores.push_back(semaphore["init_value"].number(0, 1 << 16));
    });
  Names names{rank, {}, {}, gpu.semaphores.size()};
  for (std::size_t i = 0; i < gpu.channels.size(); ++i) names.channels.push_back(static_cast<std::int32_t>(i));
  if (value["threadblocks"].size() > most_blocks) value.fail("has more than {} thread blocks", most_blocks);
  value["threadblocks"].each([&](const Value& item, std::size_t at) {
    if (item["id"].number(0, most) != static_cast<std::int32_t>(at))
      item["id"].fail("expected {}, its place in the list", at);
    gpu.blocks.push_back(block(item, names, remotes));
  });
  return gpu;
}

}  // namespace

std::string place(Rank rank, std::size_t block, std::size_t operation) {
  return fmt::format("gpus {} threadblocks {} ops {}", rank, block, operation);
}

ExecutionPlan read(std::string_view text) try {
  const Json json = Json::parse(text);
  const Value whole(json, "plan");
  ExecutionPlan plan;
  plan.name = whole["name"].text();
  plan.collective = whole["collective"].text();
  plan.in_place = whole["inplace"].truth();
  if (whole["protocol"].text() != "Simple")
    whole["protocol"].fail("packets keep their order in flags inside the data: expected Simple");
  const Value gpus(json.at("gpus"), "gpus");
  const auto ranks = static_cast<Rank>(std::min<std::size_t>(gpus.size(), most));
  gpus.each([&](const Value& item, std::size_t r) { plan.gpus.push_back(gpu(item, static_cast<Rank>(r), ranks)); });
  return plan;
} catch (const Json::exception& error) {
  text::refuse("plan: {}", error.what());
}

}  // namespace trellis::schedule::mscclpp
