#include "trellis/torch/native/recording.h"

#include <chrono>
#include <filesystem>
#include <system_error>

namespace trellis::process_group {
namespace {

struct OfProcess {
  std::mutex mutex;
  std::string folder;
  std::shared_ptr<Recording> recording;
};
OfProcess& of_process() {
  static OfProcess one;
  return one;
}

std::string members_of(const Membership& group) {
  std::string text = "[";
  for (int rank = 0; rank < group.size; ++rank) text += (rank ? "," : "") + std::to_string(group.in_job(rank));
  return text + "]";
}

}  // namespace

Recording::Recording(const std::string& folder, int rank, int ranks) {
  std::filesystem::create_directories(folder);
  const auto path = std::filesystem::path(folder) / ("rank" + std::to_string(rank) + ".jsonl");
  file_.open(path, std::ios::trunc);
  if (!file_) throw std::system_error(errno, std::generic_category(), "TRELLIS_RECORD: " + path.string());
  file_ << "{\"trellis\":\"recording 1\",\"rank\":" << rank << ",\"ranks\":" << ranks << "}\n" << std::flush;
}

void Recording::line(const std::string& what, std::uint64_t number, const std::string& more) {
  using namespace std::chrono;
  const auto now = duration_cast<nanoseconds>(steady_clock::now().time_since_epoch()).count();
  file_ << "{\"" << what << "\":" << number << ",\"ns\":" << now << more << "}\n";
}

std::uint64_t Recording::begins(const Witnessed& seen, const Membership& group) {
  const std::lock_guard lock(mutex_);
  line("begins", next_,
       ",\"collective\":\"" + std::string(seen.collective) + "\",\"bytes\":" + std::to_string(seen.bytes) +
           ",\"root\":" + std::to_string(seen.root) + ",\"peer\":" + std::to_string(seen.peer) +
           ",\"members\":" + members_of(group));
  return next_++;
}

void Recording::issued(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  line("issued", number);
}

void Recording::waits(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  line("waits", number);
}

void Recording::waited(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  line("waited", number);
  file_ << std::flush;
}

void record_to(const std::string& folder) {
  const std::lock_guard lock(of_process().mutex);
  if (of_process().folder != folder) of_process().recording = nullptr;
  of_process().folder = folder;
}

std::shared_ptr<Recording> recording_of_process(const Membership& group) {
  OfProcess& one = of_process();
  const std::lock_guard lock(one.mutex);
  if (one.folder.empty()) return nullptr;
  if (!one.recording) one.recording = std::make_shared<Recording>(one.folder, group.rank, group.size);
  return one.recording;
}

}  // namespace trellis::process_group
