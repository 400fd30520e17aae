#include "ccl/api/c/operations.h"

#include <cstring>
#include <vector>

#include "ccl/api/handles/create_communicator.h"
#include "ccl/api/handles/grouping.h"
#include "ccl/group.h"
#include "schedule/formats/text.h"
#include "text/refuse.h"

using namespace trellis::ccl::api;
using trellis::ccl::Call;
using trellis::ccl::Collective;
using trellis::ccl::Communicator;

namespace {

// Calls `body` with the communicator and the stream; in an open group both are kept until its end.
template <class Body>
trellis_result operate(trellis_comm handle, trellis_stream stream, Body&& body) noexcept {
  return issued([&] {
    const auto use = comms().use(handle);
    Communicator& communicator = use->ready();
    const StreamRef on(stream);
    body(communicator, on.get());
    if (!trellis::ccl::Group::open()) return;
    keep_until_group_ends(use.share());
    keep_until_group_ends(on.share());
  });
}

// Runs the call that `make` builds from the caller's arguments.
template <class Make>
trellis_result run(trellis_comm handle, trellis_stream stream, Make&& make) noexcept {
  return operate(handle, stream, [&](Communicator& c, auto* s) { c.run(make(c), s); });
}

std::vector<std::size_t> counts_of(const Communicator& c, const size_t* counts, const char* name) {
  require(counts, name);
  return {counts, counts + c.ranks()};
}

Call call_of(Collective collective, const void* in, void* out, size_t count, trellis_type type, int root = 0) {
  return {.operation = {.collective = collective, .root = root},
          .input = in,
          .output = out,
          .count = count,
          .type = type_of(type)};
}

Call reducing(Call call, trellis_reduction reduction) {
  call.op = plain_reduction_of(reduction);
  return call;
}

}  // namespace

trellis_result trellis_all_reduce(trellis_comm comm, const void* in, void* out, size_t count, trellis_type type,
                                  trellis_reduction reduction, trellis_stream stream) {
  return run(comm, stream,
             [&](auto&) { return reducing(call_of(Collective::all_reduce, in, out, count, type), reduction); });
}

trellis_result trellis_reduce_scatter(trellis_comm comm, const void* in, void* out, size_t count, trellis_type type,
                                      trellis_reduction reduction, trellis_stream stream) {
  return run(comm, stream,
             [&](auto&) { return reducing(call_of(Collective::reduce_scatter, in, out, count, type), reduction); });
}

trellis_result trellis_reduce(trellis_comm comm, const void* in, void* out, size_t count, trellis_type type,
                              trellis_reduction reduction, int root, trellis_stream stream) {
  return run(comm, stream,
             [&](auto&) { return reducing(call_of(Collective::reduce, in, out, count, type, root), reduction); });
}

trellis_result trellis_all_gather(trellis_comm comm, const void* in, void* out, size_t count, trellis_type type,
                                  trellis_stream stream) {
  return run(comm, stream, [&](auto&) { return call_of(Collective::all_gather, in, out, count, type); });
}

trellis_result trellis_broadcast(trellis_comm comm, const void* in, void* out, size_t count, trellis_type type,
                                 int root, trellis_stream stream) {
  return run(comm, stream, [&](auto&) { return call_of(Collective::broadcast, in, out, count, type, root); });
}

trellis_result trellis_gather(trellis_comm comm, const void* in, void* out, size_t count, trellis_type type, int root,
                              trellis_stream stream) {
  return run(comm, stream, [&](auto&) { return call_of(Collective::gather, in, out, count, type, root); });
}

trellis_result trellis_scatter(trellis_comm comm, const void* in, void* out, size_t count, trellis_type type, int root,
                               trellis_stream stream) {
  return run(comm, stream, [&](auto&) { return call_of(Collective::scatter, in, out, count, type, root); });
}

trellis_result trellis_all_to_all(trellis_comm comm, const void* in, void* out, size_t count, trellis_type type,
                                  trellis_stream stream) {
  return run(comm, stream, [&](auto&) { return call_of(Collective::all_to_all, in, out, count, type); });
}

trellis_result trellis_all_gather_v(trellis_comm comm, const void* in, void* out, const size_t* counts,
                                    trellis_type type, trellis_stream stream) {
  return run(comm, stream, [&](const Communicator& c) {
    Call call = call_of(Collective::all_gather_v, in, out, 0, type);
    call.counts = counts_of(c, counts, "counts");
    return call;
  });
}

trellis_result trellis_reduce_scatter_v(trellis_comm comm, const void* in, void* out, const size_t* counts,
                                        trellis_type type, trellis_reduction reduction, trellis_stream stream) {
  return run(comm, stream, [&](const Communicator& c) {
    Call call = reducing(call_of(Collective::reduce_scatter_v, in, out, 0, type), reduction);
    call.counts = counts_of(c, counts, "counts");
    return call;
  });
}

trellis_result trellis_all_to_all_v(trellis_comm comm, const void* in, void* out, const size_t* counts,
                                    const size_t* arriving_counts, trellis_type type, trellis_stream stream) {
  return run(comm, stream, [&](const Communicator& c) {
    Call call = call_of(Collective::all_to_all_v, in, out, 0, type);
    call.counts = counts_of(c, counts, "counts");
    call.arriving_counts = counts_of(c, arriving_counts, "arriving_counts");
    return call;
  });
}

trellis_result trellis_barrier(trellis_comm comm, trellis_stream stream) {
  return run(comm, stream, [&](auto&) { return Call{.operation = {.collective = Collective::barrier}}; });
}

trellis_result trellis_send(trellis_comm comm, const void* in, size_t count, trellis_type type, int to,
                            trellis_stream stream) {
  return operate(comm, stream, [&](Communicator& c, auto* s) { c.send(in, count, type_of(type), to, s); });
}

trellis_result trellis_recv(trellis_comm comm, void* out, size_t count, trellis_type type, int from,
                            trellis_stream stream) {
  return operate(comm, stream, [&](Communicator& c, auto* s) { c.recv(out, count, type_of(type), from, s); });
}

trellis_result trellis_run(trellis_comm comm, const trellis_call* call, trellis_stream stream) {
  return run(comm, stream, [&](const Communicator& c) { return call_of(call, c.ranks()); });
}

trellis_result trellis_run_schedule(trellis_comm comm, const trellis_call* call, const char* schedule,
                                    trellis_stream stream) {
  return operate(comm, stream, [&](Communicator& c, auto* s) {
    require(schedule, "schedule");
    c.run(call_of(call, c.ranks()), trellis::schedule::parse(schedule), s);
  });
}

trellis_result trellis_algorithm(trellis_comm comm, const trellis_call* call, char* text, size_t size) {
  return guarded([&] {
    require(text, "text");
    const auto use = comms().use(comm);
    const Communicator& c = use->ready();
    const std::string name = c.algorithm(call_of(call, c.ranks()));
    if (name.size() >= size) trellis::text::refuse("size {}: '{}' needs {}", size, name, name.size() + 1);
    std::memcpy(text, name.c_str(), name.size() + 1);
  });
}
