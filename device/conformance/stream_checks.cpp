// Streams and events: order, overlap, failures and time.
#include <atomic>
#include <chrono>
#include <thread>

#include "device/capabilities.h"
#include "device/conformance/device_buffer.h"
#include "device/simulated_time.h"

namespace trellis::device {
namespace {

void order(Device& d) {
  std::vector<int> seen;
  const auto stream = d.stream();
  for (int i = 0; i < 1000; ++i) stream->submit([&seen, i] { seen.push_back(i); });
  stream->synchronize();
  expect(stream->idle(), "a stream is busy after synchronize()");
  expect(seen.size() == 1000, "{} of 1000 pieces of work were done", seen.size());
  for (std::size_t i = 0; i < seen.size(); ++i)
    expect(seen[i] == static_cast<int>(i), "piece {} was done in place {}", seen[i], i);
  // The destructor of what a piece of work holds may query the stream, and submit more work to it.
  bool more = false;
  struct Holds {
    ~Holds() {
      idle = stream.idle();
      stream.submit([&to = more] { to = true; });
    }
    Stream& stream;
    bool& more;
    bool idle = false;
  };
  stream->submit([held = std::shared_ptr<Holds>(new Holds{*stream, more})] {});
  stream->synchronize();
  expect(more, "what the end of a piece of work submitted was not done");
}

void stream_copies(Device& d) {
  DeviceBuffer a(d, 1 << 20), b(d, 1 << 20), c(d, 1 << 20);
  const auto wanted = numbered(1 << 20, 5);
  a.put(wanted);
  const auto stream = d.stream();
  d.copy(*stream, b.data(), a.data(), b.bytes());
  d.copy(*stream, c.data(), b.data(), c.bytes());
  d.fill(*stream, b.data(), std::byte{0}, b.bytes());
  std::vector<unsigned char> seen(wanted.size());
  d.copy(*stream, seen.data(), c.data(), seen.size());
  stream->synchronize();
  expect(seen == wanted, "copies of a stream were done in another order");
  expect(b.get<unsigned char>()[12345] == 0, "a fill of a stream was not done");
}

// Each stream waits for the other, which only ends if both run at the same time.
void overlap(Device& d) {
  std::atomic<bool> first_runs = false, second_runs = false, together = true;
  const auto first = d.stream(), second = d.stream();
  const auto meet = [&](std::atomic<bool>& mine, std::atomic<bool>& other) {
    mine = true;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!other && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
    if (!other) together = false;
  };
  first->submit([&] { meet(first_runs, second_runs); });
  second->submit([&] { meet(second_runs, first_runs); });
  first->synchronize();
  second->synchronize();
  expect(together, "two streams do not run at the same time");
}

void events(Device& d) {
  const auto first = d.stream(), second = d.stream();
  const auto event = d.event();
  expect(event->ready(), "an event without a record is not ready");
  std::atomic<int> value = 0;
  first->submit([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    value = 1;
  });
  event->record(first.get());
  event->wait(second.get());
  int seen = -1;
  second->submit([&] { seen = value; });
  second->synchronize();
  expect(seen == 1, "work after an event saw {}; expected 1", seen);
  expect(event->ready(), "an event that was waited for is not ready");
  event->record(nullptr);
  expect(event->ready(), "an event recorded on no stream is not ready");
}

void failure(Device& d) {
  const auto stream = d.stream();
  std::atomic<bool> go = false, ran = false;
  stream->submit([&] {
    while (!go) std::this_thread::yield();
    throw std::runtime_error("it failed");
  });
  stream->submit([&] { ran = true; });
  const auto event = d.event();
  event->record(stream.get());
  go = true;
  event->synchronize();  // returns, although the failure drops the work that records the event
  while (!stream->idle()) std::this_thread::yield();
  const DeviceBuffer from(d, 64 << 20);
  std::vector<unsigned char> to(from.bytes());
  d.fill(from.data(), std::byte{1}, from.bytes());
  expect(stream->failed(), "a stream whose work has failed says that it is well");
  d.copy(*stream, to.data(), from.data(), to.size());
  stream->submit([&] { ran = true; });
  event->record(stream.get());
  event->synchronize();
  expect_refused<std::runtime_error>("a failure", [&] { stream->synchronize(); });
  expect(stream->idle(), "a stream is busy after it was waited for: it may still write into the caller's memory");
  expect(!ran && to.back() == 0, "work after a failure was done");
  expect(!stream->failed(), "a stream has failed after its failure was told");
  stream->submit([&] { ran = true; });
  stream->synchronize();
  expect(ran, "a stream does no work after its failure was told");
}

void time_passes(Device& d) {
  DeviceBuffer a(d, 1 << 20), b(d, 1 << 20);
  const auto stream = d.stream();
  const auto before = d.event(), after = d.event();
  before->record(stream.get());
  for (int i = 0; i < 4; ++i) d.copy(*stream, b.data(), a.data(), b.bytes());
  after->record(stream.get());
  stream->synchronize();
  expect(before->time() < after->time(), "four copies took no time: {} ps to {} ps", before->time(), after->time());
  expect(stream->now() >= after->time(), "the stream is at {} ps, its last event at {}", stream->now(), after->time());
}

// The same work takes the same picoseconds, whatever the host does meanwhile, and a wait moves the waiting stream's
// clock.
void simulated_time(Device& d) {
  DeviceBuffer a(d, 1 << 20), b(d, 1 << 20);
  const auto timed = [&](std::size_t bytes) {
    const auto stream = d.stream();
    const Time begin = stream->now();
    d.copy(*stream, b.data(), a.data(), bytes);
    stream->synchronize();
    return stream->now() - begin;
  };
  const Time one = timed(1 << 20);
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  expect(timed(1 << 20) == one, "a copy took {} ps and then {}", one, timed(1 << 20));
  expect(timed(1 << 10) < one, "fewer bytes take no less time");
  const auto first = d.stream(), second = d.stream();
  const auto event = d.event();
  d.copy(*first, b.data(), a.data(), 1 << 20);
  event->record(first.get());
  event->wait(second.get());
  second->synchronize();
  expect(second->now() >= event->time(), "a stream is at {} ps after a wait for {} ps", second->now(), event->time());
  expect(clock_of(d).time >= event->time(), "the caller is at {} ps after a wait for {}", clock_of(d).time,
         event->time());
}

const RegisteredCheck all[] = {
    RegisteredCheck({"stream order", "a stream does its work in order", {}, order}),
    RegisteredCheck({"stream copies", "copies of a stream follow each other", {}, stream_copies}),
    RegisteredCheck({"overlap", "two streams run at the same time", {}, overlap}),
    RegisteredCheck({"events", "work after an event sees what came before it", {}, events}),
    RegisteredCheck({"failure", "a failure is told once, and nobody waits for what it prevents", {}, failure}),
    RegisteredCheck({"time", "events carry the time at which they were reached", {}, time_passes}),
    RegisteredCheck({"simulated time", "time depends on the work alone", {Capability::simulated_time}, simulated_time}),
};

}  // namespace
}  // namespace trellis::device
