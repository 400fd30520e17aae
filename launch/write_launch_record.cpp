#include "launch/write_launch_record.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <stdexcept>

#include "ccl/config.h"
#include "ccl/failure/dump_file.h"

namespace trellis::launch {

// The folder for dumps; empty if the configuration is wrong, which the ranks will report if they read it.
std::string dump_folder() {
  try {
    return ccl::config_from_environment().dump;
  } catch (const std::invalid_argument&) {
    return "";
  }
}

std::int64_t nanoseconds() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

std::string launch_record_path(const std::string& folder, int node) {
  return fmt::format("{}/trellis_launch_{}_node{}.json", folder, getpid(), node);
}

void write_launch_record(const std::string& path, const ccl::LaunchRecord& record) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  ccl::replace_file(path, text_of(record));
}

}  // namespace trellis::launch
