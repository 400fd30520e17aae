// A communicator of the C API, which a thread of its own may still be creating.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "ccl/api/handles/registered_buffers.h"
#include "ccl/communicator.h"

namespace trellis::ccl::api {

class Comm {
 public:
  explicit Comm(bool nonblocking) : nonblocking_(nonblocking) {}
  ~Comm();  // as close(), but ignores a failure

  // The communicator, for one call. Throws UsageError if a job is in progress or after finalize; if the creation
  // failed, its error.
  Communicator& ready() const;
  Communicator& made() const;  // the same, but also when it has failed since, or was finalized

  bool nonblocking() const { return nonblocking_; }
  bool known_early() const { return nonblocking_ || grouped_; }  // a thread may have the handle before it is created
  bool busy() const { return stage_ != Stage::none; }
  bool recorded() const { return stage_ == Stage::recorded; }
  std::shared_ptr<const std::atomic<bool>> given_up() const { return given_up_; }
  bool has_communicator() const;
  bool stopping() const;             // aborted, and an operation has not ended yet
  std::exception_ptr error() const;  // of its creation, or what ended it

  RegisteredBuffers& registrations() { return registrations_; }

  // Cancels the job in progress, or aborts running operations. Waits for neither.
  void give_up();

  // Waits for the running job and for the operations in progress, but not for a job that a group has only recorded.
  // Throws what finalize() finds, unless the communicator had failed before.
  void close();

  // Stages of a job: none in progress; recorded by a group, which starts it at its end; running, in this or another
  // thread.
  enum class Stage : std::uint8_t { none, recorded, running };
  void take(Stage);
  void start();                                  // the recorded job
  bool cancelled() const { return cancelled_; }  // by an abort since the job was accepted
  void do_beside(std::function<void()> job);
  void end(std::exception_ptr);
  void set(std::unique_ptr<Communicator>);
  void set_finalized() { finalized_ = true; }
  Communicator& inside_job() const { return *communicator_; }

 private:
  void join_thread();

  const bool nonblocking_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<Stage> stage_ = Stage::none;
  std::atomic<bool> finalized_ = false, cancelled_ = false, grouped_ = false;
  const std::shared_ptr<std::atomic<bool>> given_up_ = std::make_shared<std::atomic<bool>>(false);
  bool closed_ = false;
  std::exception_ptr failed_;
  std::unique_ptr<Communicator> communicator_;
  RegisteredBuffers registrations_;  // destroyed before the communicator
  std::thread thread_;
};

// A call that creates, divides or finalizes a communicator.
struct CommunicatorJob {
  std::shared_ptr<Comm> owner = nullptr;   // the communicator that it creates or works on; null: it creates none
  std::shared_ptr<Comm> parent = nullptr;  // may be null if there is an owner
  std::function<void()> work = {};
  bool background = false;
};

}  // namespace trellis::ccl::api
