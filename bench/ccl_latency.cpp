// Breaks down the time of an 8-byte operation between two ranks. Its lower bound is the transfer of a cache line
// between cores (line_and_back: a round trip). More is spent on sending a message through the lanes of the transport
// (message_and_back: a round trip), on the sum, and on what a single rank has to do, too (..._alone): to check the
// call, to wait for its ticket, and to write the flight record.
#include <benchmark/benchmark.h>
#include <sched.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "ccl/communicator.h"
#include "ccl/failure/flight_recorder.h"
#include "ccl/group.h"
#include "ccl/plan/call_check.h"
#include "ccl/run/ticket_lock.h"
#include "ccl/store.h"
#include "ccl/transports/open.h"
#include "ccl/transports/segment/doorbell.h"
#include "kernels/dispatch/usable_cores.h"
#include "kernels/reduce/reduce.h"

namespace {

using namespace trellis;

// Pins the thread to the core of that number, if this process has that many.
void stay_on(std::size_t number) {
  static const std::vector<int> cores = kernels::placement().cores;
  if (number >= cores.size()) return;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cores[number], &one);
  sched_setaffinity(0, sizeof one, &one);
}

// A second thread on another core, which ends on request.
class Other {
 public:
  template <class Work>
  explicit Other(Work work)
      : thread_([work = std::move(work)] {
          stay_on(1);
          work();
        }) {
    stay_on(0);
  }
  void end() { thread_.join(); }

 private:
  std::thread thread_;
};

void line_and_back(benchmark::State& state) {
  struct alignas(128) Line {
    std::atomic<std::uint64_t> value = 0;
  };
  Line there, back;
  std::atomic<bool> over = false;
  Other other([&] {
    for (std::uint64_t n = 1; !over; ++n) {
      while (there.value.load(std::memory_order_acquire) != n)
        if (over) return;
      back.value.store(n, std::memory_order_release);
    }
  });
  std::uint64_t n = 0;
  for (auto _ : state) {
    there.value.store(++n, std::memory_order_release);
    while (back.value.load(std::memory_order_acquire) != n) {
    }
  }
  over = true;
  other.end();
}

// One end of a pair of lanes that passes 8 bytes back and forth, with nothing above the transport.
class End {
 public:
  End(const std::shared_ptr<ccl::Store>& store, ccl::Rank rank)
      : device_(device::open("host")),
        transport_(ccl::open_transport(store, {.rank = rank,
                                               .ranks = 2,
                                               .config = {.transport = "loopback"},
                                               .device = device_.get(),
                                               .deadline = ccl::Clock::now() + limit})),
        sender_(transport_->sender(1 - rank, 0)),
        receiver_(transport_->receiver(1 - rank, 0)) {}

  void send(const std::uint64_t& word) {
    ccl::Sending s{.data = reinterpret_cast<const std::byte*>(&word), .bytes = sizeof word};
    while (!sender_.advance(s)) ccl::relax();
  }
  std::uint64_t receive() {
    std::uint64_t word = 0;
    const auto take = [](void* to, std::uint32_t, std::size_t, const std::byte* piece, std::size_t bytes) {
      std::memcpy(to, piece, bytes);
    };
    ccl::Receiving r{.consumer = {take, &word}, .bytes = sizeof word};
    while (!receiver_.advance(r)) ccl::relax();
    return word;
  }

 private:
  static constexpr std::chrono::seconds limit{20};
  std::shared_ptr<device::Device> device_;
  std::unique_ptr<ccl::Transport> transport_;
  ccl::Sender& sender_;
  ccl::Receiver& receiver_;
};

void message_and_back(benchmark::State& state) {
  const auto store = ccl::memory_store();
  constexpr std::uint64_t last = 1;
  Other other([&] {
    End end(store, 1);
    for (std::uint64_t word = 0; word != last;) end.send(word = end.receive());
  });
  End end(store, 0);
  for (auto _ : state) {
    end.send(0);
    end.receive();
  }
  end.send(last);
  end.receive();
  other.end();
}

void sum_of_two(benchmark::State& state) {
  float in[2] = {1, 2}, more[2] = {3, 4};
  const void* const sources[] = {in, more};
  for (auto _ : state) {
    kernels::reduce(kernels::Reduction::sum, kernels::DType::f32, sources, in, 2);
    benchmark::DoNotOptimize(in);
  }
}

void check_alone(benchmark::State& state) {
  float in[2] = {1, 2}, out[2];
  const ccl::Call call{.input = in, .output = out, .count = 2};
  ccl::CallCheck check(0, 2);
  for (auto _ : state) benchmark::DoNotOptimize(check(call));
}

void turn_alone(benchmark::State& state) {
  ccl::TicketLock turns;
  for (auto _ : state) {
    ccl::TicketLock::Ticket turn(turns);
    turn.wait();
  }
}

void record_alone(benchmark::State& state) {
  ccl::FlightRecorder recorder;
  for (auto _ : state) {
    recorder.begin().operation = 1;
    recorder.show();
    recorder.end();
  }
}

std::unique_ptr<ccl::Communicator> rank_alone() {
  return ccl::Communicator::create(ccl::memory_store(), 0, 1, {.transport = "loopback"});
}

void all_reduce_alone(benchmark::State& state) {
  const auto c = rank_alone();
  float in[2] = {1, 2}, out[2];
  for (auto _ : state) c->all_reduce(in, out, 2, kernels::DType::f32);
}

void exchange(ccl::Communicator& c, const float* in, float* out) {
  ccl::Group group;
  c.send(in, 2, kernels::DType::f32, c.ranks() - 1 - c.rank());
  c.recv(out, 2, kernels::DType::f32, c.ranks() - 1 - c.rank());
  group.end();
}

void exchange_alone(benchmark::State& state) {
  const auto c = rank_alone();
  const float in[2] = {1, 2};
  float out[2];
  for (auto _ : state) exchange(*c, in, out);
}

// Times an operation between two ranks. The other rank repeats it until the second element of a result is not 0.
template <class Operation>
void of_two(benchmark::State& state, Operation operation) {
  const auto store = ccl::memory_store();
  const auto join = [&](ccl::Rank rank) {
    return ccl::Communicator::create(store, rank, 2, {.transport = "loopback"});
  };
  Other other([&] {
    const auto c = join(1);
    const float in[2] = {1, 0};
    float out[2] = {0, 0};
    while (out[1] == 0) operation(*c, in, out);
  });
  const auto c = join(0);
  float in[2] = {1, 0}, out[2];
  for (auto _ : state) operation(*c, in, out);
  in[1] = 1;
  operation(*c, in, out);
  other.end();
}

void all_reduce_of_two(benchmark::State& state) {
  of_two(state, [](auto& c, const float* in, float* out) { c.all_reduce(in, out, 2, kernels::DType::f32); });
}
void exchange_of_two(benchmark::State& state) { of_two(state, exchange); }

BENCHMARK(line_and_back)->UseRealTime();
BENCHMARK(message_and_back)->UseRealTime();
BENCHMARK(sum_of_two);
BENCHMARK(check_alone);
BENCHMARK(turn_alone);
BENCHMARK(record_alone);
BENCHMARK(all_reduce_alone);
BENCHMARK(exchange_alone);
BENCHMARK(all_reduce_of_two)->UseRealTime();
BENCHMARK(exchange_of_two)->UseRealTime();

}  // namespace
