// Memory of a device for as long as an operation takes. A little is a communicator's own; more is lent by the device's
// rooms, so that many communicators of one process need no more of it than run at once.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "device/device.h"

namespace trellis::ccl {

// Memory that grows as it must.
class Room {
 public:
  explicit Room(device::Device& device) : device_(device) {}
  ~Room() { device_.release(data_); }
  Room(const Room&) = delete;
  Room& operator=(const Room&) = delete;
  void* of(std::size_t bytes);
  std::size_t bytes() const { return bytes_; }

 private:
  device::Device& device_;
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

// What all communicators on a device have in common. Goes with the last of them.
class Rooms {
 public:
  static std::shared_ptr<Rooms> of(device::Device&);
  explicit Rooms(device::Device& device) : device_(device) {}
  std::unique_ptr<Room> take(std::size_t bytes);  // the smallest that is large enough, or else the largest
  void give(std::unique_ptr<Room>);

 private:
  device::Device& device_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Room>> free_;  // by size; of the same size the last that was given back first
};

// One operation's at a time. What a failed one had stays its until the communicator goes.
class Lent {
 public:
  Lent(device::Device& device, std::shared_ptr<Rooms> rooms) : own_(device), rooms_(std::move(rooms)) {}
  void* of(std::size_t bytes);
  void end() {  // of the operation
    if (lent_) rooms_->give(std::move(lent_));
  }
  std::size_t bytes() const { return own_.bytes() + most_; }  // of its own, and what it borrowed at most

 private:
  Room own_;
  std::shared_ptr<Rooms> rooms_;
  std::unique_ptr<Room> lent_;
  std::size_t most_ = 0;  // that was lent
};

}  // namespace trellis::ccl
