// Messages between cores of any processes.
#include <arpa/inet.h>

#include "device/libnrt/exports.h"
#include "device/messages/tcp_channel_factory.h"
#include "device/topology.h"

namespace trellis::device::nrt {
namespace {

// Cores are numbered as the machine numbers them, whatever is visible.
void expect_core(Runtime& r, int core) {
  const int cores = r.core(0)->topology().cores;
  if (core < 0 || core >= cores) refuse(Status::failure, "core {}: expected 0 to {}", core, cores - 1);
}

Status pair(std::string_view function, bool sends, const char* ip, int peer, int core, SendRecvComm** out) {
  return call(function, [&](Runtime& r) {
    expect_given(out, "the communicator's place");
    *out = nullptr;
    expect_given(ip, "the peer's address");
    in_addr parsed = {};
    if (inet_pton(AF_INET, ip, &parsed) != 1) refuse(Status::failure, "'{}': expected an address such as 10.0.1.2", ip);
    expect_core(r, core);
    if (peer < 0) refuse(Status::failure, "core {} of the peer: expected one from 0 on", peer);
    *out = r.comms.add<SendRecvComm*>(r.send_recv.pair(sends, {ip, peer}, core));
  });
}

MessagePayload parcel_of(const TensorObject::Place& part) {
  Device* const device = part.storage->device();
  return {.bytes = part.bytes,
          .read =
              [part](std::byte* to) {
                const SimulatedTimePause free(part.storage->device());
                copy_to_host(part, to);
              },
          .write =
              [part](const std::byte* from, std::size_t n) {
                const SimulatedTimePause free(part.storage->device());
                copy_from_host({part.storage, part.offset, n}, from);
              },
          .sent = device == nullptr ? RankClock{} : clock_of(*device)};
}

Status post(std::string_view function, bool sends, Tensor* tensor, std::size_t offset, std::size_t bytes,
            SendRecvComm* comm, SendRecvRequest** out) {
  return call(function, [&](Runtime& r) {
    expect_given(out, "the request's place");
    *out = nullptr;
    const auto object = r.comms.get(comm, Status::invalid_handle);
    const auto part = r.tensors.get(tensor, Status::invalid_handle)->part(offset, bytes);
    if (object->sends() != sends)
      refuse(Status::invalid_handle, "a communicator that {}", object->sends() ? "sends" : "receives");
    *out = r.requests.add<SendRecvRequest*>(std::make_shared<PostedMessage>(
        PostedMessage{object->core(), object->add(parcel_of(part)), sends ? nullptr : part.storage}));
  });
}

}  // namespace

Status nrt_async_sendrecv_get_max_num_communicators_per_lnc(int* out) {
  return guarded("nrt_async_sendrecv_get_max_num_communicators_per_lnc", [&] {
    expect_given(out, "the number's place");
    *out = most_ends;
  });
}

Status nrt_async_sendrecv_get_max_num_pending_request(int* out) {
  return guarded("nrt_async_sendrecv_get_max_num_pending_request", [&] {
    expect_given(out, "the number's place");
    *out = most_pending;
  });
}

Status nrt_async_sendrecv_init(int core) {
  return call("nrt_async_sendrecv_init", [&](Runtime& r) {
    expect_core(r, core);
    r.send_recv.open(core, r.world.timeout());
  });
}

// Its communicators and requests no longer exist afterwards, even if it is refused because some were under way.
Status nrt_async_sendrecv_close(int core) {
  return call("nrt_async_sendrecv_close", [&](Runtime& r) {
    r.send_recv.expect_open(core);
    const auto requests = r.requests.take_if([&](const PostedMessage& m) { return m.core == core; });
    const auto comms = r.comms.take_if([&](const MessageEndpoint& end) { return end.core() == core; });
    r.send_recv.close(core);
  });
}

Status nrt_async_sendrecv_connect(const char* ip, int peer, int core, SendRecvComm** out) {
  return pair("nrt_async_sendrecv_connect", true, ip, peer, core, out);
}

Status nrt_async_sendrecv_accept(const char* ip, int peer, int core, SendRecvComm** out) {
  return pair("nrt_async_sendrecv_accept", false, ip, peer, core, out);
}

Status nrt_async_sendrecv_test_comm(SendRecvComm* comm, bool* done) {
  return call("nrt_async_sendrecv_test_comm", [&](Runtime& r) {
    const auto object = r.comms.get(comm, Status::invalid_handle);
    expect_given(done, "the answer's place");
    *done = object->is_connected();
  });
}

Status nrt_async_sendrecv_send_tensor(Tensor* tensor, std::size_t offset, std::size_t bytes, SendRecvComm* comm,
                                      SendRecvRequest** out) {
  return post("nrt_async_sendrecv_send_tensor", true, tensor, offset, bytes, comm, out);
}

Status nrt_async_sendrecv_recv_tensor(Tensor* tensor, std::size_t offset, std::size_t bytes, SendRecvComm* comm,
                                      SendRecvRequest** out) {
  return post("nrt_async_sendrecv_recv_tensor", false, tensor, offset, bytes, comm, out);
}

// A completed request no longer exists afterwards.
Status nrt_async_sendrecv_test_request(SendRecvRequest* request, bool* done, std::size_t* size) {
  return call("nrt_async_sendrecv_test_request", [&](Runtime& r) {
    const auto transfer = r.requests.get(request, Status::invalid_handle);
    expect_given(done, "the answer's place");
    *done = true;
    try {
      *done = transfer->request->done();
    } catch (...) {
      r.requests.take(request, Status::invalid_handle);
      throw;
    }
    if (!*done) return;
    r.requests.take(request, Status::invalid_handle);
    const MessagePayload& p = transfer->request->parcel;
    if (size != nullptr) *size = p.bytes;
    if (transfer->into && transfer->into->device() != nullptr)
      spend_message(*transfer->into->device(), p.sent, p.bytes);
  });
}

// Only checks the core: received data are already in memory when their request is done.
Status nrt_async_sendrecv_flush(int core) {
  return call("nrt_async_sendrecv_flush", [&](Runtime& r) { r.send_recv.expect_open(core); });
}

}  // namespace trellis::device::nrt
