// PyTorch's flight recorder, of this backend: the last operations of the process in the form that torchfrtrace reads.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <torch/csrc/profiler/combined_traceback.h>
#include <torch/csrc/distributed/c10d/Types.hpp>

#include "trellis/torch/native/progress/torch_errors.h"

namespace trellis::process_group {

class TorchFlightRecorder {
 public:
  // Null unless TORCH_FR_BUFFER_SIZE or TORCH_NCCL_TRACE_BUFFER_SIZE says how many operations to keep.
  static TorchFlightRecorder* of_process();

  struct Flight {
    c10d::OpType type = c10d::OpType::UNKNOWN;
    std::string group, description;  // as torch names the group
    std::shared_ptr<const Membership> members;
    std::vector<at::Tensor> inputs, outputs;
    int from = -1, to = -1;  // of messages; ranks of the group
    std::uint64_t number = 0;
    std::int64_t timeout_ms = 0;
  };
  std::uint64_t issued(const Flight&);  // its number here
  void started(std::uint64_t);
  void ended(std::uint64_t, bool well);

  std::string pickled();  // as torch._C._distributed_c10d._dump_fr_trace() returns them for gloo
  void write(int rank);   // writes the file that torch's variables name, once, when an operation has failed

 private:
  using Sizes = std::vector<std::vector<std::int64_t>>;
  using Types = std::vector<std::string>;
  struct Entry {
    std::uint64_t id, collective, message, number;
    std::string group, description, name;
    std::int64_t created_ns, timeout_ms;
    std::optional<std::int64_t> started_ns, completed_ns;
    bool retired, is_message;
    Sizes input_sizes, output_sizes;
    Types input_types, output_types;
    std::shared_ptr<torch::CapturedTraceback> frames;
  };
  struct Group {
    std::string description, ranks;
    std::uint64_t collectives = 0, messages = 0, enqueued = 0, started = 0, completed = 0;
  };
  explicit TorchFlightRecorder(std::size_t most) : most_(most) {}
  Entry* find(std::uint64_t id);
  static c10::IValue as_value(const Entry&, std::int64_t group, const c10::IValue& frames);

  const std::size_t most_;
  std::mutex mutex_;
  std::deque<Entry> entries_;
  std::map<std::string, Group> groups_;
  std::uint64_t next_ = 0;
  bool written_ = false;
};

}  // namespace trellis::process_group
