#include "ccl/api/c/communicator.h"

#include <chrono>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "ccl/api/handles/create_communicator.h"
#include "ccl/api/handles/grouping.h"
#include "ccl/process_device.h"
#include "ccl/rendezvous/unique_id.h"
#include "text/refuse.h"

using namespace trellis::ccl::api;
using trellis::ccl::Communicator;
using trellis::ccl::Rank;

namespace {

constexpr auto between_looks = std::chrono::milliseconds(1);
constexpr int most_looks = 1000;

// Checks a result pointer and sets it to null until there is a result.
void empty(trellis_comm* out, const char* name) {
  require(out, name);
  *out = nullptr;
}

// After an error, the parent cannot be split: all its ranks first form a new communicator, which is then split.
std::unique_ptr<Communicator> divided(Communicator& parent, std::optional<int> color, int key) {
  if (!parent.error()) return parent.split(color, key);
  return parent.shrink({})->split(color, key);
}

// Releases an aborted communicator. Its operations usually end soon; unless a stream's work is the caller, waits up to
// a second for them. Operations may take longer if a stream has other work before them; then the job in progress, or
// else a new thread, keeps the communicator until they have ended.
void let_go(std::shared_ptr<Comm> aborted) {
  int inside = 0;
  trellis_stream_work(&inside);
  for (int i = 0; inside == 0 && i < most_looks && aborted->stopping(); ++i) std::this_thread::sleep_for(between_looks);
  if (aborted->busy() || !aborted->stopping()) return;
  std::thread([kept = std::move(aborted)] {}).detach();
}

template <class Value, class Get>
trellis_result tell(trellis_comm handle, Value* value, const char* name, Get&& get) {
  return guarded([&] {
    require(value, name);
    *value = get(comms().use(handle)->made());
  });
}

}  // namespace

trellis_result trellis_unique_id_create(trellis_unique_id* id) {
  return guarded([&] {
    require(id, "id");
    const trellis::ccl::UniqueId made = trellis::ccl::make_unique_id();
    std::memcpy(id->bytes, made.bytes.data(), sizeof id->bytes);
  });
}

trellis_result trellis_comm_create(trellis_comm* comm, int ranks, const trellis_unique_id* id, int rank,
                                   const trellis_config* config) {
  return issued([&] {
    empty(comm, "comm");
    require(id, "id");
    check_ranks(rank, ranks);
    const CommSettings s = settings_of(config);
    return begin_for(comm, s.nonblocking, [meeting = rendezvous_by(*id), rank, ranks, config = s.config](Comm& made) {
      join(made, meeting, rank, ranks, config);
    });
  });
}

trellis_result trellis_comm_create_from_environment(trellis_comm* comm, const trellis_config* config) {
  return issued([&] {
    empty(comm, "comm");
    const CommSettings s = settings_of(config);
    const trellis::ccl::LaunchedProcess l = trellis::ccl::launched_from_environment();
    return begin_for(comm, s.nonblocking, [meeting = rendezvous_by_environment(l), l, config = s.config](Comm& made) {
      join(made, meeting, l.rank, l.ranks, config);
    });
  });
}

trellis_result trellis_launched(int* rank, int* ranks, int* local_rank, int* local_ranks) {
  return guarded([&] {
    const trellis::ccl::LaunchedProcess l = trellis::ccl::launched_from_environment();
    if (rank != nullptr) *rank = l.rank;
    if (ranks != nullptr) *ranks = l.ranks;
    if (local_rank != nullptr) *local_rank = l.local_rank;
    if (local_ranks != nullptr) *local_ranks = l.local_ranks;
  });
}

trellis_result trellis_devices(int* devices) {
  return guarded([&] {
    require(devices, "devices");
    *devices = trellis::ccl::device_count();
  });
}

trellis_result trellis_comm_create_all(trellis_comm* comms_out, int ranks, const trellis_config* config) {
  return issued([&] {
    require(comms_out, "comms");
    check_ranks(0, ranks);
    const CommSettings s = settings_of(config);
    const std::shared_ptr<trellis::ccl::Store> store = trellis::ccl::memory_store();
    std::vector<CommunicatorJob> jobs;
    for (Rank rank = 0; rank < ranks; ++rank) {
      const auto made = std::make_shared<Comm>(s.nonblocking);
      made->take(Comm::Stage::recorded);
      jobs.push_back({.owner = made, .work = [c = made.get(), store, rank, ranks, config = s.config] {
                        join(
                            *c, [&](auto) { return store; }, rank, ranks, config);
                      }});
    }
    std::fill_n(comms_out, ranks, nullptr);
    do_all(jobs);
    for (Rank rank = 0; rank < ranks; ++rank)
      comms_out[rank] = static_cast<trellis_comm>(comms().add(jobs[static_cast<std::size_t>(rank)].owner));
  });
}

