// Every flag of trellis bench, as one table: what it sets, within which limits, or why it has no meaning here. The
// parser and --help are made of these rows.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tools/bench/options.h"

namespace trellis::tools {

enum class Section : std::uint8_t { measured, simulated, ranks, output, idle };

// The field that a flag sets. None: the flag has no meaning here.
using Target = std::variant<std::monostate, std::string BenchOptions::*, int BenchOptions::*, bool BenchOptions::*,
                            std::vector<std::string> BenchOptions::*>;

struct Flag {
  Section section = Section::measured;
  const char* names = "";  // "-b,--minbytes"
  const char* help = "";   // with the unit
  Target target = {};
  // The default that --help shows. nullptr: the field's initial value.
  const char* standard = "";
  std::int64_t least = 0, most = -1;              // limits of an int; least > most: it is checked elsewhere
  std::optional<measure::BenchStyle> table = {};  // the only table that has this output
  std::vector<std::string_view> allowed = {};     // values of a flag without a target that are accepted
  std::string_view why = {};                      // why others are refused

  std::string_view short_name() const;  // the first name
  std::string_view long_name() const;   // the first that begins with --
};

std::span<const Flag> bench_flags();

inline constexpr std::int64_t most_ranks_asked = 1 << 20;

}  // namespace trellis::tools
