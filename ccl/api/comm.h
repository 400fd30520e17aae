// A communicator as the C API has it: it may still be in the making, in a thread of its own.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "ccl/api/registrations.h"
#include "ccl/communicator.h"

namespace trellis::ccl::api {

class Comm {
 public:
  explicit Comm(bool nonblocking) : nonblocking_(nonblocking) {}
  ~Comm();  // waits for what is in the making
  Comm(const Comm&) = delete;
  Comm& operator=(const Comm&) = delete;

  // For one call. Throws Usage when it is in progress or finalized, else what its making failed with.
  Communicator& ready() const;
  Communicator& made() const;  // the same, also when it has failed since or was finalized

  bool nonblocking() const { return nonblocking_; }
  bool busy() const { return busy_; }
  std::shared_ptr<const std::atomic<bool>> given_up() const { return given_up_; }
  bool has_communicator() const;
  std::exception_ptr error() const;  // of its making, or what ended it

  Registrations& registrations() { return registrations_; }

  void give_up();  // ends the making, or what runs on it

  void await();  // until it is not in progress: bounded by the deadlines of what is

  // The stages of a job: taken at the call, done in this thread or beside it, ended by what came out.
  void take();
  void do_beside(std::function<void()> job);
  void end(std::exception_ptr);
  void set(std::unique_ptr<Communicator>);
  void set_finalized() { finalized_ = true; }
  Communicator& inside_job() const { return *communicator_; }

 private:
  const bool nonblocking_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<bool> busy_ = false, finalized_ = false;
  const std::shared_ptr<std::atomic<bool>> given_up_ = std::make_shared<std::atomic<bool>>(false);
  std::exception_ptr failed_;
  std::unique_ptr<Communicator> communicator_;
  Registrations registrations_;  // which go before it
  std::thread thread_;
};

// A call that makes, divides or finalizes.
struct Job {
  std::shared_ptr<Comm> owner = nullptr;   // what comes of it, or what it is done to; null: nothing comes of it
  std::shared_ptr<Comm> parent = nullptr;  // may be null, when there is an owner
  std::function<void()> work = {};
  bool background = false;
};

}  // namespace trellis::ccl::api
