#include "tools/program/misspelt_variables.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "ccl/print_to_stderr.h"
#include "text/nearest.h"

namespace trellis::tools {
namespace {

constexpr std::string_view prefix = "TRELLIS_";

}  // namespace

const std::vector<std::string>& environment_variables() {
  static const std::vector<std::string> names = {
      "TRELLIS_ALGORITHM",   "TRELLIS_AS_DEFAULT",  "TRELLIS_CACHE",
      "TRELLIS_CHECKSUM",    "TRELLIS_DEVICE",      "TRELLIS_DEVICES",
      "TRELLIS_DUMP",        "TRELLIS_HOST",        "TRELLIS_INSTANCE",
      "TRELLIS_INTERFACE",   "TRELLIS_ISA",         "TRELLIS_LIBNRT",
      "TRELLIS_MACHINE",     "TRELLIS_NRT_MACHINE", "TRELLIS_NRT_SENDRECV_PORT",
      "TRELLIS_PROGRESS",    "TRELLIS_PROVIDER",    "TRELLIS_PYTHON",
      "TRELLIS_RAILS",       "TRELLIS_RECORD",      "TRELLIS_REGISTRATIONS",
      "TRELLIS_ROUNDING",    "TRELLIS_ROUNDS",      "TRELLIS_SECRET",
      "TRELLIS_SEED",        "TRELLIS_SELECTIONS",  "TRELLIS_SIMULATE",
      "TRELLIS_SINGLE_COPY", "TRELLIS_TAGGED",      "TRELLIS_TIMEOUT",
      "TRELLIS_TRANSPORT",   "TRELLIS_WIRE",
  };
  return names;
}

std::string misspelt_variable(std::string_view name) {
  const std::vector<std::string>& known = environment_variables();
  if (!name.starts_with(prefix) || std::ranges::find(known, name) != known.end()) return "";
  std::vector<std::string> ends;  // without the prefix, whose letters would count as a likeness
  for (const std::string& each : known) ends.push_back(each.substr(prefix.size()));
  const std::string near = text::nearest(name.substr(prefix.size()), ends);
  if (near.empty()) return "";
  return fmt::format("nothing reads the variable '{}'; did you mean '{}{}'?", name, prefix, near);
}

void tell_misspelt_variables() {
  for (char** each = environ; each != nullptr && *each != nullptr; ++each) {
    const std::string_view variable = *each;
    const std::string why = misspelt_variable(variable.substr(0, variable.find('=')));
    if (!why.empty()) ccl::tell("trellis: {}\n", why);
  }
}

}  // namespace trellis::tools
