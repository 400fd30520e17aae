#include "device/libnrt/send_recv.h"

#include <algorithm>
#include <cstdlib>

namespace trellis::device::nrt {
namespace {

constexpr int usual_first_port = 46'920;

struct Hello {
  std::uint32_t magic = 0x4E525348;
  std::int32_t from = 0, to = 0;
};

int first_port() {
  const char* const value = std::getenv("TRELLIS_NRT_SENDRECV_PORT");  // NOLINT(concurrency-mt-unsafe)
  if (value == nullptr) return usual_first_port;
  const int port = std::atoi(value);
  if (port < 1024 || port > 65'000)
    refuse(Status::invalid, "TRELLIS_NRT_SENDRECV_PORT={}: expected a port from 1024 to 65000", value);
  return port;
}

struct Head {
  std::uint64_t bytes = 0;
  RankClock sent;
};

// The message arrives no earlier than it was sent, and takes the machine's time between the two cores. Cores of one
// number are on two hosts, which is no route of one machine.
void take_time(Device& device, const Head& head) {
  try {
    device.spend({.collective = "send_recv",
                  .rank = 1,
                  .ranks = 2,
                  .bytes = head.bytes,
                  .element = 1,
                  .root = 0,
                  .peer = 1,
                  .clocks = {head.sent, device.clock()}});
  } catch (const std::exception& e) {
    warn("nrt_async_sendrecv_recv_tensor", e.what());
  }
}

}  // namespace

void RequestObject::finish(Status s, std::size_t moved) {
  const std::lock_guard lock(mutex);
  if (done) return;
  done = true, status = s, bytes = moved;
}

CommObject::CommObject(bool sends, Address address, int peer, int core, std::chrono::milliseconds timeout)
    : sends_(sends), address_(std::move(address)), peer_(peer), core_(core), timeout_(timeout), thread_([this] {
        work();
      }) {}

CommObject::~CommObject() {
  stop();
  thread_.join();
}

void CommObject::stop() {
  ending_ = true;
  const std::lock_guard lock(mutex_);
  changed_.notify_all();
}

bool CommObject::is_connected() {
  const std::lock_guard lock(mutex_);
  if (broken_) throw *broken_;
  return connected_;
}

bool CommObject::is_busy() {
  const std::lock_guard lock(mutex_);
  return !waiting_.empty();
}

std::shared_ptr<RequestObject> CommObject::add(TensorObject::Place place) {
  const std::lock_guard lock(mutex_);
  if (broken_) throw *broken_;
  if (!connected_) refuse(Status::failure, "it is not connected yet; ask nrt_async_sendrecv_test_comm first");
  if (waiting_.size() >= most_pending)
    refuse(Status::resource, "{} requests are pending; that is the most", most_pending);
  auto request = std::make_shared<RequestObject>();
  request->place = std::move(place);
  waiting_.push_back(request);
  changed_.notify_all();
  return request;
}

void CommObject::give(Socket s) {
  const std::lock_guard lock(mutex_);
  socket_ = std::move(s);
  connected_ = true;
  changed_.notify_all();
}

void CommObject::work() {
  const auto go_on = [this] { return !ending_.load(); };
  try {
    const Deadline deadline = std::chrono::steady_clock::now() + timeout_;
    if (sends_) {
      Socket s = Socket::connect(address_, deadline, go_on);
      s.send(bytes_of(Hello{.from = core_, .to = peer_}), deadline, go_on);
      give(std::move(s));
    }
    std::unique_lock lock(mutex_);
    if (!changed_.wait_until(lock, deadline, [&] { return connected_ || ending_; }))
      refuse(Status::timeout, "core {} of {} has not connected", peer_, address_.host);
    for (;;) {
      changed_.wait(lock, [&] { return ending_ || !waiting_.empty(); });
      if (ending_) break;
      const auto request = waiting_.front();
      lock.unlock();
      move(*request);
      lock.lock();
      waiting_.pop_front();
    }
    broken_ = Refusal(Status::closed, "it was closed");
  } catch (const Refusal& e) {
    const std::lock_guard lock(mutex_);
    broken_ = e;
  }
  const std::lock_guard lock(mutex_);
  for (const auto& request : waiting_) request->finish(broken_->status, 0);
  waiting_.clear();
}

// A message is its size, when and where it was sent, and its bytes. One that is larger than the request is an error of
// the request.
void CommObject::move(RequestObject& request) {
  const auto go_on = [this] { return !ending_.load(); };
  const Deadline deadline = std::chrono::steady_clock::now() + timeout_;
  Device* const device = request.place.storage->device();
  Head head;
  std::vector<std::byte> buffer;
  if (sends_) {
    buffer.resize(request.place.bytes);
    copy_to_host(request.place, buffer.data());
    head = {buffer.size(), device == nullptr ? RankClock{} : device->clock()};
    socket_.send(bytes_of(head), deadline, go_on);
    socket_.send(buffer, deadline, go_on);
    return request.finish(Status::success, buffer.size());
  }
  socket_.receive(std::as_writable_bytes(std::span(&head, 1)), deadline, go_on);
  if (head.bytes > request.place.bytes)
    refuse(Status::failure, "a message of {} bytes; {} were asked for", head.bytes, request.place.bytes);
  buffer.resize(head.bytes);
  socket_.receive(buffer, deadline, go_on);
  request.place.bytes = head.bytes;
  if (device != nullptr) take_time(*device, head);
  copy_from_host(request.place, buffer.data());
  request.finish(Status::success, head.bytes);
}

SendRecv::SendRecv() : first_port_(first_port()) {}

void SendRecv::open(int core) {
  const std::lock_guard lock(mutex_);
  const auto found = cores_.find(core);
  const Core* const kept = found == cores_.end() ? nullptr : found->second.get();
  if (kept && kept->failed) refuse(Status::failure, "core {}: its last nrt_async_sendrecv_close failed", core);
  if (kept && kept->open) refuse(Status::failure, "core {} is initialised already", core);
  auto fresh = std::make_unique<Core>();
  fresh->listening = Socket::listen({"0.0.0.0", static_cast<std::uint16_t>(first_port_ + core)});
  fresh->open = true;
  Core& c = *fresh;
  fresh->thread = std::thread([this, &c] { listen(c); });
  cores_[core] = std::move(fresh);
}

void SendRecv::listen(Core& c) {
  while (!c.ending) {
    try {
      const auto soon = std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
      Socket s = c.listening.accept(soon);
      if (!s) continue;
      Hello hello;
      s.receive(std::as_writable_bytes(std::span(&hello, 1)),
                std::chrono::steady_clock::now() + std::chrono::seconds(2), [&c] { return !c.ending.load(); });
      if (hello.magic != Hello().magic) continue;
      std::string from = s.peer();
      const std::lock_guard lock(mutex_);
      c.come.emplace_back(hello.from, std::move(from), std::move(s));
      match(c);
    } catch (const Refusal&) {  // somebody else knocked, or left at once
    }
  }
}

void SendRecv::match(Core& c) {
  for (auto at = c.come.begin(); at != c.come.end();) {
    const auto comm = std::ranges::find_if(c.comms, [&](const auto& one) {
      if (one->sends() || one->peer() != std::get<0>(*at) || one->peer_address() != std::get<1>(*at)) return false;
      try {
        return !one->is_connected();
      } catch (const Refusal&) {
        return false;
      }
    });
    if (comm == c.comms.end()) {
      ++at;
      continue;
    }
    (*comm)->give(std::move(std::get<2>(*at)));
    at = c.come.erase(at);
  }
}

void SendRecv::expect_open(int core) {
  const std::lock_guard lock(mutex_);
  const auto found = cores_.find(core);
  if (found == cores_.end() || !found->second->open)
    refuse(Status::failure, "core {}: nrt_async_sendrecv_init was not called", core);
}

std::shared_ptr<CommObject> SendRecv::pair(bool sends, const std::string& ip, int peer, int core,
                                           std::chrono::milliseconds timeout) {
  if (peer < 0 || peer > 65'000 - first_port_)
    refuse(Status::failure, "core {} of the peer: expected one from 0 on", peer);
  expect_open(core);
  const std::lock_guard lock(mutex_);
  Core& c = *cores_.at(core);
  if (c.comms.size() >= most_communicators)
    refuse(Status::resource, "core {} has {} communicators; that is the most", core, most_communicators);
  auto comm = std::make_shared<CommObject>(sends, Address{ip, static_cast<std::uint16_t>(first_port_ + peer)}, peer,
                                           core, timeout);
  c.comms.push_back(comm);
  if (!sends) match(c);
  return comm;
}

void SendRecv::close(int core) {
  expect_open(core);
  std::unique_ptr<Core> ended;
  std::string unfinished;
  {
    const std::lock_guard lock(mutex_);
    auto& kept = cores_.at(core);
    for (const auto& comm : kept->comms) {
      bool connected = false;
      try {
        connected = comm->is_connected();
      } catch (const Refusal&) {  // broken: nothing is in flight any more
        continue;
      }
      if (!connected) unfinished = "a communicator is not connected yet";
      if (comm->is_busy()) unfinished = "requests are in flight";
    }
    ended = std::move(kept);
    kept = std::make_unique<Core>();
    kept->failed = !unfinished.empty();
  }
  ended->ending = true;
  ended->thread.join();
  for (const auto& comm : ended->comms) comm->stop();
  if (!unfinished.empty()) refuse(Status::failure, "core {}: {}", core, unfinished);
}

void SendRecv::close_all() {
  std::map<int, std::unique_ptr<Core>> all;
  {
    const std::lock_guard lock(mutex_);
    all.swap(cores_);
  }
  for (auto& [number, core] : all) {
    core->ending = true;
    if (core->thread.joinable()) core->thread.join();
    for (const auto& comm : core->comms) comm->stop();
  }
}

}  // namespace trellis::device::nrt
