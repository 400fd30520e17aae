// The Gloo side of bench/peers/run.py: Gloo's tcp transport on loopback, timed as mpi_peer.c times MPI. Started by
// `trellis launch`; the ranks rendezvous in a folder.
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/math.h>
#include <gloo/reduce_scatter.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using Context = std::shared_ptr<gloo::Context>;
using Algorithm = gloo::detail::AllreduceOptionsImpl::Algorithm;

// GLOO_ALGORITHM selects the all_reduce; without it, Gloo chooses.
Algorithm algorithm_wanted() {
  const char* const value = std::getenv("GLOO_ALGORITHM");
  const std::string name = value == nullptr ? "" : value;
  return name == "ring" ? Algorithm::RING : name == "bcube" ? Algorithm::BCUBE : Algorithm::UNSPECIFIED;
}

// The timed operation, with everything prepared that a user would keep between calls.
std::function<void()> call_of(const Context& c, const std::string& op, std::vector<float>& in, std::vector<float>& out,
                              std::size_t count) {
  const std::size_t block = count / static_cast<std::size_t>(c->size);
  float* const from = in.data();
  float* const to = out.data();
  if (op == "all_reduce")
    return [=] {
      gloo::AllreduceOptions options(c);
      options.setAlgorithm(algorithm_wanted());
      options.setInput(from, count);
      options.setOutput(to, count);
      options.setReduceFunction(
          [](void* sum, const void* a, const void* b, std::size_t n) { gloo::sum<float>(sum, a, b, n); });
      gloo::allreduce(options);
    };
  if (op == "all_gather")
    return [=] {
      gloo::AllgatherOptions options(c);
      options.setInput(from, block);
      options.setOutput(to, block * static_cast<std::size_t>(c->size));
      gloo::allgather(options);
    };
  if (op == "all_to_all")
    return [=] {
      gloo::AlltoallOptions options(c);
      options.setInput(from, block * static_cast<std::size_t>(c->size));
      options.setOutput(to, block * static_cast<std::size_t>(c->size));
      gloo::alltoall(options);
    };
  if (op == "broadcast")
    return [=] {
      gloo::BroadcastOptions options(c);
      options.setOutput(from, count);
      options.setRoot(0);
      gloo::broadcast(options);
    };
  if (op == "reduce_scatter") {
    const std::vector<int> blocks(static_cast<std::size_t>(c->size), static_cast<int>(block));
    const auto algorithm = std::make_shared<gloo::ReduceScatterHalvingDoubling<float>>(
        c, std::vector<float*>{from}, static_cast<int>(block * blocks.size()), blocks);
    return [=] { algorithm->run(); };
  }
  std::shared_ptr<gloo::transport::UnboundBuffer> sends = c->createUnboundBuffer(from, count * sizeof(float));
  std::shared_ptr<gloo::transport::UnboundBuffer> receives = c->createUnboundBuffer(to, count * sizeof(float));
  return [=] {
    constexpr std::uint64_t slot = 7;
    sends->send((c->rank + 1) % c->size, slot);
    receives->recv((c->rank + c->size - 1) % c->size, slot);
    sends->waitSend();
    receives->waitRecv();
  };
}

void measure(const Context& c, const std::string& op, std::size_t bytes) {
  const std::size_t count = bytes / sizeof(float);
  const std::size_t times = bytes < 65536 ? 2000 : bytes < (std::size_t{4} << 20) ? 200 : 15;
  std::vector<float> in(count + 16), out(count + 16);
  std::vector<double> took(times);
  const std::function<void()> call = call_of(c, op, in, out, count);
  for (double& us : took) {
    for (std::size_t q = 0; q < count; q += 16) in[q] += 1 + 0 * out[q];
    gloo::BarrierOptions barrier(c);
    gloo::barrier(barrier);
    const auto begin = Clock::now();
    call();
    us = std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
  }
  gloo::AllreduceOptions worst(c);
  worst.setOutput(took.data(), took.size());
  worst.setReduceFunction(
      [](void* most, const void* a, const void* b, std::size_t n) { gloo::max<double>(most, a, b, n); });
  gloo::allreduce(worst);
  if (c->rank != 0) return;
  std::sort(took.begin(), took.end());
  std::printf("%zu %.3f %.3f\n", bytes, took[times / 2], took[times * 99 / 100]);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) try {
  const char* const rank = std::getenv("RANK");
  const char* const ranks = std::getenv("WORLD_SIZE");
  if (argc < 4 || rank == nullptr || ranks == nullptr)
    return std::fprintf(stderr, "usage: trellis launch -n N -- gloo_peer FOLDER OP BYTES...\n"), 2;
  gloo::transport::tcp::attr where;
  where.iface = "lo";
  auto device = gloo::transport::tcp::CreateDevice(where);
  gloo::rendezvous::FileStore store(argv[1]);
  const auto context = std::make_shared<gloo::rendezvous::Context>(std::atoi(rank), std::atoi(ranks));
  context->connectFullMesh(store, device);
  for (int a = 3; a < argc; ++a) measure(context, argv[2], std::strtoull(argv[a], nullptr, 10));
} catch (const std::exception& e) {
  std::fprintf(stderr, "gloo_peer: %s\n", e.what());
  return 1;
}
