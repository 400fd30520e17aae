// The operation that a group runs at the moment.
#pragma once

#include <mutex>
#include <utility>

#include "trellis/torch/native/progress/work.h"

namespace trellis::process_group {

class CurrentOperation {
 public:
  using Operation = c10::intrusive_ptr<TorchWork>;

  // Makes the operation the current one while this object lives.
  class Now {
   public:
    Now(CurrentOperation& p, Operation o) : performing_(p) { performing_.set(std::move(o)); }
    ~Now() { performing_.set({}); }
    Now(const Now&) = delete;
    Now& operator=(const Now&) = delete;

   private:
    CurrentOperation& performing_;
  };

  bool given_up() const {  // it still runs, but its caller already got an error
    const std::lock_guard lock(mutex_);
    return operation_ && operation_->isCompleted();
  }

 private:
  void set(Operation o) {
    const std::lock_guard lock(mutex_);
    operation_.swap(o);
  }

  mutable std::mutex mutex_;
  Operation operation_;  // null: none
};

}  // namespace trellis::process_group
