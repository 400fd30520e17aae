// LocalRendezvous: meetings of groups. A meeting is an all_gather: each member brings bytes and gets those of all
// members. Members are threads of this process, or of others that reach it by TCP.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "net/socket.h"

namespace trellis::device::nrt {

using Bytes = std::vector<std::byte>;

// What one member brings to one meeting. Members of a meeting have equal keys, counts and signatures.
struct Contribution {
  std::string key;        // of the group, and the kind of meeting
  std::string signature;  // what must be alike: "all_reduce f32 add 4096"
  std::uint32_t member = 0, members = 1;
  Bytes bytes;
};

class LocalRendezvous {
 public:
  // Returns each member's bytes, in the members' order. A member who comes again begins the next meeting with this key.
  // Refuses different signatures; at the deadline it names who is missing.
  std::vector<Bytes> meet(const Contribution&, net::Deadline);
  void stop();  // meetings for which somebody is missing end, and none begins any more

 private:
  struct Meeting;
  std::shared_ptr<Meeting> meeting_for(const Contribution&);

  std::mutex mutex_;
  std::map<std::string, std::vector<std::shared_ptr<Meeting>>> meetings_;  // by key, the earliest first
  bool stopped_ = false;
};

// Meetings in this process's LocalRendezvous or, with NEURON_RT_ROOT_COMM_ID=ADDRESS:PORT, in device 0's process.
class RootRendezvous {
 public:
  RootRendezvous();
  ~RootRendezvous();

  // Device 0's process serves the others; call it before the first meeting.
  void join(std::uint32_t id, std::uint32_t devices);
  std::vector<Bytes> meet(const Contribution&);
  void stop();  // who waits for others is told that the runtime was closed
  std::chrono::milliseconds timeout() const { return timeout_; }

 private:
  class Server;
  const std::string root_;  // empty: all members are threads of this process
  const std::chrono::milliseconds timeout_;
  LocalRendezvous hub_;
  std::atomic<bool> stopped_ = false;
  std::mutex mutex_;
  std::unique_ptr<Server> server_;
};

}  // namespace trellis::device::nrt
