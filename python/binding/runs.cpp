// Schedules run on arrays: every rank is a thread with a communicator, as the library runs them.
#include <exception>
#include <thread>

#include "ccl/communicator.h"
#include "ccl/interruption.h"
#include "ccl/plan/call_check.h"
#include "python/binding/signals.h"

namespace trellis::binding {
namespace {

using namespace nb::literals;

// What differs from rank to rank in a call.
struct Part {
  const void* in = nullptr;
  void* out = nullptr;
  std::size_t in_bytes = 0, out_bytes = 0;
  std::vector<std::size_t> counts, arriving_counts;
};

ccl::Call call_of(const ccl::Call& like, const Part& part) {
  ccl::Call call = like;
  call.input = part.in;
  call.output = part.out;
  call.counts = part.counts;
  call.arriving_counts = part.arriving_counts;
  return call;
}

void check_bytes(const std::string& what, ccl::Rank rank, std::size_t has, std::size_t touched) {
  if (has < touched)
    throw std::invalid_argument(what + " of rank " + std::to_string(rank) + " has " + std::to_string(has) +
                                " bytes, the call touches " + std::to_string(touched));
}

// Checks that every rank's arrays hold what its call reads and writes.
void check_arrays(const ccl::Call& like, const std::vector<Part>& parts) {
  const auto ranks = static_cast<ccl::Rank>(parts.size());
  for (ccl::Rank r = 0; r < ranks; ++r) {
    const Part& part = parts[static_cast<std::size_t>(r)];
    const ccl::Call call = call_of(like, part);
    ccl::check(call, r, ranks);
    const ccl::BufferBytes touched = ccl::extents_of(call, r, ranks);
    check_bytes("the input", r, part.in_bytes, touched.input);
    check_bytes("the output", r, part.out_bytes, touched.output);
  }
}

void run(const schedule::Schedule& schedule, const std::vector<Part>& parts, const ccl::Call& like, double timeout_s,
         const SignalWatcher& signals) {
  const auto ranks = static_cast<std::size_t>(schedule.ranks());
  const auto store = ccl::memory_store();
  ccl::Config config;
  config.timeout = std::chrono::milliseconds(static_cast<std::int64_t>(timeout_s * 1000));
  config.transport = "loopback";
  std::vector<std::exception_ptr> errors(ranks);
  std::vector<std::jthread> threads;
  for (std::size_t r = 0; r < ranks; ++r)
    threads.emplace_back([&, r] {
      thread_local const SignalWatcher* asked = nullptr;
      asked = &signals;
      const ccl::Interruption by_caller([] { return asked->raised(); });
      try {
        const auto comm = ccl::Communicator::create(store, static_cast<ccl::Rank>(r), schedule.ranks(), config);
        comm->run(call_of(like, parts[r]), schedule);
        comm->barrier();  // nobody leaves before all have their result
      } catch (...) {
        errors[r] = std::current_exception();
      }
    });
  threads.clear();  // waits for them
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
}

using Counts = std::vector<std::vector<std::size_t>>;  // by rank; empty: the collective has none

std::vector<Part> parts_of(const schedule::Schedule& schedule, const std::vector<ReadArray>& inputs,
                           const std::vector<Array>& outputs, const Counts& counts, const Counts& arriving) {
  if (inputs.size() != static_cast<std::size_t>(schedule.ranks()) || outputs.size() != inputs.size())
    throw std::invalid_argument(std::to_string(inputs.size()) + " inputs and " + std::to_string(outputs.size()) +
                                " outputs: expected " + std::to_string(schedule.ranks()) + " of each");
  for (const Counts* each : {&counts, &arriving})
    if (!each->empty() && each->size() != inputs.size())
      throw std::invalid_argument(std::to_string(each->size()) + " lists of counts: expected one for each of " +
                                  std::to_string(inputs.size()) + " ranks");
  std::vector<Part> parts;
  for (std::size_t r = 0; r < inputs.size(); ++r)
    parts.push_back({.in = inputs[r].data(),
                     .out = outputs[r].data(),
                     .in_bytes = inputs[r].nbytes(),
                     .out_bytes = outputs[r].nbytes(),
                     .counts = counts.empty() ? std::vector<std::size_t>() : counts[r],
                     .arriving_counts = arriving.empty() ? std::vector<std::size_t>() : arriving[r]});
  return parts;
}

void run_arrays(const schedule::Schedule& schedule, const std::vector<ReadArray>& inputs,
                const std::vector<Array>& outputs, std::size_t count, const std::string& type, const std::string& op,
                double timeout_s, const Counts& counts, const Counts& arriving) {
  const std::vector<Part> parts = parts_of(schedule, inputs, outputs, counts, arriving);
  const ccl::Call like{.operation = schedule.task.operation,
                       .count = count,
                       .type = kernels::dtype_named(type),
                       .op = {kernels::reduction_named(op)}};
  check_arrays(like, parts);
  SignalWatcher signals;
  signals.watch([&] { run(schedule, parts, like, timeout_s, signals); });
}

}  // namespace

void add_runs(nb::module_& m) {
  m.def("run_schedule", &run_arrays, "schedule"_a, "inputs"_a, "outputs"_a, "count"_a, "dtype"_a, "op"_a = "sum",
        "timeout_s"_a = 30.0, "counts"_a = Counts(), "arriving_counts"_a = Counts());
}

}  // namespace trellis::binding
