#include "ccl/inside.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <utility>

#include "ccl/blame.h"
#include "ccl/check.h"
#include "ccl/mark.h"
#include "kernels/cpu.h"

namespace trellis::ccl {
namespace {

bool does(const Call& c, kernels::Reduction op) { return c.op.kind == op && schedule::reduces(c.collective); }

bool scales_first(const Call& c) { return does(c, kernels::Reduction::scaled_sum); }

// Ranks that are in the same operation, and mean the same by it, have the same mark.
std::uint32_t mark_of(const Planned& planned, const Call& c, std::uint64_t operation) {
  const std::uint64_t op = schedule::reduces(c.collective) ? static_cast<std::uint64_t>(c.op.kind) + 1 : 0;
  return static_cast<std::uint32_t>(mixed(planned.mark ^ op << 56, operation) >> 32);
}

}  // namespace

Communicator::Inside::Inside(Config c, std::shared_ptr<device::Device> d, std::shared_ptr<Store> s,
                             std::unique_ptr<Transport> t)
    : config(std::move(c)),
      device(std::move(d)),
      store(std::move(s)),
      transport(std::move(t)),
      planner(transport->rank(), transport->ranks(), transport->lanes() - 1, config),
      executor(*transport, *device, config.timeout),
      check(transport->rank(), transport->ranks()),
      scratch(*device, Rooms::of(*device)),
      scaled(*device, Rooms::of(*device)),
      rank_(transport->rank()),
      ranks_(transport->ranks()),
      cache_share_(kernels::cpu().l3_bytes / static_cast<std::size_t>(ranks_)),
      dumps_(dumps_requested()) {
  job_.activity = &activity_;
  job_.how.rounding = config.rounding;
  job_.how.random.seed = config.seed;
  if (config.dump.empty()) return;
  std::filesystem::create_directories(config.dump);  // now, when somebody can still hear that it can't be
  add_dumped(*this);
}

Communicator::Inside::~Inside() {
  if (!config.dump.empty()) remove_dumped(*this);
}

// What is scaled first goes to memory of our own, so that the caller's stays as it is.
const void* Communicator::Inside::input_of(const Call& c) {
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

// Scaled input lies where peers can read it.
schedule::Hidden Communicator::Inside::hidden_of(const Call& c) {
  if (!worth_showing(c, ranks_) || planner.traces(c)) return {};
  const std::size_t message = larger_bytes(c, ranks()) / static_cast<std::size_t>(ranks_);
  const auto hides = [&](const void* data, std::size_t bytes) {
    return transport->readable(data, bytes, message) < bytes / 2;
  };
  const Extents e = extents_of(c, rank(), ranks());
  return {.input = !scales_first(c) && hides(c.input, e.input), .output = hides(c.output, e.output)};
}

// What all ranks touch fits the last cache they share, or it does not: then results go past it, and leave it to what
// is still to be read.
kernels::Stores Communicator::Inside::stores_for(std::size_t bytes_touched) const {
  return cache_share_ != 0 && bytes_touched > cache_share_ ? kernels::Stores::streaming : kernels::Stores::cached;
}

// What the members held of an earlier operation is overwritten one by one, as this is the way of every small message
// and they are many.
void Communicator::Inside::open(const Call& c, bool in_place, const Planned* planned) {
  check_well();
  const std::uint64_t operation = operations.load(std::memory_order_relaxed) + 1;  // others only read it
  operations.store(operation, std::memory_order_relaxed);
  const bool averages = does(c, kernels::Reduction::avg);
  const bool sums = averages || c.op.kind == kernels::Reduction::scaled_sum;
  if (planned == nullptr) planned = &planner.plan(c, in_place && !scales_first(c), hidden_of(c));
  const Compiled& compiled = planned->compiled;
  const std::size_t size = kernels::size_of(c.type);
  divided_ = averages ? compiled.output_elements : 0;

  activity_.operation = operation;
  activity_.count = c.count;
  activity_.step = -1;
  activity_.waits_for = -1;
  activity_.root = c.root;
  activity_.collective = static_cast<std::uint8_t>(c.collective);
  activity_.type = static_cast<std::uint8_t>(c.type);
  activity_.wire = static_cast<std::uint8_t>(planned->wire);
  activity_.reduction = static_cast<std::uint8_t>(c.op.kind);

  job_.compiled = &compiled;
  job_.buffers[0] = const_cast<void*>(input_of(c));
  job_.buffers[1] = c.output;
  job_.buffers[2] = scratch.of(compiled.scratch_elements * size);
  job_.type = c.type;
  job_.wire = planned->wire;
  job_.op = sums ? kernels::Reduction::sum : c.op.kind;
  job_.how.random.step = operation;
  job_.how.stores = stores_for((compiled.input_elements + compiled.output_elements) * size);
  job_.mark = mark_of(*planned, c, operation);
  job_.tokens = c.collective == Collective::barrier;
  begin();

  Recorded& r = recorder.begin();
  r.operation = operation;
  r.count = c.count;
  r.points = 0;
  r.choice = planned->choice;
  r.root = c.root;
  r.peer = c.peer;
  r.collective = c.collective;
  r.type = c.type;
  r.op = c.op.kind;
}

void Communicator::Inside::open(std::span<const Point> points) {
  check_well();
  if (!std::ranges::equal(points, compiled_points_)) {
    compiled_points_.clear();  // for when what follows throws
    points_ = compile_points(points, rank(), transport->lanes() - 1);
    compiled_points_.assign(points.begin(), points.end());
  }
  divided_ = 0;
  const Point& first = points.front();
  activity_ = {.operation = operations,
               .count = first.count,
               .heartbeat = activity_.heartbeat,
               .root = first.from,
               .collective = static_cast<std::uint8_t>(Collective::send_recv),
               .type = static_cast<std::uint8_t>(first.type),
               .wire = static_cast<std::uint8_t>(first.type),
               .running = true};
  job_.compiled = &points_;
  for (void*& buffer : job_.buffers) buffer = nullptr;
  job_.type = job_.wire = kernels::DType::u8;
  job_.how.stores = kernels::Stores::cached;
  job_.mark = mark_of_points;
  job_.tokens = true;
  begin();
  Recorded& r = recorder.begin();
  r = {.operation = operations,
       .count = first.count,
       .points = points.size(),
       .began = r.began,
       .root = first.from,
       .peer = first.to,
       .collective = Collective::send_recv,
       .type = first.type};
}

void Communicator::Inside::begin() {
  try {
    executor.begin(job_);
  } catch (...) {
    tell_of_loss(std::current_exception());
    fail(std::current_exception());
    throw;
  }
}

void Communicator::Inside::close() {
  executor.end();
  scratch.end();
  scaled.end();
  recorder.end();
  if (divided_ != 0)
    device->divide(job_.type, job_.at({schedule::Buffer::output}), divided_, static_cast<std::uint32_t>(ranks()));
}

void Communicator::Inside::run() {
  try {
    for (std::uint32_t idle = 0; !executor.done();) {
      if (executor.move()) {
        idle = 0;
        continue;
      }
      this->idle(idle++);
    }
    close();
  } catch (...) {
    tell_of_loss(std::current_exception());
    fail(std::current_exception());
    throw;
  }
}

void Communicator::Inside::idle(std::uint32_t times) {
  executor.idle(times);
  const std::uint32_t request = dumps_requested();
  if (config.dump.empty() || request == dumps_) return;
  write_dump();
  dumps_ = request;  // after which the process may end
}

void Communicator::Inside::tell_of_loss(std::exception_ptr e) {
  try {
    std::rethrow_exception(std::move(e));
  } catch (const PeerLost& lost) {
    transport->mark_lost(lost.rank);
  } catch (...) {  // of anything else the others hear otherwise
  }
}

void Communicator::Inside::fail(std::exception_ptr e) {
  transport->withdraw();
  keep(std::move(e));
  if (!config.dump.empty() && !failure_dumped_.exchange(true)) write_dump();
}

void Communicator::Inside::keep(std::exception_ptr e) {
  const std::lock_guard lock(error_mutex_);
  if (error_) return;
  error_ = std::move(e);
  failed_ = true;
}

// What is under way fails in its own thread.
void Communicator::Inside::abort() {
  transport->withdraw();
  keep(std::make_exception_ptr(Aborted("the communicator was aborted")));
  transport->mark_aborted();
  if (!config.dump.empty()) dump_if_free();
}

bool Communicator::Inside::dump_for(std::uint32_t request) {
  if (dumps_ != request && dump_if_free()) dumps_ = request;
  return dumps_ == request;
}

bool Communicator::Inside::dump_if_free() {
  const auto turn = turns.take_if_free();
  if (!turn) return false;
  write_dump();
  turns.done(*turn);
  return true;
}

// Whole or not at all. A folder that can't be written must not hide what has failed.
void Communicator::Inside::write_dump() const {
  const std::string path = fmt::format("{}/trellis_{:016x}_rank{}.json", config.dump, transport->identity(), rank());
  const std::string begun = path + ".part";
  const std::lock_guard lock(dump_mutex_);
  std::ofstream file(begun);
  file << dump();
  file.close();
  std::error_code ignored;
  if (file) std::filesystem::rename(begun, path, ignored);
}

std::string Communicator::Inside::dump() const {
  const Activity mine = transport->activity(rank());
  FlightRecorder::Whose whose{.rank = rank(),
                              .ranks = ranks(),
                              .communicator = fmt::format("{:016x}", transport->identity()),
                              .waits_for = mine.waits_for,
                              .step = mine.step,
                              .timeout_ms = config.timeout.count()};
  const std::lock_guard lock(error_mutex_);
  try {
    if (error_) std::rethrow_exception(error_);
  } catch (const std::exception& e) {
    whose.error = e.what();
  }
  return recorder.dump(whose);
}

void Communicator::Inside::finish() {
  check_well();
  try {
    check_over(*transport, activity_);
  } catch (...) {
    fail(std::current_exception());
    throw;
  }
}

// What was sent before an abort may still lie there: nothing is begun with it.
void Communicator::Inside::check_well() {
  if (transport->aborted()) fail(std::make_exception_ptr(Aborted("the communicator was aborted")));
  if (!failed_.load(std::memory_order_relaxed)) return;
  const std::lock_guard lock(error_mutex_);
  std::rethrow_exception(error_);
}

}  // namespace trellis::ccl
