#include "ccl/api/nccl/default_stream_order.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "ccl/api/nccl/nccl_error.h"

namespace trellis::nccl {
namespace {

// The streams and operations of this thread's open groups.
struct Used {
  int depth = 0;
  std::vector<trellis_stream> defaults, others;
  std::vector<EstimatedCall> calls;
};
thread_local Used used;

bool is_default(cudaStream_t stream) { return reinterpret_cast<std::uintptr_t>(stream) <= 1; }

void note(std::vector<trellis_stream>& streams, trellis_stream stream) {
  if (std::ranges::find(streams, stream) == streams.end()) streams.push_back(stream);
}

struct Event {
  Event() { checked(trellis_event_create(&event)); }
  ~Event() { trellis_event_destroy(event); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  trellis_event event = nullptr;
};

// Waits for the work that the stream holds, and so for the work of other streams that this work waits for.
void wait_for_end_of(trellis_stream stream) {
  const Event end;
  checked(trellis_event_record(end.event, stream));
  checked(trellis_event_synchronize(end.event));
}

void join(trellis_stream default_stream) {
  expect_outside_streams();
  if (checked(trellis_stream_query(default_stream)) == TRELLIS_IN_PROGRESS) wait_for_end_of(default_stream);
}

}  // namespace

void expect_outside_streams() {
  int inside = 0;
  checked(trellis_stream_work(&inside));
  if (inside != 0) refuse_usage("a function that a stream runs cannot call what waits for streams or for other ranks");
}

trellis_stream enter(const NcclComm& nccl_comm, cudaStream_t stream) {
  const trellis_stream own = nccl_comm.stream_of(stream);
  if (own == nullptr) return nullptr;
  if (!is_default(stream)) {
    if (used.depth != 0) note(used.others, own);
    return own;
  }
  if (used.depth != 0)
    note(used.defaults, own);
  else
    join(own);
  return nullptr;
}

void finish(const NcclComm& nccl_comm, cudaStream_t stream) {
  const trellis_stream own = nccl_comm.stream_of(stream);
  if (own != nullptr && is_default(stream)) return join(own);
  expect_outside_streams();
  checked(trellis_stream_synchronize(own));
}

void open_group() {
  expect_outside_streams();
  checked(trellis_group_start());
  ++used.depth;
}

trellis_result close_group() {
  if (used.depth > 1) {
    --used.depth;
    return trellis_group_end();
  }
  const Used all = std::exchange(used, {});
  try {
    for (trellis_stream one : all.defaults) join(one);
  } catch (...) {
    trellis_group_forget();
    throw;
  }
  const trellis_result result = checked(trellis_group_end());
  // If the group also uses other streams, all of it runs on those. Each of them waits for the whole group, so waiting
  // for one of them is enough.
  if (!all.defaults.empty() && !all.others.empty()) wait_for_end_of(all.others.front());
  return result;
}

trellis_result forget_group() {
  if (used.depth <= 1)
    used = {};
  else
    --used.depth;
  return trellis_group_forget();
}

void note_in_group(const EstimatedCall& call) {
  if (used.depth != 0) used.calls.push_back(call);
}

std::vector<EstimatedCall> calls_of_group() {
  return used.depth == 1 ? std::move(used.calls) : std::vector<EstimatedCall>{};
}

}  // namespace trellis::nccl
