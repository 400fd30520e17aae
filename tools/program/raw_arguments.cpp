#include "tools/program/raw_arguments.h"

#include "tools/program/output.h"

namespace trellis::tools {

std::vector<std::string> typed_words() {
  const std::string line = read_input("/proc/self/cmdline");
  std::vector<std::string> words;
  for (std::size_t at = 0; at < line.size(); at = line.find('\0', at) + 1) words.emplace_back(line.c_str() + at);
  return words;
}

}  // namespace trellis::tools
