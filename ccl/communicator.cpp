#include "ccl/communicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <numeric>
#include <optional>

#include "ccl/descriptor_limit.h"
#include "ccl/group.h"
#include "ccl/plan/call_check.h"
#include "ccl/process_device.h"
#include "ccl/rendezvous/environment.h"
#include "ccl/rendezvous/member_check.h"
#include "ccl/rendezvous/this_machine.h"
#include "ccl/run/record_call.h"
#include "ccl/run/run_loop.h"
#include "ccl/timestamp_clock.h"
#include "ccl/transports/join_watch.h"
#include "ccl/transports/registry.h"
#include "text/refuse.h"

namespace trellis::ccl {
namespace {

// Checks what the caller of send() or recv() gave. check() would report the root and the peer of a send_recv, of which
// the caller gave only one.
void expect_end(const char* word, const void* data, std::size_t count, Rank peer, Rank ranks) {
  if (peer < 0 || peer >= ranks) text::refuse("{}: peer {}; expected 0 to {}", word, peer, ranks - 1);
  if (data == nullptr && count != 0) text::refuse("{}: {} elements at null; expected some memory", word, count);
}

Call call_of(schedule::CollectiveOperation operation, const void* in, void* out, std::size_t count, kernels::DType type,
             ReduceOp op = {}) {
  return {.operation = std::move(operation), .input = in, .output = out, .count = count, .type = type, .op = op};
}

}  // namespace

Communicator::Communicator(std::unique_ptr<State> state) : state_(std::move(state)) {}

// A forked process leaks its copy of the state: the peers and threads belong to the parent process.
Communicator::~Communicator() {
  Group::forget(*state_);
  if (state_->tickets.forked()) static_cast<void>(state_.release());
}

std::unique_ptr<Communicator> Communicator::from_environment() {
  const Config config = config_from_environment();
  const LaunchedProcess launched = launched_from_environment();
  const std::string prefix = next_job_prefix();
  std::shared_ptr<Store> store;
  try {
    store = std::make_shared<PrefixStore>(store_from_environment(launched, Clock::now() + config.timeout), prefix);
  } catch (...) {
    std::rethrow_exception(write_making_dump(config.dump, launched.rank, launched.ranks, std::current_exception()));
  }
  return create(std::move(store), launched.rank, launched.ranks, config, device_of_process());
}

std::unique_ptr<Communicator> Communicator::create(std::shared_ptr<Store> store, Rank rank, Rank ranks,
                                                   const Config& config, std::shared_ptr<device::Device> device) {
  if (ranks < 1) text::refuse("{} ranks: expected at least 1", ranks);
  if (rank < 0 || rank >= ranks) text::refuse("rank {}: expected 0 to {}", rank, ranks - 1);
  if (config.timeout.count() <= 0) text::refuse("a timeout of {} ms: expected more than 0", config.timeout.count());
  if (config.wire != kernels::DType::f32 && config.wire != kernels::DType::bf16)
    text::refuse("messages of f32 as {}: expected f32 or bf16", name(config.wire));
  allow_descriptors(ranks);
  const Deadline deadline = Clock::now() + config.timeout;
  Config settled = config;
  std::unique_ptr<Transport> transport;
  std::optional<JoinWatch> watch;
  try {
    if (!device) device = device::host_of_process();
    const std::string_view agrees = agrees_first(*device, ranks) ? ", agreeing before each collective" : "";
    const std::string way = config.transport.empty() ? "the usual transport" : config.transport;
    const std::string host = this_host(config.fabric.host);
    watch.emplace(store, rank, ranks, host);
    const bool apart = ranks > 1 && check_members(*watch->store(),
                                                  {.mine = rank,
                                                   .members = ranks,
                                                   .terms = fmt::format("{} ranks over {}{}", ranks, way, agrees),
                                                   .place = host},
                                                  deadline);
    if (config.transport.empty()) settled.transport = apart ? usual_across_hosts : usual_transport;
    JoinOptions joining{rank, ranks, settled, device.get(), deadline};
    // Transports across hosts report absent ranks themselves.
    if (transport_named(settled.transport).reach != TransportFactory::Reach::hosts)
      joining.waiting = [&](std::span<const Rank> missing) { watch->check_joined(missing, deadline); };
    transport = open_transport(watch->store(), joining);
  } catch (...) {
    std::exception_ptr why = std::current_exception();
    if (watch) why = watch->failed(why);
    why = with_descriptor_limit(why, rank, ranks);
    std::rethrow_exception(
        write_making_dump(config.dump, rank, ranks, why, watch ? watch->absent() : std::vector<Rank>()));
  }
  remove_making_dump(config.dump, rank);
  store->leave("", ranks);
  return std::unique_ptr<Communicator>(
      new Communicator(std::make_unique<State>(config, std::move(device), std::move(transport))));
}

Rank Communicator::rank() const { return state_->rank(); }
Rank Communicator::ranks() const { return state_->ranks(); }
const Config& Communicator::config() const { return state_->config; }
device::Device& Communicator::device() { return *state_->device; }
std::string_view Communicator::transport() const { return state_->transport->name(); }

std::unique_ptr<Exposed> Communicator::expose(void* data, std::size_t bytes) {
  if (data == nullptr || bytes == 0) text::refuse("expose: {} bytes at {}; expected some", bytes, data);
  if (reinterpret_cast<std::uintptr_t>(data) > UINTPTR_MAX - bytes)
    text::refuse("expose: {} bytes at {} go past the last address", bytes, data);
  state_->tickets.expect_same_process();
  return state_->transport->expose(data, bytes);
}

std::uint64_t Communicator::operations() const { return state_->operations; }

std::size_t Communicator::memory_bytes() const {
  return state_->transport->memory_bytes() + state_->scratch.bytes() + state_->scaled.bytes() +
         state_->recorder.memory_bytes();
}

std::string Communicator::dump() const { return state_->dump_file.text(); }

LastRun Communicator::last() const {
  const std::optional<FlightRecorderEntry> r = state_->recorder.last_at(TimestampClock::now());
  if (!r) return {};
  return {r->native, r->not_native != nullptr ? *r->not_native : ""};
}

std::string Communicator::algorithm(const Call& c) const { return selected(c).algorithm; }

Selected Communicator::selected(const Call& c) const {
  const Planner& planner = state_->planner;
  const SelectedConfig choice = planner.choice(c, runs_in_place(c, check(c, rank(), ranks())));
  return {text_of(choice.config), choice.by_model, planner.cores()};
}

std::exception_ptr Communicator::error() const { return state_->failure.error(); }

void Communicator::run(const Call& call, device::Stream* stream) {
  if (call.operation.collective == Collective::send_recv) return run(send_recv_of(call), stream);
  if (stream != nullptr || Group::open()) {
    state_->failure.expect_well();
    const bool in_place = check(call, state_->rank(), state_->ranks());
    return Group::issue(*state_, CheckedCall{.call = call, .in_place = in_place}, stream);
  }
  TicketLock::Ticket turn(state_->tickets);
  turn.wait();
  run_alone(ImmediateCall{{state_.get()}, &call, state_->check(call)});
}

void Communicator::run(const SendRecv& point, device::Stream* stream) {
  if (!plainly_right(point, state_->rank(), state_->ranks())) check(call_of(point), rank(), ranks());
  if (stream != nullptr || Group::open()) {
    state_->failure.expect_well();
    return Group::issue(*state_, SendRecv(point), stream);
  }
  TicketLock::Ticket turn(state_->tickets);
  turn.wait();
  run_alone(ImmediateSendRecv{{state_.get()}, &point});
}

void Communicator::run(const Call& call, const schedule::Schedule& schedule, device::Stream* stream) {
  state_->failure.expect_well();
  const bool in_place = check(call, rank(), ranks());
  Group::issue(*state_,
               CheckedCall{.call = call,
                           .in_place = in_place,
                           .planned = state_->planner.plan(call, runs_in_place(call, in_place), schedule)},
               stream);
}

void Communicator::all_reduce(const void* in, void* out, std::size_t count, kernels::DType type, ReduceOp op,
                              device::Stream* s) {
  run(call_of({.collective = Collective::all_reduce}, in, out, count, type, op), s);
}
void Communicator::reduce_scatter(const void* in, void* out, std::size_t count, kernels::DType type, ReduceOp op,
                                  device::Stream* s) {
  run(call_of({.collective = Collective::reduce_scatter}, in, out, count, type, op), s);
}
void Communicator::all_gather(const void* in, void* out, std::size_t count, kernels::DType type, device::Stream* s) {
  run(call_of({.collective = Collective::all_gather}, in, out, count, type), s);
}
void Communicator::broadcast(const void* in, void* out, std::size_t count, kernels::DType type, Rank root,
                             device::Stream* s) {
  run(call_of({.collective = Collective::broadcast, .root = root}, in, out, count, type), s);
}
void Communicator::reduce(const void* in, void* out, std::size_t count, kernels::DType type, ReduceOp op, Rank root,
                          device::Stream* s) {
  run(call_of({.collective = Collective::reduce, .root = root}, in, out, count, type, op), s);
}
void Communicator::gather(const void* in, void* out, std::size_t count, kernels::DType type, Rank root,
                          device::Stream* s) {
  run(call_of({.collective = Collective::gather, .root = root}, in, out, count, type), s);
}
void Communicator::scatter(const void* in, void* out, std::size_t count, kernels::DType type, Rank root,
                           device::Stream* s) {
  run(call_of({.collective = Collective::scatter, .root = root}, in, out, count, type), s);
}
void Communicator::all_to_all(const void* in, void* out, std::size_t count, kernels::DType type, device::Stream* s) {
  run(call_of({.collective = Collective::all_to_all}, in, out, count, type), s);
}
void Communicator::barrier(device::Stream* s) { run({.operation = {.collective = Collective::barrier}}, s); }
void Communicator::send(const void* in, std::size_t count, kernels::DType type, Rank to, device::Stream* s) {
  expect_end("send", in, count, to, state_->ranks());
  run(SendRecv{.input = in, .count = count, .type = type, .from = state_->rank(), .to = to}, s);
}
void Communicator::recv(void* out, std::size_t count, kernels::DType type, Rank from, device::Stream* s) {
  expect_end("recv", out, count, from, state_->ranks());
  run(SendRecv{.output = out, .count = count, .type = type, .from = from, .to = state_->rank()}, s);
}

void Communicator::finalize() {
  TicketLock::Ticket turn(state_->tickets);
  turn.wait();
  state_->finish();
}

void Communicator::abort() {
  state_->tickets.expect_same_process();
  state_->abort();
}

bool Communicator::stopping() const { return state_->transport->aborted_here() && !state_->tickets.empty(); }

std::unique_ptr<Communicator> Communicator::split(std::optional<int> color, int key) {
  if (color && *color < 0) text::refuse("split: color {}; expected 0 or more, or none", *color);
  TicketLock::Ticket turn(state_->tickets);
  turn.wait();
  state_->failure.check_health();
  std::vector<Rank> all(static_cast<std::size_t>(ranks()));
  std::iota(all.begin(), all.end(), 0);
  try {
    return state_->divide(MembershipNotice::Call::split, std::move(all), {color.value_or(-1), key});
  } catch (...) {
    std::rethrow_exception(state_->failure.fail(std::current_exception()));
  }
}

std::unique_ptr<Communicator> Communicator::shrink(std::span<const Rank> excluded) {
  std::vector<Rank> members;
  for (Rank r = 0; r < ranks(); ++r)
    if (std::ranges::find(excluded, r) == excluded.end()) members.push_back(r);
  for (Rank r : excluded)
    if (r < 0 || r >= ranks()) text::refuse("shrink: rank {}; expected 0 to {}", r, ranks() - 1);
  if (std::ranges::find(members, rank()) == members.end()) text::refuse("shrink: rank {} excludes itself", rank());
  TicketLock::Ticket turn(state_->tickets);
  turn.wait();
  return state_->divide(MembershipNotice::Call::shrink, std::move(members));
}

}  // namespace trellis::ccl
