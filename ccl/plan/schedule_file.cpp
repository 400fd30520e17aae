#include "ccl/plan/schedule_file.h"

#include <fmt/format.h>

#include <stdexcept>
#include <string>

#include "schedule/formats/msccl_xml.h"
#include "schedule/formats/text.h"
#include "text/file.h"

namespace trellis::ccl {

schedule::Schedule schedule_from_file(const AlgorithmConfig& c) {
  const std::string path = c.algorithm.substr(schedule::file_prefix.size());
  const std::string text = text::read_file(path);
  try {
    return text.starts_with('<') ? schedule::import_msccl(text) : schedule::parse(text);
  } catch (const std::invalid_argument& e) {
    throw std::invalid_argument(fmt::format("{}: {}", path, e.what()));
  }
}

}  // namespace trellis::ccl
