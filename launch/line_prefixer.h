// Splits a rank's output into lines and prefixes each with the rank's name, so that several ranks can share a terminal.
#pragma once

#include <string>
#include <string_view>

namespace trellis::launch {

class LinePrefixer {
 public:
  explicit LinePrefixer(std::string prefix) : prefix_(std::move(prefix)) {}

  // The complete lines so far. Text after a carriage return, as in progress output, is a line of its own. A line longer
  // than 1 MiB is split.
  std::string take(std::string_view arrived);

  // The rest after the last complete line, as a line.
  std::string finish();

 private:
  void end_line(std::string& to, std::string_view ending);

  std::string prefix_;
  std::string begun_;
  bool returned_ = false;  // the last byte was a carriage return
};

}  // namespace trellis::launch
