#include "ccl/plan/schedule_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <system_error>

#include "schedule/formats/msccl_xml.h"
#include "schedule/formats/text.h"

namespace trellis::ccl {

schedule::Schedule schedule_from_file(const AlgorithmConfig& c) {
  const std::string path = c.algorithm.substr(schedule::file_prefix.size());
  std::ifstream file(path);
  if (!file) throw std::system_error(errno, std::generic_category(), path);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  try {
    return text.starts_with('<') ? schedule::import_msccl(text) : schedule::parse(text);
  } catch (const std::invalid_argument& e) {
    throw std::invalid_argument(fmt::format("{}: {}", path, e.what()));
  }
}

}  // namespace trellis::ccl
