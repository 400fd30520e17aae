#include "trellis/torch/native/records/communication_recorder.h"

#include <fcntl.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <system_error>

#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/graph_task.h>

#include "device/fork_mark.h"

namespace trellis::process_group {
namespace {

struct OfProcess {
  std::mutex mutex;
  std::string folder;
  std::int64_t rank = -1, ranks = 0;
  std::shared_ptr<CommunicationRecorder> recording;
  const device::ForkMark mark = {};
};
OfProcess& of_process() {
  static OfProcess one;
  return one;
}

template <class Number>
std::string list_of(std::size_t count, Number number) {
  std::string text = "[";
  for (std::size_t i = 0; i < count; ++i) text += (i ? "," : "") + std::to_string(number(i));
  return text + "]";
}

}  // namespace

CommunicationRecorder::CommunicationRecorder(const std::string& folder, std::int64_t rank, std::int64_t ranks) {
  std::filesystem::create_directories(folder);
  const auto path = std::filesystem::path(folder) / ("rank" + std::to_string(rank) + ".jsonl");
  std::remove(path.c_str());  // an earlier recording; a link is not followed
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd >= 0) file_.reset(fdopen(fd, "w"));
  if (!file_) throw std::system_error(errno, std::generic_category(), "TRELLIS_RECORD: " + path.string());
  put("{\"trellis\":\"recording 2\",\"rank\":" + std::to_string(rank) + ",\"ranks\":" + std::to_string(ranks) + "}\n");
  flush();
}

void CommunicationRecorder::line(const std::string& what, std::uint64_t number, const std::string& more) {
  using namespace std::chrono;
  const auto now = duration_cast<nanoseconds>(steady_clock::now().time_since_epoch()).count();
  put("{\"" + what + "\":" + std::to_string(number) + ",\"ns\":" + std::to_string(now) + more + "}\n");
}

std::uint64_t CommunicationRecorder::begins(const RecordedCommunication& seen, const Membership& group) {
  const std::lock_guard lock(mutex_);
  line("begins", next_,
       ",\"collective\":\"" + std::string(seen.collective) + "\",\"bytes\":" + std::to_string(seen.bytes) +
           ",\"root\":" + std::to_string(seen.root) + ",\"peer\":" + std::to_string(seen.peer) + ",\"members\":" +
           list_of(group.size, [&](std::size_t rank) { return group.in_job(static_cast<int>(rank)); }));
  return next_++;
}

void CommunicationRecorder::issued(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  line("issued", number);
}

void CommunicationRecorder::waits(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  line("waits", number);
}

void CommunicationRecorder::waited(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  line("waited", number);
  flush();
}

void CommunicationRecorder::taken(std::uint64_t number) {
  const bool backward = torch::autograd::get_current_graph_task_id() >= 0;
  const std::lock_guard lock(mutex_);
  line("taken", number, backward ? ",\"backward\":true" : ",\"backward\":false");
  if (!backward) return;
  torch::autograd::Engine::get_default_engine().queue_callback([self = shared_from_this(), number] {
    const std::lock_guard at_the_end(self->mutex_);
    self->line("awaits", number);
  });
}

void CommunicationRecorder::ended(std::uint64_t number, int source, const std::vector<std::uint64_t>& parts) {
  std::string more = ",\"source\":" + std::to_string(source);
  if (!parts.empty()) more += ",\"parts\":" + list_of(parts.size(), [&](std::size_t i) { return parts[i]; });
  const std::lock_guard lock(mutex_);
  line("ended", number, more);
  flush();
}

void record_to(const std::string& folder, std::int64_t rank, std::int64_t ranks) {
  OfProcess& one = of_process();
  const std::lock_guard lock(one.mutex);
  if (one.folder != folder) one.recording = nullptr;
  one.folder = folder;
  one.rank = rank;
  one.ranks = ranks;
}

std::shared_ptr<CommunicationRecorder> recording_of_process(const Membership& group) {
  OfProcess& one = of_process();
  const std::lock_guard lock(one.mutex);
  if (one.folder.empty() || one.mark.forked()) return nullptr;  // a forked process would write into its parent's file
  if (!one.recording) {
    const bool of_job = one.rank >= 0;
    one.recording = {
        new CommunicationRecorder(one.folder, of_job ? one.rank : group.rank, of_job ? one.ranks : group.size),
        device::DeletedByMaker()};
  }
  return one.recording;
}

}  // namespace trellis::process_group