trellis_result trellis_comm_split(trellis_comm comm, int color, int key, const trellis_config* config,
                                  trellis_comm* child) {
  return issued([&] {
    empty(child, "child");
    const std::shared_ptr<Comm> parent = comms().use(comm).share();
    parent->ready();
    const bool background = nonblocking_child(config, parent->nonblocking());
    if (color == TRELLIS_NO_COLOR)
      return begin({.parent = parent,
                    .work = [p = parent.get(), key] { divided(p->inside_job(), std::nullopt, key); },
                    .background = background});
    if (color < 0) trellis::text::refuse("color {}: expected 0 or more, or TRELLIS_NO_COLOR", color);
    const auto work = [p = parent.get(), color, key](Comm& made) { made.set(divided(p->inside_job(), color, key)); };
    return begin_for(child, background, work, parent);
  });
}

trellis_result trellis_comm_shrink(trellis_comm comm, const int* excluded, int excluded_count,
                                   const trellis_config* config, trellis_comm* child) {
  return issued([&] {
    empty(child, "child");
    const std::shared_ptr<Comm> parent = comms().use(comm).share();
    parent->made();
    if (excluded_count < 0) trellis::text::refuse("excluded_count is {}", excluded_count);
    if (excluded_count > 0) require(excluded, "excluded");
    const bool background = nonblocking_child(config, parent->nonblocking());
    const std::vector<Rank> left_out(excluded, excluded + excluded_count);
    const auto work = [p = parent.get(), left_out](Comm& made) { made.set(p->inside_job().shrink(left_out)); };
    return begin_for(child, background, work, parent);
  });
}

trellis_result trellis_comm_finalize(trellis_comm comm) {
  return issued([&] {
    const std::shared_ptr<Comm> same = comms().use(comm).share();
    same->ready();
    return begin({.owner = same,
                  .work =
                      [c = same.get()] {
                        c->set_finalized();
                        c->inside_job().finalize();
                      },
                  .background = same->nonblocking()});
  });
}

trellis_result trellis_comm_abort(trellis_comm comm) {
  return guarded([&] { comms().use(comm)->give_up(); });
}

trellis_result trellis_comm_destroy(trellis_comm comm) {
  return guarded([&] {
    if (comm == nullptr) return;
    if (comms().use(comm)->given_up()->load()) return let_go(comms().retire(comm));
    if (const std::shared_ptr<Comm> same = comms().use(comm).share(); close_when_group_ends(same)) {
      comms().retire(comm);
      if (!same->has_communicator()) same->give_up();
      return;
    }
    const std::shared_ptr<Comm> last = comms().take(comm);
    if (!last->has_communicator()) last->give_up();
    last->close();
  });
}

trellis_result trellis_comm_async_error(trellis_comm comm, trellis_result* state) {
  return guarded([&] {
    require(state, "state");
    const auto use = comms().use(comm);
    *state = TRELLIS_IN_PROGRESS;
    if (use->busy() || use->stopping()) return;
    const std::exception_ptr failed = use->error();
    *state = failed ? note_failure(failed) : TRELLIS_OK;
  });
}

trellis_result trellis_comm_rank(trellis_comm comm, int* rank) {
  return tell(comm, rank, "rank", [](const auto& c) { return c.rank(); });
}
trellis_result trellis_comm_ranks(trellis_comm comm, int* ranks) {
  return tell(comm, ranks, "ranks", [](const auto& c) { return c.ranks(); });
}
trellis_result trellis_comm_transport(trellis_comm comm, const char** name) {
  return tell(comm, name, "name", [](const auto& c) { return c.transport().data(); });
}
trellis_result trellis_comm_memory_bytes(trellis_comm comm, size_t* bytes) {
  return tell(comm, bytes, "bytes", [](const auto& c) { return c.memory_bytes(); });
}
trellis_result trellis_comm_operations(trellis_comm comm, uint64_t* operations) {
  return tell(comm, operations, "operations", [](const auto& c) { return c.operations(); });
}
