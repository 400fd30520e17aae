// The process group backend "trellis" of torch.distributed: torch's operations as calls of a Communicator.
#pragma once

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include "trellis/torch/native/point_to_point.h"
#include "trellis/torch/native/progress/current_operation.h"
#include "trellis/torch/native/progress/deadline_watchdog.h"
#include "trellis/torch/native/records/communication_recorder.h"
#include "trellis/torch/native/tensors/types.h"
#include "trellis/torch/native/time_estimator.h"

namespace trellis::process_group {

class TrellisBackend : public c10d::Backend {
 public:
  using Work = c10::intrusive_ptr<c10d::Work>;
  using Tensors = std::vector<at::Tensor>;
  using Lists = std::vector<std::vector<at::Tensor>>;

  // Returns when all ranks of the group have called it.
  TrellisBackend(c10::intrusive_ptr<c10d::Store>, int rank, int size, c10::intrusive_ptr<Options>);
  ~TrellisBackend() override;

  const std::string getBackendName() const override { return "trellis"; }
  c10::intrusive_ptr<Options> getBackendOptions() override;  // a copy: torch changes it when it splits a group
  bool supportsCoalescing() const override { return true; }
  bool supportsSplitting() const override { return true; }
  bool supportsShrinking() const override { return true; }
  bool supportsTimeEstimation() const override { return TimeEstimator::machine() != nullptr; }
  void begin_estimate() { estimate_.begin(); }  // until its end, operations are estimated and not done
  float end_estimate() { return estimate_.end(); }
  bool supportsTensorAlloc(c10::DeviceIndex) override { return true; }
  at::Tensor allocateTensor(long size, at::TensorOptions) override;
  std::shared_ptr<c10::Allocator> getMemAllocator() override;
  std::unordered_map<std::string, std::uint64_t> getMemoryStats() override;
  void setTimeout(std::chrono::milliseconds) override;
  void setSequenceNumberForGroup() override {}
  std::uint64_t getSequenceNumberForGroup() override { return number_; }
  c10d::ErrorType getError() override;
  void abort() override;
  void shutdown() override;
  c10::intrusive_ptr<Backend> split(const c10::intrusive_ptr<c10d::Store>&, const std::vector<int>& ranks,
                                    const c10::intrusive_ptr<Options>&) override;
  c10::intrusive_ptr<Backend> shrink(const std::vector<std::int64_t>& excluded, int flags,
                                     const c10::intrusive_ptr<Options>&) override;

  Work broadcast(Tensors&, const c10d::BroadcastOptions&) override;
  Work allreduce(Tensors&, const c10d::AllreduceOptions&) override;
  Work allreduce_sparse(Tensors&, const c10d::AllreduceOptions&) override;
  Work allreduce_coalesced(Tensors&, const c10d::AllreduceCoalescedOptions&) override;
  Work reduce(Tensors&, const c10d::ReduceOptions&) override;
  Work allgather(Lists&, Tensors&, const c10d::AllgatherOptions&) override;
  Work _allgather_base(at::Tensor&, at::Tensor&, const c10d::AllgatherOptions&) override;
  Work allgather_coalesced(Lists&, Tensors&, const c10d::AllgatherOptions&) override;
  Work allgather_into_tensor_coalesced(Tensors&, Tensors&, const c10d::AllgatherOptions&) override;
  Work gather(Lists&, Tensors&, const c10d::GatherOptions&) override;
  Work scatter(Tensors&, Lists&, const c10d::ScatterOptions&) override;
  Work reduce_scatter(Tensors&, Lists&, const c10d::ReduceScatterOptions&) override;
  Work _reduce_scatter_base(at::Tensor&, at::Tensor&, const c10d::ReduceScatterOptions&) override;
  Work reduce_scatter_tensor_coalesced(Tensors&, Tensors&, const c10d::ReduceScatterOptions&) override;
  Work alltoall_base(at::Tensor&, at::Tensor&, std::vector<std::int64_t>& output_splits,
                     std::vector<std::int64_t>& input_splits, const c10d::AllToAllOptions&) override;
  Work alltoall(Tensors&, Tensors&, const c10d::AllToAllOptions&) override;
  Work send(Tensors&, int to, int tag) override;
  Work recv(Tensors&, int from, int tag) override;
  Work recvAnysource(Tensors&, int tag) override;
  Work barrier(const c10d::BarrierOptions&) override;
  void monitoredBarrier(const c10d::BarrierOptions&, bool wait_all_ranks) override;
  void startCoalescing() override;
  Work endCoalescing() override;

  std::string dump();  // the flight recorder's last operations, as JSON
  const Membership& group() const { return *group_; }

 private:
  struct Issue;  // see issue_operation.h
  struct Joined;
  static Joined join(c10::intrusive_ptr<c10d::Store>, int rank, int size, const Options&);
  TrellisBackend(Joined, c10::intrusive_ptr<Options>);
  void close();
  std::chrono::milliseconds patience(const Issue&) const;
  bool own_patience(const Issue&) const;                    // the operation's timeout differs from the communicator's
  Work estimated(const Issue&);                             // returns a Work that has ended
  std::shared_ptr<ccl::Communicator> communicator() const;  // null: the group has been shut down
  c10::intrusive_ptr<Options> options_of(const c10::intrusive_ptr<Options>& wished,
                                         const std::vector<int>& ranks) const;
  Pending operation(const Issue&, Tensors results);
  template <class Run>
  bool now(Run&);  // runs it in the calling thread; false: earlier operations have not ended
  template <class Run>
  Work issue(const Issue&, Tensors results, Run);  // collectives run in the order in which they are issued
  Work message(Issue, const at::Tensor&, int peer, int tag, bool sends);
  void check_peer(const char* what, int rank) const;

  void sum(const at::Tensor& in_and_out, const c10d::ReduceOp&);
  void sum_and_scatter(const at::Tensor& out, const at::Tensor& in, const c10d::ReduceOp&);
  void gather_all(const at::Tensor& out, const at::Tensor& in);
  at::Tensor exchanged_and_folded(const at::Tensor& blocks, const c10d::ReduceOp&);

  const c10::intrusive_ptr<c10d::Store> store_;
  const c10::intrusive_ptr<Options> options_;
  std::atomic<std::chrono::milliseconds> timeout_ = options_->timeout;
  std::shared_ptr<Membership> group_;
  mutable std::mutex comm_mutex_;
  std::shared_ptr<ccl::Communicator> comm_;  // other threads may abort it or ask it while the group is shut down
  std::shared_ptr<CommunicationRecorder> recording_;  // null: nothing is recorded
  std::atomic<std::uint64_t> number_ = 0, monitored_ = 0;
  std::atomic<bool> aborted_ = false, coalescing_ = false;
  std::vector<Work> coalesced_;
  CurrentOperation performing_;
  TimeEstimator estimate_;
  const device::ForkMark mark_;  // a forked process has copies of what follows, but not its threads
  const device::MakersOwn<Worker> completions_{new Worker}, collectives_{new Worker};
  const device::MakersOwn<DeadlineWatchdog> deadlines_{new DeadlineWatchdog};
  const device::MakersOwn<PointToPoint> messages_;
};

}  // namespace trellis::process_group
