// Messages between cores of any processes, over TCP: a pair of communicators, and requests that are done in order.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <tuple>
#include <vector>

#include "device/libnrt/socket.h"
#include "device/libnrt/tensor.h"

namespace trellis::device::nrt {

inline constexpr int most_communicators = 64, most_pending = 128;

struct RequestObject {
  TensorObject::Place place;
  std::mutex mutex;
  bool done = false;
  Status status = Status::success;
  std::size_t bytes = 0;  // that were moved
  void finish(Status, std::size_t moved);
};

// One end of a pair. Its thread connects, and then moves messages.
class CommObject {
 public:
  CommObject(bool sends, Address, int peer, int core, std::chrono::milliseconds timeout);
  ~CommObject();
  CommObject(const CommObject&) = delete;
  CommObject& operator=(const CommObject&) = delete;

  int core() const { return core_; }
  int peer() const { return peer_; }
  const std::string& peer_address() const { return address_.host; }
  bool sends() const { return sends_; }
  bool is_connected();  // throws Refusal: it cannot be any more
  bool is_busy();
  std::shared_ptr<RequestObject> add(TensorObject::Place);
  void give(Socket);  // a peer that has come: of a receiving end
  void stop();

 private:
  void work();
  void move(RequestObject&);

  const bool sends_;
  const Address address_;
  const int peer_, core_;
  const std::chrono::milliseconds timeout_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Socket socket_;
  bool connected_ = false;
  std::atomic<bool> ending_ = false;
  std::optional<Refusal> broken_;
  std::deque<std::shared_ptr<RequestObject>> waiting_;
  std::thread thread_;
};

// What a core has open.
class SendRecv {
 public:
  SendRecv();
  ~SendRecv() { close_all(); }
  void open(int core);
  void close(int core);  // refuses while something is not connected or not done
  void close_all();
  std::shared_ptr<CommObject> pair(bool sends, const std::string& ip, int peer, int core,
                                   std::chrono::milliseconds timeout);
  void expect_open(int core);

 private:
  struct Core {
    Socket listening;
    std::vector<std::shared_ptr<CommObject>> comms;
    std::vector<std::tuple<int, std::string, Socket>> come;  // peers that nobody has accepted yet
    bool open = false, failed = false;
    std::atomic<bool> ending = false;
    std::thread thread;
  };
  void listen(Core&);
  static void match(Core&);

  const int first_port_;
  std::mutex mutex_;
  std::map<int, std::unique_ptr<Core>> cores_;
};

}  // namespace trellis::device::nrt
