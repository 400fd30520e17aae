// Our side of bench/peers/run.py: times the public API as bench/peers/mpi_peer.c times MPI. Started by `trellis
// launch`.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "bench/peers/synchronized_start.h"
#include "ccl/communicator.h"
#include "ccl/group.h"
#include "ccl/rendezvous/environment.h"

namespace {

using namespace trellis;
using namespace trellis::ccl;

// Ordinary memory, or the device's own memory, which peers read directly.
class Memory {
 public:
  Memory(device::Device& device, std::size_t bytes, bool own)
      : device_(device), own_(own), data_(own ? device.allocate(bytes) : std::malloc(bytes)) {
    std::memset(data_, 0, bytes);
  }
  ~Memory() { own_ ? device_.release(data_) : std::free(data_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  float* floats() const { return static_cast<float*>(data_); }

 private:
  device::Device& device_;
  bool own_;
  void* data_;
};

void call(Communicator& c, const std::string& op, const float* in, float* out, std::size_t count) {
  const auto type = kernels::DType::f32;
  const std::size_t block = count / static_cast<std::size_t>(c.ranks());
  if (op == "all_reduce") return c.all_reduce(in, out, count, type);
  if (op == "reduce_scatter") return c.reduce_scatter(in, out, block, type);
  if (op == "all_gather") return c.all_gather(in, out, block, type);
  if (op == "all_to_all") return c.all_to_all(in, out, block, type);
  if (op == "broadcast") return c.broadcast(in, const_cast<float*>(in), count, type, 0);
  if (op != "sendrecv") throw std::invalid_argument("no operation is called " + op);
  Group group;
  c.send(in, count, type, (c.rank() + 1) % c.ranks());
  c.recv(out, count, type, (c.rank() + c.ranks() - 1) % c.ranks());
  group.end();
}

double begin_call(Communicator& c) {
  c.barrier();
  if (!begins_together()) return now_us();
  double at = soon_us();
  c.broadcast(&at, &at, 1, kernels::DType::f64, 0);
  return wait_until(at);
}

void measure(Communicator& c, const std::string& op, std::size_t bytes, bool own) {
  const Memory in(c.device(), bytes + 64, own), out(c.device(), bytes + 64, own);
  const std::size_t times = bytes < 65536 ? 2000 : bytes < (std::size_t{4} << 20) ? 200 : 15;
  std::vector<double> took(times), worst(times);
  for (double& us : took) {
    for (std::size_t q = 0; q < bytes / sizeof(float); q += 16) in.floats()[q] += 1 + 0 * out.floats()[q];
    const double begin = begin_call(c);
    call(c, op, in.floats(), out.floats(), bytes / sizeof(float));
    us = now_us() - begin;
  }
  c.all_reduce(took.data(), worst.data(), times, kernels::DType::f64, {kernels::Reduction::max});
  if (c.rank() != 0) return;
  std::ranges::sort(worst);
  fmt::print(
      "{} {:.3f} {:.3f} {}\n", bytes, worst[times / 2], worst[times * 99 / 100],
      op == "all_reduce" ? c.algorithm({.input = in.floats(), .output = out.floats(), .count = bytes / 4}) : "-");
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 4) return fmt::print(stderr, "usage: ccl_peer OP malloc|device BYTES...\n"), 2;
  const LaunchedProcess job = launched_from_environment();
  const Config config = config_from_environment();
  const auto c =
      Communicator::create(store_from_environment(job, Clock::now() + config.timeout), job.rank, job.ranks, config);
  for (int a = 3; a < argc; ++a)
    measure(*c, argv[1], std::strtoull(argv[a], nullptr, 10), std::string(argv[2]) == "device");
} catch (const std::exception& e) {
  fmt::print(stderr, "ccl_peer: {}\n", e.what());
  return 1;
}
