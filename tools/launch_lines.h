// A rank's output by line, each with the rank's name in front, so that several ranks can share a terminal.
#pragma once

#include <string>
#include <string_view>

namespace trellis::tools {

class Lines {
 public:
  explicit Lines(std::string prefix) : prefix_(std::move(prefix)) {}

  // The lines that are whole now. A line that is written anew after a carriage return, as progress is, comes as lines
  // of its own; so does what goes on for a MiB without an end.
  std::string take(std::string_view arrived);

  // What has come since the last line's end, as a line.
  std::string finish();

 private:
  void end_line(std::string& to, std::string_view ending);

  std::string prefix_;
  std::string begun_;
  bool returned_ = false;  // the last byte was a carriage return
};

}  // namespace trellis::tools
