// Launch record: how the ranks that `trellis launch` started ended. No rank could write that itself.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ccl/errors.h"

namespace trellis::ccl {

struct LaunchedRank {
  Rank rank = 0;
  std::int64_t process = 0;
  std::string end = {};       // "exited with status 3"; empty: still running
  std::int64_t ended_ns = 0;  // nanoseconds since 1970
  bool failed = false;
  bool told = false;  // the launch told it to end before it did
};

struct LaunchRecord {
  int node = 0;
  int nodes = 1;
  std::string job_identity = {};  // as its ranks' dumps have; empty: not recorded
  std::int64_t began_ns = 0;
  std::int64_t written_ns = 0;
  std::string told = {};   // the signal that told the launch to end: "INT"; empty: none
  std::string heard = {};  // why another node's launch ended the job; empty: it did not
  std::vector<LaunchedRank> ranks = {};

  // The first that failed without being told to end; null: none.
  const LaunchedRank* first_failed() const;
};

std::string text_of(const LaunchRecord&);  // JSON
bool is_launch_record(std::string_view json);
// Throws invalid_argument that says what is wrong.
LaunchRecord launch_record_in(std::string_view json);

}  // namespace trellis::ccl
