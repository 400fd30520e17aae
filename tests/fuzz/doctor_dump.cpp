// Reads arbitrary lines as dumps of flight recorders and as launch records: each is refused, or the ranks that a dump
// names are below its number of ranks. All that are accepted can be diagnosed together.
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <stdexcept>

#include "ccl/diagnosis/diagnosis.h"

using namespace trellis::ccl;

namespace {

void add(const std::string& text, CollectedEvidence& evidence) {
  if (is_launch_record(text)) return evidence.add(launch_record_in(text));
  RankDump d = rank_dump_in(text);
  if (d.rank < 0 || d.rank >= d.ranks || d.waits_for < -1 || d.waits_for >= d.ranks || d.step < -1) std::abort();
  evidence.add(std::move(d));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::istringstream lines(std::string(reinterpret_cast<const char*>(data), size));
  CollectedEvidence evidence;
  for (std::string line; std::getline(lines, line);) try {
      add(line, evidence);
    } catch (const std::invalid_argument&) {
    }
  if (!evidence.empty() && diagnose(evidence).empty()) std::abort();
  return 0;
}
