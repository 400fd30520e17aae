// How an operation is issued: at once in the caller where it waits anyway, else on the group's thread.
#pragma once

#include "ccl/interruption.h"
#include "trellis/torch/native/backend.h"
#include "trellis/torch/native/progress/python_signals.h"

namespace trellis::process_group {

// Describes a call of torch, except for its results.
struct TrellisBackend::Issue {
  c10d::OpType type;
  const char* title;
  std::chrono::milliseconds timeout = c10d::kUnsetTimeout;
  bool async = true;
  RecordedCommunication witnessed = {};
  const Tensors* inputs = nullptr;  // null: the results
  bool message = false;
};

// Several operations that end as one.
class CoalescedWork : public c10d::Work {
 public:
  explicit CoalescedWork(std::vector<c10::intrusive_ptr<c10d::Work>> parts)
      : Work(-1, c10d::OpType::COALESCED), parts_(std::move(parts)) {}
  bool wait(std::chrono::milliseconds timeout) override {
    for (const auto& part : parts_) part->wait(timeout);
    return true;
  }
  bool isCompleted() override {
    return std::ranges::all_of(parts_, [](const auto& part) { return part->isCompleted(); });
  }
  bool isSuccess() const override {
    return std::ranges::all_of(parts_, [](const auto& part) { return part->isSuccess(); });
  }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override {
    c10::List<c10::intrusive_ptr<c10::ivalue::Future>> futures(
        c10::FutureType::create(c10::ListType::create(c10::TensorType::get())));
    for (const auto& part : parts_) futures.push_back(part->getFuture());
    return c10::collectAll(futures);
  }

 private:
  std::vector<c10::intrusive_ptr<c10d::Work>> parts_;
};

template <class Run>
bool TrellisBackend::now(Run& run) {
  const ccl::Interruption by_signals(&interrupted);
  return collectives_->now(run);
}

template <class Run>
TrellisBackend::Work TrellisBackend::issue(const Issue& issue, Tensors results, Run run) {
  if (estimate_.on()) return estimated(issue);
  Pending work = operation(issue, std::move(results));
  auto go = [this, work, run = std::move(run)]() mutable {
    work->perform([&] {
      const CurrentOperation::Now now(performing_, work);
      if (!comm_) throw ccl::Aborted("the process group has been shut down");
      if constexpr (requires { run(*comm_, *work); })
        run(*comm_, *work);
      else
        run(*comm_);
    });
  };
  if (issue.async || own_patience(issue) || !now(go)) collectives_->later(std::move(go));
  work->goes_on();
  if (coalescing_) coalesced_.push_back(work);
  return work;
}

}  // namespace trellis::process_group
