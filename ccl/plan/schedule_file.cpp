#include "ccl/plan/schedule_file.h"

#include <optional>
#include <stdexcept>
#include <string>

#include "schedule/formats/msccl_xml.h"
#include "schedule/formats/text.h"
#include "text/read_file.h"
#include "text/refuse.h"

namespace trellis::ccl {

schedule::Schedule schedule_from_file(const AlgorithmConfig& c, bool in_place) {
  const std::string path = c.algorithm.substr(schedule::file_prefix.size());
  const std::string text = text::read_file(path);
  try {
    const std::size_t start = text.find_first_not_of(" \t\r\n");
    if (start == text.npos || text[start] != '<') return schedule::parse(text);
    const bool open = in_place && schedule::msccl_leaves_place_open(text);
    return schedule::import_msccl(text, open ? std::optional(true) : std::nullopt);
  } catch (const std::invalid_argument& e) {
    text::refuse("{}: {}", path, e.what());
  }
}

}  // namespace trellis::ccl
