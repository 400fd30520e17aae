// Send and receive, and how every operation gets its number.
#include "trellis/torch/native/issue_operation.h"

namespace trellis::process_group {

using c10d::OpType;

void TrellisBackend::check_peer(const char* what, int rank) const {
  TORCH_CHECK_VALUE(rank >= 0 && rank < size_, "trellis: ", what, " is rank ", rank, ", expected 0 to ", size_ - 1);
}

Pending TrellisBackend::operation(const Issue& issue, Tensors results) {
  if (mark_.forked()) expect_same_process(mark_, name_in(issue.title), *group_);
  if (!issue.message && issue.timeout > options_->timeout)
    TORCH_WARN("trellis: ", name_in(issue.title), " with a timeout of ", issue.timeout.count(), " ms: the group's is ",
               options_->timeout.count(), " ms since it was made, and ends it first");
  TorchWork::About about{.type = issue.type,
                         .title = issue.title,
                         .number = ++number_,
                         .timeout = issue.message || own_patience(issue) ? patience(issue) : kNoTimeout,
                         .waits_for = issue.type == OpType::SEND   ? issue.witnessed.peer
                                      : issue.type == OpType::RECV ? issue.witnessed.root
                                                                   : -1,
                         .group = group_,
                         .completions = completions_.get(),
                         .deadlines = deadlines_.get(),
                         .recording = issue.witnessed.collective ? recording_ : nullptr};
  if (about.recording) about.recorded = recording_->begins(issue.witnessed, *group_);
  // Receives from any rank are left out: torch's reader of flight records wants the sender.
  about.flights = issue.type == OpType::RECVANYSOURCE ? nullptr : TorchFlightRecorder::of_process();
  if (about.flights)
    about.flight = about.flights->issued({.type = issue.type,
                                          .group = getGroupUid(),
                                          .description = getGroupDesc(),
                                          .members = group_,
                                          .inputs = issue.inputs ? *issue.inputs : results,
                                          .outputs = results,
                                          .from = issue.witnessed.root,
                                          .to = issue.witnessed.peer,
                                          .number = about.number,
                                          .timeout_ms = timeout_.load().count()});
  return c10::make_intrusive<TorchWork>(std::move(about), std::move(results));
}

TrellisBackend::Work TrellisBackend::estimated(const Issue& issue) {
  estimate_.add(issue.witnessed, *group_);
  return c10::make_intrusive<CoalescedWork>(std::vector<Work>());
}

TrellisBackend::Work TrellisBackend::message(Issue issue, const at::Tensor& tensor, int peer, int tag, bool sends) {
  TORCH_CHECK_VALUE(tensor.layout() == at::kStrided && tensor.device().is_cpu(),
                    "trellis: messages are dense CPU tensors");
  TORCH_CHECK_VALUE(peer != rank_, "trellis: rank ", rank_, " cannot send to itself or receive from itself");
  if (estimate_.on()) return estimated(issue);
  issue.message = true;
  Pending work = operation(issue, {tensor});
  if (sends)
    messages_->send(work, tensor, peer, tag);
  else
    messages_->receive(work, tensor, peer, tag);
  work->goes_on();
  if (coalescing_) coalesced_.push_back(work);
  return work;
}

TrellisBackend::Work TrellisBackend::send(Tensors& tensors, int to, int tag) {
  check_peer("the receiver of send", to);
  return message(
      {.type = OpType::SEND, .title = "trellis:send", .witnessed = {"send_recv", tensors.at(0).nbytes(), rank_, to}},
      tensors.at(0), to, tag, true);
}

TrellisBackend::Work TrellisBackend::recv(Tensors& tensors, int from, int tag) {
  check_peer("the sender of recv", from);
  return message(
      {.type = OpType::RECV, .title = "trellis:recv", .witnessed = {"send_recv", tensors.at(0).nbytes(), from, rank_}},
      tensors.at(0), from, tag, false);
}

TrellisBackend::Work TrellisBackend::recvAnysource(Tensors& tensors, int tag) {
  return message({.type = OpType::RECVANYSOURCE,
                  .title = "trellis:recvAnySource",
                  .witnessed = {"send_recv", tensors.at(0).nbytes(), -1, rank_}},
                 tensors.at(0), -1, tag, false);
}

}  // namespace trellis::process_group
