#include "ccl/run/communicator_state.h"

#include <algorithm>
#include <utility>

#include "ccl/divide/split_or_shrink.h"
#include "ccl/failure/blame.h"
#include "ccl/failure/end_for_all.h"
#include "ccl/failure/mismatch.h"
#include "ccl/plan/call_check.h"
#include "ccl/plan/message_mark.h"
#include "ccl/run/cache_bypass.h"
#include "ccl/run/record_call.h"
#include "ccl/transports/registry.h"
#include "device/capabilities.h"
#include "device/simulated_time.h"

namespace trellis::ccl {
namespace {

// Between hosts, the selection table's machine is "fabric" instead of the default.
Config with_machine(Config c, const Transport& t) {
  if (c.machine == Config().machine && transport_named(t.name()).reach == TransportFactory::Reach::hosts)
    c.machine = "fabric";
  return c;
}

// The cores of the ranks. Unknown with simulated devices, whose times do not depend on the host's cores.
RankCores places_of(const Transport& t, device::Device& d) {
  return d.simulated_time() != nullptr ? RankCores{} : t.places();
}

TransportCapabilities paths_of(const Transport& t) {
  return {.lanes = t.lanes() - 1, .round_bytes = t.rounds() != nullptr ? t.rounds()->room() : 0};
}

}  // namespace

Communicator::State::State(Config c, std::shared_ptr<device::Device> d, std::unique_ptr<Transport> t,
                           const FamilyMember* parent, std::span<const Rank> in_parent)
    : config(with_machine(std::move(c), *t)),
      device(std::move(d)),
      transport(std::move(t)),
      family(*transport, parent, in_parent),
      planner(transport->rank(), transport->ranks(), paths_of(*transport), config, transport->shape(),
              places_of(*transport, *device)),
      executor(*transport, family, recorder, *device, config.timeout),
      dump_file(config.dump, config.timeout, *transport, recorder),
      failure(*transport, dump_file, *this),
      check(transport->rank(), transport->ranks()),
      scratch(*device, ScratchPool::of(*device)),
      scaled(*device, ScratchPool::of(*device)),
      rank_(transport->rank()),
      ranks_(transport->ranks()),
      caches_(transport->caches_here()),
      agreement_(*device, config, *transport),
      time_(*device, agreement_, rank_, ranks_),
      dumps_(dumps_requested()) {
  bound_.activity = &activity_;
  bound_.how.rounding = config.rounding;
  bound_.how.random.seed = config.seed;
  if (dump_file.wanted()) register_for_dumps(*this);
}

Communicator::State::~State() {
  if (dump_file.wanted()) unregister_from_dumps(*this);
}

// Scaled input is written to scratch, so that the caller's buffer stays unchanged.
const void* Communicator::State::input_of(const Call& c) {
  if (!scales_first(c)) return c.input;
  const std::size_t bytes = extents_of(c, rank(), ranks()).input;
  void* const own = scaled.of(bytes);
  const void* const sources[] = {c.input};
  device->reduce(kernels::Reduction::scaled_sum, c.type, sources, own, bytes / kernels::size_of(c.type),
                 {.rounding = config.rounding,
                  .random = {.seed = config.seed, .step = operations.load(), .tensor = origin_of(rank())},
                  .factor = c.op.factor});
  return own;
}

// Scaled input is never staged: it is in scratch, which peers can read.
schedule::UnreadableBuffers Communicator::State::unreadable_of(const Call& c) {
  if (!worth_showing(c, ranks_) || planner.traces(c)) return {};
  const std::size_t message = larger_bytes(c, ranks()) / static_cast<std::size_t>(ranks_);
  const auto hides = [&](const void* data, std::size_t bytes) {
    return transport->readable(data, bytes, message) < bytes / 2;
  };
  const BufferBytes e = extents_of(c, rank(), ranks());
  return {.input = !scales_first(c) && hides(c.input, e.input), .output = hides(c.output, e.output)};
}

kernels::Stores Communicator::State::stores_for(std::size_t bytes_touched) const {
  return stores_beside(bytes_touched, caches_);
}

template <class Record>
void Communicator::State::begin(Record record) {
  try {
    if (bound_.compiled == &native_plan_.compiled) native_ = agreement_.start();
    bound_.native = native_.get();
    executor.begin(bound_);
  } catch (...) {
    record();
    recorder.show();
    failure.tell(std::current_exception());
    std::rethrow_exception(fail_open(std::current_exception()));
  }
  record();
  recorder.show();
}

void Communicator::State::open(const Call& c, bool in_place, const CallPlan* planned) {
  failure.expect_whole();
  if (!agreement_.needed()) start_operation();
  const bool native = agreement_.native();
  try {
    if (native) planned = &native_plan(c);
    if (planned == nullptr) planned = &planner.plan(c, runs_in_place(c, in_place), unreadable_of(c));
    show_call(activity_, c, planned->wire, operation());
    bind(c, *planned);
    time_.begin(c, *planned, in_place);
  } catch (...) {
    if (agreement_.needed()) leave_agreed();
    throw;
  }
  begin([&] { record(agreement_.needed() ? recorder.current() : recorder.begin(), c, planned, native); });
}

// The exchange is the operation's first part: it has the operation's number, and others see the call that the ranks
// agree about. A fast rank may be in the exchange of one operation while a slow one is still in the operation before.
void Communicator::State::open_agreement(const Call& c, bool supplied) {
  failure.expect_whole();
  const Call exchange = agreement_.exchange(c, supplied);
  start_operation();
  exchanging_ = true;
  try {
    const CallPlan& planned = planner.plan(exchange, false, unreadable_of(exchange));
    show_call(activity_, c, planner.wire_of(c), operation());
    bind(exchange, planned);
    time_.hold();
  } catch (...) {
    exchanging_ = false;
    agreement_.fail();
    throw;
  }
  begin([&] { record(recorder.begin(), c, nullptr, false); });
}

void Communicator::State::bind(const Call& c, const CallPlan& planned) {
  const CompiledProgram& compiled = planned.compiled;
  const bool averages = does(c, kernels::Reduction::avg);
  const bool sums = averages || c.op.kind == kernels::Reduction::scaled_sum;
  const std::size_t size = kernels::size_of(c.type);
  divided_ = averages ? compiled.output_elements : 0;
  bound_.compiled = &compiled;
  bound_.buffers[0] = const_cast<void*>(input_of(c));
  bound_.buffers[1] = c.output;
  bound_.buffers[2] = scratch.of(compiled.scratch_elements * size);
  bound_.type = c.type;
  bound_.wire = planned.wire;
  bound_.op = sums ? kernels::Reduction::sum : c.op.kind;
  bound_.how.random.step = operation();
  bound_.how.stores = stores_for((compiled.input_elements + compiled.output_elements) * size);
  bound_.mark = mark_of(planned.mark, operation(), exchanging_);
  calls_hash_ = hash_combine(calls_hash_, planned.mark);
  bound_.round_mark = mark_of(calls_hash_, operation(), exchanging_);
  bound_.one_mark = !agreement_.needed();
  bound_.tokens = c.operation.collective == Collective::barrier;
}

void Communicator::State::record(FlightRecorderEntry& r, const Call& c, const CallPlan* by, bool native) {
  record_call(r, c, operation());
  r.config = by != nullptr ? by->config : nullptr;
  r.schedule = by != nullptr ? by->schedule : 0;
  r.native = native;
  r.not_native = exchanging_ ? nullptr : agreement_.why_not();
}

// Called when the ranks have agreed about an operation that this rank then cannot begin.
void Communicator::State::leave_agreed() {
  time_.end();
  recorder.end();
  transport->rest();
}

// A plan without steps: the device does everything but the division of an average.
const CallPlan& Communicator::State::native_plan(const Call& c) {
  native_plan_.wire = c.type;
  native_plan_.compiled.output_elements = extents_of(c, rank(), ranks()).output / kernels::size_of(c.type);
  return native_plan_;
}

void Communicator::State::open(std::span<const SendRecv> all) {
  failure.expect_whole();
  const std::span<const SendRecv> points = time_.with_clocks(all);
  if (!std::ranges::equal(points, compiled_from_)) {
    compiled_from_.clear();  // in case the following code throws
    send_recvs_ = compile_send_recvs(points, rank(), transport->lanes() - 1);
    compiled_from_.assign(points.begin(), points.end());
  }
  divided_ = 0;
  const SendRecv& first = all.front();
  activity_ = {.operation = operations,
               .count = first.count,
               .heartbeat = activity_.heartbeat,
               .root = first.from,
               .collective = static_cast<std::uint8_t>(Collective::send_recv),
               .type = static_cast<std::uint8_t>(first.type),
               .wire = static_cast<std::uint8_t>(first.type),
               .running = true,
               .moves = activity_.moves,
               .waits = activity_.waits};
  bound_.compiled = &send_recvs_;
  for (void*& buffer : bound_.buffers) buffer = nullptr;
  bound_.type = bound_.wire = kernels::DType::u8;
  bound_.how.stores = kernels::Stores::cached;
  bound_.mark = send_recv_hash;
  bound_.tokens = true;
  time_.hold();
  begin([&] {
    FlightRecorderEntry& r = recorder.begin();
    r = {.operation = operations,
         .count = first.count,
         .points = all.size(),
         .began = r.began,
         .root = first.from,
         .peer = first.to,
         .collective = Collective::send_recv,
         .type = first.type};
  });
}

void Communicator::State::close() {
  executor.end();
  scratch.end();
  scaled.end();
  if (exchanging_) {
    exchanging_ = false;
    time_.end();
    return agreement_.conclude();
  }
  transport->rest();
  recorder.end();
  if (native_) native_.reset();
  if (divided_ != 0)
    device->divide(bound_.type, bound_.at({schedule::Buffer::output}), divided_, static_cast<std::uint32_t>(ranks()));
  if (bound_.compiled == &send_recvs_)
    time_.end_messages();
  else
    time_.end();
}

bool Communicator::State::move(bool alone, bool& moved) {
  for (std::uint32_t idle = 0; !executor.done();) {
    if (executor.move()) {
      moved = true;
      idle = 0;
      if (alone || executor.done()) continue;
      return false;
    }
    if (!alone) return false;
    this->idle(idle++, longest_idle);
  }
  moved = true;
  close();
  return true;
}

void Communicator::State::idle(std::uint32_t times, std::chrono::microseconds most) {
  executor.idle(times, most);
  answer_dumps(&executor);
}

void Communicator::State::answer_dumps(const Executor* open) {
  const std::uint32_t request = dumps_requested();
  if (request == dumps_ || !dump_file.wanted()) return;
  dump_file.write(open != nullptr ? open->pending() : std::vector<PendingMessage>());
  dumps_ = request;  // the process may end after this
}

std::exception_ptr Communicator::State::fail_open(const std::exception_ptr& e, bool elsewhere) {
  time_.end();
  exchanging_ = false;
  agreement_.fail();
  transport->withdraw();
  const bool first = failure.keep(e, elsewhere);
  if (dump_file.wanted()) dump_file.write(executor.pending());
  transport->rest();
  family.rests();
  return failure.dumped(e, first);
}

// A running operation fails in its own thread. The other ranks are told before this rank withdraws its messages: a rank
// that finds a message withdrawn looks for the reason.
Communicator::State::End Communicator::State::end(const std::exception_ptr& why) {
  const bool first = why != nullptr && failure.keep(why);
  transport->mark_aborted();
  transport->withdraw();
  if (why != nullptr) return {why, first};
  const std::exception_ptr aborted = ended_by(*transport);
  return {aborted, failure.keep(aborted)};
}

void Communicator::State::dump(const End& end, bool has_turn) {
  if (!dump_file.wanted()) return;
  if (has_turn)
    dump_file.write();
  else
    dump_if_free();
  failure.dumped(end.why, end.first);
}

void Communicator::State::abort() { dump(end(), false); }

bool Communicator::State::dump_for(std::uint32_t request) {
  if (dumps_ != request && (dump_if_free() || dump_file.write_if_dividing())) dumps_ = request;
  return dumps_ == request;
}

bool Communicator::State::dump_if_free() {
  const auto turn = tickets.take_if_free();
  if (!turn) return false;
  dump_file.write();
  tickets.done(*turn);
  return true;
}

void Communicator::State::finish() {
  failure.check_health();
  finalize_for_all(*transport, failure.notice);
  try {
    check_over(*transport, recorder, activity_);
  } catch (...) {
    std::rethrow_exception(failure.fail(std::current_exception()));
  }
}

std::unique_ptr<Communicator> Communicator::State::divide(MembershipNotice::Call call, std::vector<Rank> members,
                                                          ColorKey wish) try {
  const ScopedSplitRecord recorded(dump_file, recorder, word(call), operations);
  Config same = config;
  same.transport = std::string(transport->name());
  const JoinOptions joining{.config = same, .device = device.get(), .deadline = Clock::now() + config.timeout};
  const ParentState of{*transport, family, failure.notice, activity_, failure.failed() || transport->over(), [this] {
                         answer_dumps(nullptr);
                         heed_interruption(*transport, activity_);
                       }};
  SplitOrShrink division(of, joining, call, std::move(members), wish);
  std::unique_ptr<Transport> joined = division.run();
  if (!joined) return nullptr;
  auto state = std::make_unique<State>(same, device, std::move(joined), &family, division.group());
  state->dump_file.divided_from(*transport, division.group());
  return std::unique_ptr<Communicator>(new Communicator(std::move(state)));
} catch (...) {
  dump_file.division_failed(std::current_exception());
  std::rethrow_exception(dump_file.told_of(std::current_exception()));
}

}  // namespace trellis::ccl
