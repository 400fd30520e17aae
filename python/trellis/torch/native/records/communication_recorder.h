// What a rank communicates and when, as lines of JSON that trellis.torch.recorded turns into a workload.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "trellis/torch/native/progress/torch_errors.h"

namespace trellis::process_group {

// A communication as workloads describe it; ranks are those of the group.
struct RecordedCommunication {
  const char* collective = nullptr;  // "all_reduce"; null: not recorded
  std::uint64_t bytes = 0;           // of the larger buffer
  int root = 0, peer = -1;
};

class CommunicationRecorder : public std::enable_shared_from_this<CommunicationRecorder> {
 public:
  CommunicationRecorder(const std::string& folder, std::int64_t rank, std::int64_t ranks);

  std::uint64_t begins(const RecordedCommunication&, const Membership&);  // its number in the recording
  void issued(std::uint64_t number);                                      // the call has returned
  void waits(std::uint64_t number);
  void waited(std::uint64_t number);
  // The operation's future was taken. Within a backward pass it is waited for at the end of the pass, as
  // DistributedDataParallel does; elsewhere it is not known when.
  void taken(std::uint64_t number);
  // `source`: the sender, of a receive from any rank; else -1. `parts`: if it ran as several collectives whose sizes
  // were not known when it began, the bytes of each, in their order.
  void ended(std::uint64_t number, int source, const std::vector<std::uint64_t>& parts = {});

 private:
  void line(const std::string& what, std::uint64_t number, const std::string& more = "");
  void put(const std::string& text) { std::fwrite(text.data(), 1, text.size(), file_.get()); }
  void flush() { std::fflush(file_.get()); }
  std::mutex mutex_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_{nullptr, &std::fclose};
  std::uint64_t next_ = 0;
};

// Operations of groups that are made from now on are recorded in the folder; "": they are not. This is rank `rank` of
// the job's `ranks`; where `rank` is below zero, the next group is the whole job.
void record_to(const std::string& folder, std::int64_t rank, std::int64_t ranks);
std::shared_ptr<CommunicationRecorder> recording_of_process(const Membership&);  // null: nothing is recorded

}  // namespace trellis::process_group
