#include "device/libnrt/inspection_session.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "device/environment_variable.h"
#include "device/libnrt/runtime.h"
#include "device/libnrt/status_error.h"
#include "device/topology.h"
#include "device/visible_cores.h"
#include "text/number_parsing.h"

namespace trellis::device::nrt {
namespace {

constexpr const char* cores_name = "NEURON_RT_INSPECT_EVENT_FILTER_NC";
constexpr const char* types_name = "NEURON_RT_INSPECT_EVENT_FILTER_TYPE";
constexpr const char* most_name = "NEURON_RT_INSPECT_SYS_TRACE_MAX_EVENTS_PER_NC";

// Reads an on/off variable; DEVICE_PROFILE also has words such as "session".
bool flag(const char* variable, bool otherwise) {
  const std::string value = value_of_variable(variable);
  return value.empty() ? otherwise : value != "0" && value != "false";
}

// The events that the filter leaves out: "hardware,^cc_running", "nrt_execute,nrt_tensor_read", "^nrt_barrier".
std::set<std::string> types_off(std::string_view filter) {
  std::set<std::string> off;
  if (filter.empty()) return off;
  if (filter.front() != '^') off.insert(event_types().begin(), event_types().end());
  for (std::string_view rest = filter; !rest.empty();) {
    std::string_view word = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), word.size() + 1));
    const bool leave_out = word.starts_with('^');
    if (leave_out) word.remove_prefix(1);
    const bool hardware = word == "hardware", category = hardware || word == "software";
    if (!category && std::ranges::find(event_types(), word) == event_types().end())
      warn(types_name, fmt::format("'{}': no event of it is recorded here", word));
    for (const std::string& type : event_types()) {
      if (category ? is_hardware_event(type) != hardware : type != word) continue;
      if (leave_out)
        off.insert(type);
      else
        off.erase(type);
    }
  }
  return off;
}

// The filter numbers all cores of the machine; events number only the visible ones.
std::set<std::uint32_t> cores_off(const std::string& filter) {
  std::set<std::uint32_t> off;
  if (filter.empty()) return off;
  const int cores = machine_topology().cores;
  const std::vector<int> wanted = core_list(cores_name, filter, cores);
  const std::vector<int> visible = visible_cores(core_settings(), cores);
  for (const int core : wanted)
    if (std::ranges::find(visible, core) == visible.end())
      refuse(Status::invalid, "{}={}: core {} is not visible", cores_name, filter, core);
  for (std::uint32_t c = 0; c < visible.size(); ++c)
    if (std::ranges::find(wanted, visible[c]) == wanted.end()) off.insert(c);
  return off;
}

std::uint64_t most_events(const std::string& text) {
  if (text.empty()) return TraceSettings{}.most_events;
  const auto most = text::number<std::uint64_t>(text, 1);
  if (!most) refuse(Status::invalid, "{}={}: expected a number from 1 on", most_name, text);
  return *most;
}

}  // namespace

bool inspection_is_wanted() { return flag("NEURON_RT_INSPECT_ENABLE", false); }

InspectionSettings inspection_of_environment() {
  InspectionSettings s;
  const bool on = flag("NEURON_RT_INSPECT_ENABLE", true);
  if (const std::string folder = value_of_variable("NEURON_RT_INSPECT_OUTPUT_DIR"); !folder.empty()) s.folder = folder;
  s.system = on && flag("NEURON_RT_INSPECT_SYSTEM_PROFILE", true);
  s.device = on && flag("NEURON_RT_INSPECT_DEVICE_PROFILE", true);
  s.trace.most_events = most_events(value_of_variable(most_name));
  s.trace.cores_off = cores_off(value_of_variable(cores_name));
  s.trace.types_off = types_off(value_of_variable(types_name));
  return s;
}

void InspectionSession::begin(InspectionSettings settings) {
  const std::lock_guard lock(mutex_);
  if (on_) refuse(Status::invalid, "an inspection was begun before");
  on_ = true;
  settings_ = std::move(settings);
  profiles_.clear();
  if (settings_.system) recorder_.start(settings_.trace);
}

bool InspectionSession::is_on() const {
  const std::lock_guard lock(mutex_);
  return on_;
}

void InspectionSession::keep_profile_of(const ModelObject& model) {
  const std::lock_guard lock(mutex_);
  if (on_ && settings_.device) profiles_.insert_or_assign(model.id(), model.program().profile());
}

void InspectionSession::end(const std::vector<std::shared_ptr<ModelObject>>& loaded) {
  for (const auto& model : loaded) keep_profile_of(*model);
  const std::lock_guard lock(mutex_);
  if (!std::exchange(on_, false)) refuse(Status::invalid, "no inspection was begun");
  if (settings_.system) recorder_.stop();
  const std::string folder = fmt::format("{}/session_{}_pid_{}", settings_.folder, settings_.session, getpid());
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed) refuse(Status::failure, "{} cannot be made: {}", folder, failed.message());
  if (settings_.system) write_file(folder + "/system_profile.json", chrome_json(recorder_.take(~std::uint64_t{0}, -1)));
  for (const auto& [model, text] : std::exchange(profiles_, {}))
    write_file(fmt::format("{}/device_profile_{}.pftrace", folder, model), text);
}

}  // namespace trellis::device::nrt
