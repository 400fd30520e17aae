#include "device/neuron/runtime.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <random>

#include "device/environment_variable.h"
#include "device/fork_safe_singleton.h"
#include "device/neuron/queue_completion.h"
#include "device/visible_cores.h"
#include "text/refuse.h"

namespace trellis::device {
namespace {

class Category : public std::error_category {
 public:
  const char* name() const noexcept override { return "libnrt"; }
  std::string message(int status) const override { return fmt::format("status {}", status); }
};

struct Known {
  std::mutex mutex;
  std::weak_ptr<NeuronRuntime> runtime;
};

Known& known() {
  return of_this_process([] { return new Known; });
}

std::size_t number_of_process() {
  return of_this_process([] { return new const std::size_t(std::random_device()()); });
}

constexpr std::array<std::string_view, 16> families = {"unknown", "inf1",    "trn1",  "trn1n",    "inf2",  "trn2",
                                                       "trn2n",   "inf2e",   "trn2p", "trn2u",    "trn2e", "trn2eu",
                                                       "trn2ac",  "trn2uac", "trn3",  "trn3pds98"};
// Physical cores of a logical one, by the machine's or the chip's family, where NEURON_LOGICAL_NC_CONFIG does not say.
constexpr std::pair<std::string_view, int> usual_logical_sizes[] = {
    {"inf1", 1}, {"inf2", 1}, {"trn1", 1}, {"trn2", 2}, {"trn3", 2}};

int physical_of_core(const Topology& t) {  // 0: not known
  if (const auto told = core_settings().logical_size) return *told;
  for (const auto& [family, usual] : usual_logical_sizes)
    if (t.machine.starts_with(family) || t.chip.starts_with(family)) return usual;
  return 0;
}

constexpr std::array<std::string_view, 9> sizes = {"xlarge",   "2xlarge",  "4xlarge",  "6xlarge", "8xlarge",
                                                   "24xlarge", "32xlarge", "48xlarge", "3xlarge"};

}  // namespace

const std::error_category& nrt_category() {
  static const Category one;
  return one;
}

std::shared_ptr<NeuronRuntime> NeuronRuntime::of_process() {
  const std::lock_guard lock(known().mutex);
  auto runtime = known().runtime.lock();
  if (!runtime) known().runtime = runtime = std::make_shared<NeuronRuntime>();
  return runtime;
}

std::string NeuronRuntime::missing() {
  try {
    const nrt::NrtLibrary library(nrt::library_file());
    return {};
  } catch (const Unsupported& e) {
    return e.what();
  }
}

NeuronRuntime::NeuronRuntime() : library_(nrt::library_file()) {
  last_error_ = reinterpret_cast<const char* (*)()>(library_.symbol("trellis_nrt_last_error"));
  for (const std::string_view name : {"nrt_close", "nrt_tensor_allocate", "nrt_tensor_free", "nrt_tensor_read",
                                      "nrt_tensor_write", "nrt_tensor_copy", "nrt_tensor_memset", "nrt_tensor_get_va"})
    if (!library_.lacks({name}).empty()) throw Unsupported("neuron: " + library_.missing_text(name));
  call(library_.nrt_init, "nrt_init", nrt::Framework::none, "", "");
}

NeuronRuntime::~NeuronRuntime() {
  kept_.clear();
  library_.nrt_close();
}

std::string NeuronRuntime::enter(std::uint64_t identity) {
  const std::lock_guard lock(mutex_);
  if (world_ != 0 && world_ != identity)
    return "neuron: this process's devices are in the world of another communicator already";
  world_ = identity;
  ++entered_;
  return {};
}

void NeuronRuntime::leave() {
  const std::lock_guard lock(mutex_);
  if (--entered_ == 0) world_ = 0;
}

std::uint64_t NeuronRuntime::world_of(std::uint64_t identity) {
  const std::string root = value_of_variable("NEURON_RT_ROOT_COMM_ID");
  const std::size_t meeting = root.empty() ? number_of_process() : std::hash<std::string>()(root);
  return std::max<std::uint64_t>(identity ^ (meeting * 0x9E3779B97F4A7C15), 1);
}

NativeTurn NeuronRuntime::take_native_turn(int core) {
  forget_ended();
  const std::lock_guard lock(mutex_);
  std::weak_ptr<const void>& taken = turns_[core];
  if (!taken.expired()) return nullptr;
  NativeTurn turn = std::make_shared<char>();
  taken = turn;
  return turn;
}

void NeuronRuntime::keep(std::shared_ptr<const void> in_use, nrt::Sequence collective) {
  const std::lock_guard lock(mutex_);
  kept_.emplace_back(collective, std::move(in_use));
}

void NeuronRuntime::forget_ended() {
  std::vector<std::shared_ptr<const void>> ended;  // destroyed without the lock
  const std::lock_guard lock(mutex_);
  ended.reserve(kept_.size());
  std::erase_if(kept_, [&](auto& one) {
    try {
      if (!is_done(*this, one.first)) return false;
    } catch (const std::exception&) {  // whether it has ended is not known: it is kept
      return false;
    }
    ended.push_back(std::move(one.second));
    return true;
  });
}

void NeuronRuntime::check(nrt::Status status, std::string_view function) const {
  if (status == nrt::Status::success) return;
  const char* const word = library_.nrt_get_status_as_str == nullptr ? nullptr : library_.nrt_get_status_as_str(status);
  std::string text = fmt::format("neuron: {}: {}", function, word == nullptr ? "failed" : word);
  if (last_error_ != nullptr) text += fmt::format(" ({})", last_error_());
  if (status == nrt::Status::invalid || status == nrt::Status::invalid_handle) throw std::invalid_argument(text);
  if (status == nrt::Status::unsupported_neff) throw Unsupported(text);
  throw std::system_error(static_cast<int>(status), nrt_category(), text);
}

std::string_view NeuronRuntime::lacking(Capability c) const {
  switch (c) {
    case Capability::export_memory:
      return library_.lacks({"nrt_get_dmabuf_fd"});
    case Capability::programs:
      return library_.lacks({"nrt_load", "nrt_unload", "nrt_execute", "nrt_allocate_tensor_set",
                             "nrt_destroy_tensor_set", "nrt_add_tensor_to_tensor_set", "nrt_get_model_tensor_info",
                             "nrt_free_model_tensor_info"});
    case Capability::async_queues:  // error trackers tell 2.28 from 2.27, whose functions had other parameters
      return library_.lacks({"nrta_error_tracker_create", "nrta_error_tracker_destroy", "nrta_error_tracker_get_list",
                             "nrta_execute_schedule", "nrta_tensor_read", "nrta_tensor_write", "nrta_tensor_copy",
                             "nrta_is_completed"});
    case Capability::collectives:
      return library_.lacks({"nrt_cc_global_comm_init", "nrta_cc_prepare", "nrta_cc_schedule", "nrta_is_completed",
                             "nrta_error_tracker_create", "nrta_error_tracker_destroy", "nrta_error_tracker_get_list",
                             "nrt_tensor_allocate_slice"});
    case Capability::send_recv:
      return library_.lacks({"nrt_async_sendrecv_init", "nrt_async_sendrecv_close", "nrt_async_sendrecv_connect",
                             "nrt_async_sendrecv_accept", "nrt_async_sendrecv_test_comm",
                             "nrt_async_sendrecv_send_tensor", "nrt_async_sendrecv_recv_tensor",
                             "nrt_async_sendrecv_test_request", "nrt_async_sendrecv_flush"});
    case Capability::memory_stats:
      return library_.lacks({"nrt_get_vnc_memory_stats"});
    case Capability::profile:
      return library_.lacks({"nrt_profile_start", "nrt_profile_stop"});
    case Capability::host_access:
    case Capability::window:
    case Capability::share:
    case Capability::simulated_time:
      return {};
  }
  return {};
}

Capabilities NeuronRuntime::capabilities() const {
  Capabilities out{Capability::host_access};
  for (const Capability c :
       {Capability::export_memory, Capability::programs, Capability::async_queues, Capability::collectives,
        Capability::send_recv, Capability::memory_stats, Capability::profile})
    if (lacking(c).empty()) out.add(c);
  return out;
}

std::string NeuronRuntime::why_not(Capability c) const {
  if (capabilities().has(c)) return {};
  if (const std::string_view function = lacking(c); !function.empty())
    return fmt::format("neuron lacks {}: {}", name(c), library_.missing_text(function));
  return fmt::format("neuron lacks {}: a real device's memory is not pages of the host, and its time is real", name(c));
}

Topology NeuronRuntime::topology(int core) const {
  Topology t{.machine = "unknown", .chip = "unknown"};
  const auto tell = [&](std::string_view what, std::string_view function) {
    t.unknown.push_back(fmt::format("{}: {}", what, library_.missing_text(function)));
  };
  std::uint32_t total = 1, visible = 1;
  call(library_.nrt_get_total_nc_count, "nrt_get_total_nc_count", &total);
  call(library_.nrt_get_visible_nc_count, "nrt_get_visible_nc_count", &visible);
  t.cores = static_cast<int>(total);
  t.visible = static_cast<int>(visible);
  if (core < 0 || core >= t.visible)
    text::refuse("neuron: core {}: expected one of the {} visible cores, from 0 on", core, t.visible);
  t.core = core;
  if (const auto cores = visible_cores(core_settings(), t.cores); static_cast<std::size_t>(core) < cores.size())
    t.core = cores[static_cast<std::size_t>(core)];
  if (library_.nrt_get_instance_info != nullptr) {
    nrt::InstanceInfo info{};
    call(library_.nrt_get_instance_info, "nrt_get_instance_info", &info, sizeof info);
    const auto family = static_cast<std::size_t>(info.family), size = static_cast<std::size_t>(info.size);
    if (family < families.size())
      t.machine = fmt::format("{}{}{}", families[family], size < sizes.size() ? "." : "",
                              size < sizes.size() ? sizes[size] : "");
    t.chip = std::string(info.arch_name, strnlen(info.arch_name, sizeof info.arch_name));
  } else {
    tell("the instance", "nrt_get_instance_info");
  }
  t.physical_of_core = physical_of_core(t);
  if (t.physical_of_core == 0)
    t.unknown.push_back(
        "the physical cores of a logical one: libnrt does not tell, and NEURON_LOGICAL_NC_CONFIG is unset");
  if (library_.nrt_host_device_id_rid_map_get != nullptr) {
    std::array<std::uint32_t, 256> map{};
    std::uint32_t chips = map.size();
    call(library_.nrt_host_device_id_rid_map_get, "nrt_host_device_id_rid_map_get", &chips, map.data());
    if (chips != 0 && total % chips == 0) t.chips = static_cast<int>(chips);
  } else {
    tell("the number of chips", "nrt_host_device_id_rid_map_get");
  }
  if (library_.nrt_get_vnc_memory_stats != nullptr) {
    nrt::MemoryStats stats{};
    std::size_t written = 0;
    call(library_.nrt_get_vnc_memory_stats, "nrt_get_vnc_memory_stats", static_cast<std::uint32_t>(core), &stats,
         sizeof stats, &written);
    t.memory_bytes = static_cast<double>(stats.bytes_limit);
  } else {
    tell("the memory of a core", "nrt_get_vnc_memory_stats");
  }
  t.unknown.push_back("links and network interfaces: libnrt does not tell of them");
  return t;
}

}  // namespace trellis::device
