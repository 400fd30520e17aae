// The stand-in between processes: meetings at a rendezvous that device 0 serves, and messages between cores.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "device/channel.h"
#include "device/device.h"
#include "device/simulated_time.h"
#include "net/greeting.h"
#include "tests/device/standin.h"

namespace trellis::device {
namespace {

using nrt::Status;

// Runs each rank in a child process. True when all of them returned true.
template <class Work>
bool in_processes(int ranks, Work work) {
  std::vector<pid_t> children;
  for (int r = 0; r < ranks; ++r) {
    const pid_t child = fork();
    if (child == 0) _exit(work(r) ? 0 : 1);
    children.push_back(child);
  }
  bool well = true;
  for (const pid_t child : children) {
    int status = -1;
    waitpid(child, &status, 0);
    well = well && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  return well;
}

TEST(NrtProcesses, GatherAndReduceOverTheHubOfDevice0) {
  const std::string root = "127.0.0.1:" + std::to_string(free_port());
  EXPECT_TRUE(in_processes(3, [&](int rank) {
    setenv("NEURON_RT_ROOT_COMM_ID", root.c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
    const Standin n;
    const auto r = static_cast<std::uint32_t>(rank);
    std::uint32_t own = r + 7, all[3] = {};
    if (n->nrt_all_gather(rank, r, 3, sizeof own, &own, all) != Status::success) return false;
    nrt::Tensor* t = n.tensor(rank, 4000);
    const std::vector<float> values(1000, static_cast<float>(rank));
    n->nrt_tensor_write(t, values.data(), 0, 4000);
    std::uint32_t group[] = {0, 1, 2};
    nrt::CommInfo comm{group, r, 3, r, 3, r};
    nrt::TensorList list{&t, 1};
    nrt::CollectiveContext* context = nullptr;
    nrt::Sequence s = 0;
    n->nrta_cc_prepare(&comm, &list, &list, nrt::NrtDType::f32, nrt::ReduceKind::add, nrt::CollectiveKind::all_reduce,
                       &context);
    if (n->nrta_cc_schedule(&context, 0, nullptr, &s) != Status::success) return false;
    for (bool done = false; !done;)
      if (n->nrta_is_completed(s, &done) != Status::success) return false;
    float sum = 0;
    n->nrt_tensor_read(t, &sum, 3996, 4);
    const bool met = n->nrt_barrier(rank, r, 3) == Status::success;
    return all[0] == 7 && all[2] == 9 && sum == 3.0F && met;
  }));
}

// Strangers call silently, with other words, and with the secret of another job.
TEST(NrtProcesses, StrangersAtTheHubTakeNoPartAndHinderNobody) {
  const int port = free_port();
  const std::string root = "127.0.0.1:" + std::to_string(port);
  int ended[2];  // rank 0 serves until rank 1 has ended
  ASSERT_EQ(pipe(ended), 0);
  EXPECT_TRUE(in_processes(2, [&](int rank) {
    setenv("NEURON_RT_ROOT_COMM_ID", root.c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
    setenv("TRELLIS_SECRET", "of the job", 1);          // NOLINT(concurrency-mt-unsafe)
    const Standin n;
    const auto r = static_cast<std::uint32_t>(rank);
    std::uint32_t own = r + 7, all[2] = {};
    if (n->nrt_all_gather(rank, r, 2, sizeof own, &own, all) != Status::success) return false;
    const auto far = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    std::vector<net::Descriptor> strangers;
    if (rank == 1) {
      const net::Address hub = net::addresses_of("127.0.0.1", port).front();
      for (int i = 0; i < 200; ++i) strangers.push_back(net::connect_before(hub, far));
      const std::string words(300, 'x');
      try {
        net::send_before(strangers.front(), net::bytes_of(words), far);
      } catch (const std::system_error&) {  // closed in favour of the later ones
      }
    }
    if (n->nrt_all_gather(rank, r, 2, sizeof own, &own, all) != Status::success) return false;
    if (all[0] != 7 || all[1] != 8) return false;
    pollfd said{ended[0], POLLIN, 0};
    if (rank == 0) return poll(&said, 1, 60'000) == 1;
    setenv("TRELLIS_SECRET", "of another job", 1);  // NOLINT(concurrency-mt-unsafe)
    const bool refused =
        n->nrt_barrier(rank, r, 2) != Status::success && n.why().find("TRELLIS_SECRET") != std::string::npos;
    return write(ended[1], "x", 1) == 1 && refused;
  }));
  close(ended[0]);
  close(ended[1]);
}

template <class Ask>
bool wait_for(Ask ask) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(120);
  for (bool done = false; std::chrono::steady_clock::now() < deadline; std::this_thread::yield()) {
    if (ask(&done) != Status::success) return false;
    if (done) return true;
  }
  return false;
}

TEST(NrtProcesses, CoresSendTensorsToEachOther) {
  const std::string port = std::to_string(free_port());
  EXPECT_TRUE(in_processes(2, [&](int rank) {
    setenv("TRELLIS_NRT_SENDRECV_PORT", port.c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
    const Standin n;
    if (n->nrt_async_sendrecv_init(rank) != Status::success) return false;
    nrt::SendRecvComm* comm = nullptr;
    const Status opened = rank == 0 ? n->nrt_async_sendrecv_connect("127.0.0.1", 1, 0, &comm)
                                    : n->nrt_async_sendrecv_accept("127.0.0.1", 0, 1, &comm);
    if (opened != Status::success) return false;
    if (!wait_for([&](bool* done) { return n->nrt_async_sendrecv_test_comm(comm, done); })) return false;
    nrt::Tensor* t = n.tensor(rank, 1 << 20);
    if (rank == 0) {
      for (int i = 0; i < 50; ++i) n->nrt_tensor_memset(t, 0, 9, 1 << 20);
      const std::int64_t now = n.time(0);
      n->nrt_tensor_write(t, &now, 0, sizeof now);
    }
    std::vector<nrt::SendRecvRequest*> requests(5);
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const Status posted = rank == 0 ? n->nrt_async_sendrecv_send_tensor(t, i * 1000, 1000, comm, &requests[i])
                                      : n->nrt_async_sendrecv_recv_tensor(t, i * 2000, 1500, comm, &requests[i]);
      if (posted != Status::success) return false;
    }
    for (nrt::SendRecvRequest* request : requests) {
      std::size_t size = 0;
      if (!wait_for([&](bool* done) { return n->nrt_async_sendrecv_test_request(request, done, &size); })) return false;
      bool done = false;
      if (size != 1000 || n->nrt_async_sendrecv_test_request(request, &done, &size) != Status::invalid_handle)
        return false;
    }
    char bytes[2] = "";
    n->nrt_tensor_read(t, bytes, 8999, 1);
    n->nrt_tensor_read(t, bytes + 1, 9000, 1);
    if (rank == 1 && (bytes[0] != 9 || bytes[1] != 0)) return false;
    std::int64_t sent = 0;
    n->nrt_tensor_read(t, &sent, 0, sizeof sent);
    if (rank == 1 && (sent < 10'000'000 || n.time(1) <= sent)) return false;  // it arrives after it was sent
    return n->nrt_async_sendrecv_flush(rank) == Status::success && n->nrt_async_sendrecv_close(rank) == Status::success;
  }));
}

// Messages through the interface of devices: on each kind of device, and with the time of a simulated one.
TEST(DeviceProcesses, SendMemoryToEachOther) {
  const int port = free_port();
  for (const char* const name : {"host", "sim:trn2.48xlarge", "neuron"})
    EXPECT_TRUE(in_processes(2, [&](int rank) {
      const bool host = std::string(name) == "host";  // one core each: told apart by their ports
      const auto own = std::to_string(port + (host ? 300 * rank : 0));
      setenv("TRELLIS_NRT_SENDRECV_PORT", own.c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
      use_standin();
      const auto d = open(name, {.core = host ? 0 : rank});
      const PeerCore other{host ? "127.0.0.1:" + std::to_string(port + 300 * (1 - rank)) : "127.0.0.1",
                           host ? 0 : 1 - rank};
      const auto channel = rank == 0 ? d->channels()->connect(other) : d->channels()->accept(other);
      auto* const data = static_cast<std::byte*>(d->allocate(1 << 20));
      if (rank == 0)
        for (int i = 0; i < 50; ++i) d->fill(data, std::byte{7}, 1 << 20);
      const auto soon = std::chrono::steady_clock::now() + std::chrono::seconds(120);
      while (!channel->connected())
        if (std::chrono::steady_clock::now() > soon) return false;
      const std::int64_t sent = clock_of(*d).time;
      if (rank == 0) d->copy(data, &sent, sizeof sent);
      const auto message = channel->post(data, 1 << 20);
      while (!message->done())
        if (std::chrono::steady_clock::now() > soon) return false;
      std::byte last{};
      std::int64_t told = 0;
      const std::int64_t now = clock_of(*d).time;
      d->copy(&last, data + (1 << 20) - 1, 1);
      d->copy(&told, data, sizeof told);
      d->release(data);
      const bool later = d->simulated_time() == nullptr || rank == 0 || now > told;
      return last == std::byte{7} && message->bytes() == 1 << 20 && later;
    })) << name;
}

TEST(NrtProcesses, AnEndThatNobodyMeetsTimesOutAndSpoilsTheClose) {
  const std::string port = std::to_string(free_port());
  EXPECT_TRUE(in_processes(1, [&](int) {
    setenv("TRELLIS_NRT_SENDRECV_PORT", port.c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
    use_standin();
    setenv("NEURON_RT_EXEC_TIMEOUT", "1", 1);  // NOLINT(concurrency-mt-unsafe)
    const nrt::NrtLibrary n(TRELLIS_STANDIN);
    n.nrt_init(nrt::Framework::none, "", "");
    n.nrt_async_sendrecv_init(3);
    nrt::SendRecvComm* comm = nullptr;
    n.nrt_async_sendrecv_connect("127.0.0.1", 60, 3, &comm);
    bool done = false;
    if (n.nrt_async_sendrecv_close(3) != Status::failure) return false;
    if (n.nrt_async_sendrecv_init(3) != Status::failure) return false;
    n.nrt_async_sendrecv_init(4);
    n.nrt_async_sendrecv_accept("127.0.0.1", 60, 4, &comm);
    Status last = Status::success;
    for (int i = 0; i < 6000 && last == Status::success; ++i) {
      last = n.nrt_async_sendrecv_test_comm(comm, &done);
      usleep(10'000);
    }
    n.nrt_close();
    return last == Status::timeout;
  }));
}

}  // namespace
}  // namespace trellis::device
