#include "trellis/torch/native/records/torch_flight_recorder.h"

#include <chrono>

#include <ATen/core/ivalue.h>
#include <torch/csrc/distributed/c10d/TraceUtils.h>
#include <torch/csrc/distributed/c10d/FlightRecorder.hpp>
#include <torch/csrc/distributed/c10d/Utils.hpp>

namespace trellis::process_group {
namespace {

using c10d::OpType;

std::int64_t now_ns() {
  using namespace std::chrono;
  return duration_cast<nanoseconds>(system_clock::now().time_since_epoch()).count();
}

// torchfrtrace knows NCCL's names and no others.
std::string name_of(const TorchFlightRecorder::Flight& f) {
  switch (f.type) {
    case OpType::BROADCAST:
      return "nccl:broadcast";
    case OpType::ALLREDUCE:
    case OpType::_ALLREDUCE_SPARSE:
      return "nccl:all_reduce";
    case OpType::ALLREDUCE_COALESCED:
      return "nccl:allreduce_coalesced";
    case OpType::REDUCE:
      return "nccl:reduce";
    case OpType::ALLGATHER:
      return "nccl:all_gather";
    case OpType::_ALLGATHER_BASE:
      return f.inputs.size() == 1 ? "nccl:_all_gather_base" : "nccl:all_gather_into_tensor_coalesced";
    case OpType::GATHER:
      return "nccl:gather";
    case OpType::SCATTER:
      return "nccl:scatter";
    case OpType::REDUCE_SCATTER:
      return "nccl:reduce_scatter";
    case OpType::_REDUCE_SCATTER_BASE:
      return f.inputs.size() == 1 ? "nccl:_reduce_scatter_base" : "nccl:reduce_scatter_tensor_coalesced";
    case OpType::ALLTOALL_BASE:
    case OpType::ALLTOALL:
      return "nccl:all_to_all";
    case OpType::BARRIER:
      return "nccl:barrier";
    case OpType::SEND:
      return c10::str("nccl:send ", f.from, "->", f.to);
    default:
      return c10::str("nccl:recv ", f.to, "<-", f.from);
  }
}

bool is_message(OpType type) { return type == OpType::SEND || type == OpType::RECV || type == OpType::RECVANYSOURCE; }

// Whether the list of tensors is shown as the one tensor whose blocks they are.
bool has_blocks(OpType type, bool outputs) {
  if (type == OpType::ALLTOALL) return true;
  return outputs ? type == OpType::ALLGATHER || type == OpType::GATHER
                 : type == OpType::REDUCE_SCATTER || type == OpType::SCATTER;
}

std::string type_name(const at::Tensor& t) { return c10::toString(t.scalar_type()); }

std::string list(const Membership& group) {
  std::vector<std::uint64_t> ranks;
  for (int r = 0; r < group.size; ++r) ranks.push_back(static_cast<std::uint64_t>(group.in_job(r)));
  return c10d::ranks_str(ranks);
}

c10::IValue lists(const std::vector<std::vector<std::int64_t>>& all) {
  auto out = c10d::new_list();
  for (const auto& sizes : all) {
    auto one = c10d::new_list();
    for (const std::int64_t n : sizes) one.push_back(n);
    out.push_back(one);
  }
  return out;
}

c10::IValue words(const std::vector<std::string>& all) {
  auto out = c10d::new_list();
  for (const std::string& word : all) out.push_back(word);
  return out;
}

c10::IValue time_or_none(const std::optional<std::int64_t>& ns) { return ns ? c10::IValue(*ns) : c10::IValue(); }

c10::IValue frames_of(const torch::SymbolizedTracebacks& symbols, const std::vector<std::uint64_t>& numbers) {
  auto frames = c10d::new_list();
  for (const std::uint64_t number : numbers) {
    const auto& frame = symbols.all_frames.at(number);
    auto one = c10d::new_dict();
    one.insert("name", frame.funcname);
    one.insert("filename", frame.filename);
    one.insert("line", static_cast<std::int64_t>(frame.lineno));
    frames.push_back(one);
  }
  return frames;
}

}  // namespace

TorchFlightRecorder* TorchFlightRecorder::of_process() {
  // Never destroyed: it may hold Python's frames.
  static TorchFlightRecorder* const one = [] {
    const int most = c10d::getCvarInt({"TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE"}, 0);
    return most > 0 ? new TorchFlightRecorder(static_cast<std::size_t>(most)) : nullptr;
  }();
  return one;
}

std::uint64_t TorchFlightRecorder::issued(const Flight& f) {
  Entry e{.number = f.number,
          .group = f.group,
          .description = f.description,
          .name = name_of(f),
          .created_ns = now_ns(),
          .timeout_ms = f.timeout_ms,
          .retired = false,
          .is_message = is_message(f.type),
          .frames = torch::CapturedTraceback::gather(/*python=*/true, /*script=*/true, /*cpp=*/false)};
  const auto put = [&](const std::vector<at::Tensor>& tensors, Sizes& sizes, Types& types, bool outputs) {
    if (tensors.empty()) return;
    if (!has_blocks(f.type, outputs)) {
      for (const at::Tensor& t : tensors) sizes.push_back(t.sizes().vec()), types.push_back(type_name(t));
      return;
    }
    std::int64_t elements = 0;
    for (const at::Tensor& t : tensors) elements += t.numel();
    sizes.push_back({elements}), types.push_back(type_name(tensors.front()));
  };
  put(f.inputs, e.input_sizes, e.input_types, false);
  put(f.outputs, e.output_sizes, e.output_types, true);
  const std::lock_guard lock(mutex_);
  Group& group = groups_[f.group];
  group.description = f.description, group.ranks = list(*f.members), group.enqueued = f.number;
  ++(e.is_message ? group.messages : group.collectives);
  e.id = next_++, e.collective = group.collectives, e.message = group.messages;
  entries_.push_back(std::move(e));
  if (entries_.size() > most_) entries_.pop_front();
  return entries_.back().id;
}

TorchFlightRecorder::Entry* TorchFlightRecorder::find(std::uint64_t id) {
  const std::uint64_t first = next_ - entries_.size();
  return id < first ? nullptr : &entries_[id - first];
}

void TorchFlightRecorder::started(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  Entry* const e = find(id);
  if (e == nullptr) return;
  e->started_ns = now_ns();
  groups_[e->group].started = e->number;
}

// An operation that has ended and is not completed has failed.
void TorchFlightRecorder::ended(std::uint64_t id, bool well) {
  const std::lock_guard lock(mutex_);
  Entry* const e = find(id);
  if (e == nullptr) return;
  e->retired = true;
  if (!well) return;
  if (!e->started_ns) e->started_ns = now_ns();
  e->completed_ns = now_ns();
  groups_[e->group].completed = e->number;
}

c10::IValue TorchFlightRecorder::as_value(const Entry& e, std::int64_t group, const c10::IValue& frames) {
  auto one = c10d::new_dict();
  one.insert("frames", frames);
  one.insert("record_id", static_cast<std::int64_t>(e.id));
  one.insert("pg_id", group);
  one.insert("process_group", c10::ivalue::Tuple::create({e.group, e.description}));
  one.insert("collective_seq_id", static_cast<std::int64_t>(e.collective));
  one.insert("p2p_seq_id", static_cast<std::int64_t>(e.message));
  one.insert("op_id", static_cast<std::int64_t>(e.number));
  one.insert("profiling_name", e.name);
  one.insert("time_created_ns", e.created_ns);
  one.insert("input_sizes", lists(e.input_sizes));
  one.insert("input_dtypes", words(e.input_types));
  one.insert("output_sizes", lists(e.output_sizes));
  one.insert("output_dtypes", words(e.output_types));
  one.insert("state", e.completed_ns ? "completed" : e.started_ns ? "started" : "scheduled");
  one.insert("time_discovered_started_ns", time_or_none(e.started_ns));
  one.insert("time_discovered_completed_ns", time_or_none(e.completed_ns));
  if (e.completed_ns) one.insert("duration_ms", static_cast<double>(*e.completed_ns - *e.started_ns) / 1e6);
  one.insert("retired", e.retired);
  one.insert("timeout_ms", e.timeout_ms);
  one.insert("is_p2p", e.is_message);
  return one;
}

std::string TorchFlightRecorder::pickled() {
  std::deque<Entry> entries;
  std::map<std::string, Group> groups;
  {
    const std::lock_guard lock(mutex_);
    entries = entries_, groups = groups_;
  }
  std::vector<torch::CapturedTraceback*> traces;
  for (const Entry& e : entries) traces.push_back(e.frames.get());
  const torch::SymbolizedTracebacks symbols = torch::symbolize(traces);
  auto all = c10d::new_list();
  for (std::size_t i = 0; i < entries.size(); ++i)
    all.push_back(as_value(entries[i], std::distance(groups.begin(), groups.find(entries[i].group)),
                           frames_of(symbols, symbols.tracebacks.at(i))));
  auto config = c10d::new_dict(), status = c10d::new_dict();
  for (const auto& [name, group] : groups) {
    auto one = c10d::new_dict(), state = c10d::new_dict();
    one.insert("name", name);
    one.insert("desc", group.description);
    one.insert("ranks", group.ranks);
    config.insert(name, one);
    state.insert("last_enqueued_collective", std::to_string(group.enqueued));
    state.insert("last_started_collective", std::to_string(group.started));
    state.insert("last_completed_collective", std::to_string(group.completed));
    status.insert(name, state);
  }
  auto whole = c10d::new_dict();
  whole.insert("version", c10d::version_val);
  whole.insert("pg_config", config);
  whole.insert("pg_status", status);
  whole.insert("comm_lib_version", "trellis");
  whole.insert("entries", all);
  return c10d::pickle_str(whole);
}

void TorchFlightRecorder::write(int rank) {
  {
    const std::lock_guard lock(mutex_);
    if (written_ || !c10d::getCvarBool({"TORCH_FR_DUMP_ON_TIMEOUT", "TORCH_NCCL_DUMP_ON_TIMEOUT"}, true)) return;
    written_ = true;
  }
  c10d::DebugInfoWriter::getWriter(rank).write(pickled());
}

}  // namespace trellis::process_group
