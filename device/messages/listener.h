// Listens for the job's processes. Who has not proven that it knows the secret costs little: few such connections are
// kept at a time, for a short time, and one does not wait for another.
#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "device/messages/greeting.h"
#include "device/messages/socket.h"

namespace trellis::device {

std::string secret_of_job();  // TRELLIS_SECRET; empty: none was given, which serves on one host alone

// Throws system_error for a peer on another host where there is no secret by which it could prove itself.
void expect_secret_for(const std::string& host, std::string_view secret);

// A connection to a listener, at whose ends both have proven that they are of the job. Tries again until the deadline
// while nobody listens there, and for a second while somebody else does. Throws system_error.
Socket call(const CallHello&, const Address& listener, Deadline, const std::function<bool()>& go_on);

class CallListener {
 public:
  struct Call {
    CallHello hello;
    std::string from;  // the caller's address
    Socket socket;
  };
  struct Answering {
    CallKind kind = CallKind::messages;
    int to = 0;
    std::function<void(Call)> arrived = {};   // a proven caller; called by the listener's thread, as is the next
    std::function<void()> meanwhile = [] {};  // now and then
  };
  CallListener(const Address&, Answering);  // throws system_error
  ~CallListener();
  CallListener(const CallListener&) = delete;
  CallListener& operator=(const CallListener&) = delete;

  void listen_at(const Address&);  // there too

 private:
  struct Unproven {
    Socket socket;
    Welcome greeting;
    Deadline until;
  };
  void work();
  void turn();
  void accept(Socket& listening);
  bool hear(Unproven&);  // false: it is not unproven any more
  void make_room();

  const Answering answering_;
  const std::string secret_ = secret_of_job();
  std::mutex mutex_;
  std::list<Socket> listening_;   // guarded by the mutex; grows only
  std::list<Unproven> unproven_;  // the oldest first
  std::atomic<bool> ending_ = false;
  std::thread thread_;  // last: it uses all members above
};

}  // namespace trellis::device
