// Traces of the runtime, profiles of models, and functions that have no effect here.
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "device/libnrt/exports.h"

namespace trellis::device::nrt {
namespace {

std::string file_of(const char* name) {
  expect_given(name, "the file");
  if (*name == '\0') refuse(Status::invalid, "a file without a name");
  return name;
}

}  // namespace

Status nrt_trace_start(bool) {
  return call("nrt_trace_start", [](Runtime& r) {
    if (r.recorder.is_on()) refuse(Status::invalid, "a trace was started before");
    r.recorder.start({});
  });
}

Status nrt_trace_stop(const char* file) {
  return call("nrt_trace_stop", [&](Runtime& r) {
    const std::string path = file_of(file);
    if (!r.recorder.is_on()) refuse(Status::invalid, "no trace was started");
    r.recorder.stop();
    write_file(path, chrome_json(r.recorder.take(~std::uint64_t{0}, -1)));
  });
}

Status nrt_profile_start(Model* model, const char* file) {
  return call("nrt_profile_start", [&](Runtime& r) {
    const auto object = r.models.get(model);
    const std::string path = file_of(file);
    ProfilingState& p = r.profiles;
    const std::lock_guard lock(p.mutex);
    if (!p.started.emplace(path, object).second) refuse(Status::invalid, "{} is being profiled into already", path);
  });
}

// The file is a trace for Perfetto: NTFF has no public description.
Status nrt_profile_stop(const char* file) {
  return call("nrt_profile_stop", [&](Runtime& r) {
    const std::string path = file_of(file);
    ProfilingState& p = r.profiles;
    std::shared_ptr<ModelObject> model;
    {
      const std::lock_guard lock(p.mutex);
      const auto found = p.started.find(path);
      if (found == p.started.end()) refuse(Status::invalid, "no profile was started into {}", path);
      model = std::move(found->second);
      p.started.erase(found);
    }
    write_file(path, model->program().profile());
  });
}

Status nrt_profile_continuous_options_allocate(ContinuousOptions** out) {
  return call("nrt_profile_continuous_options_allocate", [&](Runtime& r) {
    expect_given(out, "the options' place");
    *out = r.continuous.add<ContinuousOptions*>(std::make_shared<ContinuousOptionsObject>());
  });
}

Status nrt_profile_continuous_options_free(ContinuousOptions* options) {
  return call("nrt_profile_continuous_options_free", [&](Runtime& r) { r.continuous.take(options); });
}

Status nrt_profile_continuous_options_set_output_dir(ContinuousOptions* options, const char* folder) {
  return call("nrt_profile_continuous_options_set_output_dir", [&](Runtime& r) {
    const auto object = r.continuous.get(options);
    const std::lock_guard lock(object->mutex);
    object->output_dir = file_of(folder);
  });
}

Status nrt_profile_continuous_start(ContinuousOptions* options) {
  return call("nrt_profile_continuous_start", [&](Runtime& r) {
    r.continuous.get(options);
    ProfilingState& p = r.profiles;
    const std::lock_guard lock(p.mutex);
    if (std::exchange(p.continuous, true)) refuse(Status::invalid, "continuous profiling runs already");
  });
}

// Saves the profile of the model on the core; all its runs take the same time here.
Status nrt_profile_continuous_save(std::uint32_t vnc, ContinuousOptions* options) {
  return call("nrt_profile_continuous_save", [&](Runtime& r) {
    const auto object = r.continuous.get(options);
    std::string folder;
    {
      const std::lock_guard lock(object->mutex);
      folder = object->output_dir;
    }
    std::uint64_t number = 0;
    {
      ProfilingState& p = r.profiles;
      const std::lock_guard lock(p.mutex);
      if (!p.continuous) refuse(Status::invalid, "continuous profiling was not started");
      number = ++p.saved;
    }
    for (const auto& model : r.models.all())
      if (model->vnc() == static_cast<int>(vnc)) {
        std::error_code failed;
        std::filesystem::create_directories(folder, failed);
        return write_file(fmt::format("{}/{}_vnc_{}_{}.pftrace", folder, model->program().name(), vnc, number),
                          model->program().profile());
      }
    refuse(Status::failure, "core {} has no model", vnc);
  });
}

Status nrt_profile_continuous_stop() {
  return call("nrt_profile_continuous_stop", [](Runtime& r) {
    ProfilingState& p = r.profiles;
    const std::lock_guard lock(p.mutex);
    if (!std::exchange(p.continuous, false)) refuse(Status::invalid, "continuous profiling was not started");
  });
}

// Programs print nothing here, so the descriptor never has events; it can be polled and read to find that out.
Status nrt_debug_client_connect(int core, int* fd) {
  return call("nrt_debug_client_connect", [&](Runtime& r) {
    expect_given(fd, "the descriptor's place");
    *fd = -1;
    r.core(core);
    ProfilingState& p = r.profiles;
    const std::lock_guard lock(p.mutex);
    if (!p.debug_cores.insert(core).second) refuse(Status::invalid, "core {} has a client already", core);
    *fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (*fd >= 0) {
      p.core_of_file[*fd] = core;
      return;
    }
    p.debug_cores.erase(core);
    refuse(Status::resource, "no descriptor is left: {}", std::strerror(errno));
  });
}

void nrt_debug_client_connect_close(int fd) {
  call("nrt_debug_client_connect_close", [&](Runtime& r) {
    ProfilingState& p = r.profiles;
    const std::lock_guard lock(p.mutex);
    const auto found = p.core_of_file.find(fd);
    if (found == p.core_of_file.end()) refuse(Status::invalid, "descriptor {} is no debug stream", fd);
    p.debug_cores.erase(found->second);
    p.core_of_file.erase(found);
    close(fd);
  });
}

Status nrt_debug_client_read_one_event(int fd, DebugEventHeader* header, void** payload) {
  return call("nrt_debug_client_read_one_event", [&](Runtime& r) {
    expect_given(header, "the header");
    expect_given(payload, "the payload's place");
    *payload = nullptr;
    ProfilingState& p = r.profiles;
    const std::lock_guard lock(p.mutex);
    if (!p.core_of_file.contains(fd)) refuse(Status::invalid, "descriptor {} is no debug stream", fd);
    refuse(Status::queue_empty, "the stream has no event");
  });
}

// Null: the plug-in of Neuron's own collectives library is not used here.
void* nrt_get_libnccl_net(int* error, char* message, std::size_t size) {
  constexpr std::string_view why = "collectives here need no network plug-in";
  if (error != nullptr) *error = static_cast<int>(Status::invalid);
  if (message != nullptr && size != 0) {
    const std::size_t n = std::min(size - 1, why.size());
    std::memcpy(message, why.data(), n);
    message[n] = '\0';
  }
  report("nrt_get_libnccl_net", Status::invalid, why);
  return nullptr;
}

Status nrt_set_pool_eng_ucode(const MicrocodeInfo* info) {
  return guarded("nrt_set_pool_eng_ucode", [&] {
    expect_given(info, "the microcode");
    refuse(Status::invalid, "microcode for a real engine; simulated engines have none");
  });
}

}  // namespace trellis::device::nrt
