// The runtime between nrt_init and nrt_close: the visible cores, and the objects behind all handles.
#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "device/device.h"
#include "device/libnrt/collective_sequence_numbers.h"
#include "device/libnrt/handle_table.h"
#include "device/libnrt/inspection_session.h"
#include "device/libnrt/model.h"
#include "device/libnrt/peers/rendezvous.h"
#include "device/libnrt/peers/send_recv.h"
#include "device/libnrt/profiling_state.h"
#include "device/libnrt/queues.h"
#include "device/libnrt/tensor.h"
#include "device/libnrt/trace.h"
#include "device/nrt/structures.h"
#include "device/topology.h"

namespace trellis::device::nrt {

// A host-driven collective that was prepared and not scheduled yet.
struct CollectiveContextObject {
  std::uint32_t vnc = 0, rank = 0, id = 0;
  std::vector<std::uint32_t> group;
  std::vector<TensorObject::Place> inputs, outputs;
  NrtDType element = NrtDType::f32;
  ReduceKind op = ReduceKind::add;
  CollectiveKind kind = CollectiveKind::all_reduce;
};

// A message that a core posted, and the memory that it arrives in; null for one that is sent.
struct PostedMessage {
  int core = 0;
  std::shared_ptr<MessageRequest> request;
  std::shared_ptr<Storage> into;
};

struct ContinuousOptionsObject {
  std::mutex mutex;
  std::string output_dir = "./output";
};

class Runtime {
 public:
  Runtime();
  ~Runtime();

  std::shared_ptr<Device> core(std::int64_t vnc);  // opened when it is first used; refuses one that is not visible
  int cores() const;
  void stop();  // ends running work, and drops what waits

  void remember(const std::shared_ptr<Storage>&);       // memory of a device, for storage_at()
  std::shared_ptr<Storage> storage_at(const void* va);  // null: none
  std::uint32_t next_model() { return ++models_made_; }
  std::int32_t free_core();  // the first without a model; refuses if all have one

  // Records what `work` does on the core, with the simulated time before and after it.
  template <class Work>
  void timed(std::string_view type, int vnc, std::uint64_t bytes, const std::string& name, Work&& work) {
    const std::array all{&recorder, &system_recorder, &inspection.recorder()};
    if (vnc < 0 || std::ranges::none_of(all, &TraceRecorder::is_on)) return work();
    const auto device = core(vnc);
    const Time begin = clock_of(*device).time;
    work();
    const TraceEvent event{type, vnc, begin, clock_of(*device).time, bytes, name};
    for (TraceRecorder* const one : all) one->add(event);
  }

  RootRendezvous world;
  PeerSendRecv send_recv;
  TraceRecorder recorder, system_recorder;
  InspectionSession inspection;
  ProfilingState profiles;
  HandleTable<TensorObject> tensors{"the tensor"};
  HandleTable<TensorSetObject> sets{"the tensor set"};
  HandleTable<ModelObject> models{"the model"};
  HandleTable<ErrorTrackerObject> trackers{"the error tracker"};
  HandleTable<CollectiveContextObject> contexts{"the collective's context"};
  HandleTable<MessageEndpoint> comms{"the communicator"};
  HandleTable<PostedMessage> requests{"the request"};
  HandleTable<ContinuousOptionsObject> continuous{"the options"};
  CollectiveSequenceNumbers collectives;
  Queues queues;  // must come after all that its work uses

  struct Callback {
    ExecCallback function = nullptr;
    void* params = nullptr;
  };
  void set_callback(Callback);
  Callback callback() const;

 private:
  mutable std::mutex mutex_;
  std::map<std::int64_t, std::shared_ptr<Device>> cores_;
  std::map<const std::byte*, std::weak_ptr<Storage>> storages_;
  std::atomic<std::uint32_t> models_made_ = 0;
  Callback callback_;
};

std::shared_ptr<Runtime> running();        // refuses before nrt_init and after nrt_close
std::shared_ptr<Runtime> start_runtime();  // refuses when one runs
std::shared_ptr<Runtime> end_runtime();    // the one that ended; null: none ran

// These are known without a runtime. They refuse an environment that names something wrong.
std::string machine_name();  // TRELLIS_NRT_MACHINE; trn2.48xlarge
Topology machine_topology();
InstanceInfo instance_info();

}  // namespace trellis::device::nrt
