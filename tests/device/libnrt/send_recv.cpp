// What closing a core does to its communicators and to their peers.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "tests/device/standin.h"

namespace trellis::device {
namespace {

using namespace std::chrono_literals;
using nrt::Status;

class NrtSendRecv : public testing::Test {
 protected:
  NrtSendRecv() { listen_at_free_ports(); }

  using Comm = nrt::SendRecvComm*;
  using Request = nrt::SendRecvRequest*;

  void open(int core) { EXPECT_EQ(n_->nrt_async_sendrecv_init(core), Status::success) << n_.why(); }
  void wait_for(Comm comm) {
    for (bool done = false; !done; std::this_thread::yield())
      ASSERT_EQ(n_->nrt_async_sendrecv_test_comm(comm, &done), Status::success) << n_.why();
  }
  Comm connect(int core, int peer) {
    Comm comm = nullptr;
    EXPECT_EQ(n_->nrt_async_sendrecv_connect("127.0.0.1", peer, core, &comm), Status::success) << n_.why();
    return comm;
  }
  Comm accept(int core, int peer) {
    Comm comm = nullptr;
    EXPECT_EQ(n_->nrt_async_sendrecv_accept("127.0.0.1", peer, core, &comm), Status::success) << n_.why();
    return comm;
  }
  Request send(nrt::Tensor* t, Comm comm) {
    Request request = nullptr;
    EXPECT_EQ(n_->nrt_async_sendrecv_send_tensor(t, 0, 4, comm, &request), Status::success) << n_.why();
    return request;
  }
  Request receive(nrt::Tensor* t, Comm comm) {
    Request request = nullptr;
    EXPECT_EQ(n_->nrt_async_sendrecv_recv_tensor(t, 0, 4, comm, &request), Status::success) << n_.why();
    return request;
  }
  // Waits until the request is done, and returns success; or the error with which it ends.
  Status end_of(Request request) {
    Status status = Status::success;
    std::size_t size = 0;
    for (bool done = false; !done && status == Status::success; std::this_thread::yield())
      status = n_->nrt_async_sendrecv_test_request(request, &done, &size);
    return status;
  }

  const Standin n_;
};

std::ptrdiff_t descriptors() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
}

TEST_F(NrtSendRecv, ACoreThatIsClosedKeepsNothing) {
  std::ptrdiff_t before = 0;
  for (int round = 0; round < 5; ++round) {
    open(0), open(1);
    const Comm to = connect(0, 1), from = accept(1, 0);
    wait_for(to), wait_for(from);
    EXPECT_EQ(n_->nrt_async_sendrecv_close(0), Status::success) << n_.why();
    EXPECT_EQ(n_->nrt_async_sendrecv_close(1), Status::success) << n_.why();
    bool done = false;
    for (const Comm closed : {to, from})
      EXPECT_EQ(n_->nrt_async_sendrecv_test_comm(closed, &done), Status::invalid_handle);
    if (round == 0) before = descriptors();
  }
  EXPECT_EQ(descriptors(), before);
}

TEST_F(NrtSendRecv, AClosedCoresRequestsAreGoneAndItsPeerIsTold) {
  open(0), open(1), open(2);
  const Comm to = connect(0, 1), from = accept(1, 0), other = connect(0, 2);
  wait_for(to), wait_for(from), wait_for(other);
  const Request received = receive(n_.tensor(1, 4), from);
  EXPECT_EQ(n_->nrt_async_sendrecv_close(1), Status::failure) << "a request is in flight";
  bool done = false;
  std::size_t size = 0;
  EXPECT_EQ(n_->nrt_async_sendrecv_test_request(received, &done, &size), Status::invalid_handle);
  EXPECT_EQ(n_->nrt_async_sendrecv_test_comm(from, &done), Status::invalid_handle);
  EXPECT_EQ(n_->nrt_async_sendrecv_test_comm(other, &done), Status::success) << "of a core that is open";
  const Comm awaited = accept(2, 0);
  wait_for(awaited);
  const Request waits = receive(n_.tensor(2, 4), awaited);
  EXPECT_EQ(n_->nrt_async_sendrecv_close(0), Status::success) << n_.why();
  EXPECT_EQ(end_of(waits), Status::network_proxy) << n_.why();
}

// A peer that has not accepted yet is not given the connection of a communicator that is gone.
TEST_F(NrtSendRecv, WhoIsOpenedAgainIsMetAsItIsNow) {
  open(0), open(1);
  wait_for(connect(0, 1));
  EXPECT_EQ(n_->nrt_async_sendrecv_close(0), Status::success) << n_.why();
  open(0);
  const Comm to = connect(0, 1);
  wait_for(to);
  const Comm from = accept(1, 0);
  wait_for(from);
  nrt::Tensor *const there = n_.tensor(1, 4), *const here = n_.tensor(0, 4);
  n_->nrt_tensor_memset(here, 0, 7, 4);
  const Request sent = send(here, to), received = receive(there, from);
  EXPECT_EQ(end_of(sent), Status::success) << n_.why();
  EXPECT_EQ(end_of(received), Status::success) << n_.why();
  char byte = 0;
  n_->nrt_tensor_read(there, &byte, 3, 1);
  EXPECT_EQ(byte, 7);
}

}  // namespace
}  // namespace trellis::device
