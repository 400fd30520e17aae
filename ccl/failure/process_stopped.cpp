#include "ccl/failure/process_stopped.h"

#include <fmt/format.h>

#include <fstream>
#include <string>

namespace trellis::ccl {

// The line's form: "4711 (its name, which may hold anything) T ..."
bool is_stopped(std::int64_t process) {
  std::ifstream file(fmt::format("/proc/{}/stat", process));
  std::string line;
  std::getline(file, line);
  const std::size_t name_ends = line.rfind(')');
  if (name_ends == std::string::npos || name_ends + 2 >= line.size()) return false;
  const char state = line[name_ends + 2];
  return state == 'T' || state == 't';
}

}  // namespace trellis::ccl
