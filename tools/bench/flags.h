// Every flag of trellis bench, as one table: in which grammar it has a meaning, what it sets, within which limits. The
// parser, the readers of both grammars and --help are made of these rows.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tools/bench/options.h"

namespace trellis::tools {

enum class Grammar : std::uint8_t { both, nccl, nccom };
enum class Section : std::uint8_t { measured, simulated, ranks, output, letters, idle };

// The field that a flag sets. None: the flag has no meaning here.
using Target = std::variant<std::monostate, std::string BenchOptions::*, int BenchOptions::*, bool BenchOptions::*,
                            std::vector<std::string> BenchOptions::*>;

struct Flag {
  Section section = Section::measured;
  const char* names = "";  // "-b,--minbytes"
  const char* help = "";   // with the unit
  Target target = {};
  // The value without the flag, for --help; of both grammars as "float | uint8". nullptr: what the field begins with.
  const char* standard = "";
  std::int64_t least = 0, most = -1;           // of an int; least > most: checked elsewhere
  Grammar grammar = Grammar::both;             // a letter with two meanings has a row for each
  std::vector<std::string_view> allowed = {};  // values of a flag without a target that are accepted
  std::string_view why = {};                   // why others are refused

  std::string_view short_name() const;  // the first name
  std::string_view long_name() const;   // the first that begins with --
};

std::span<const Flag> bench_flags();

inline constexpr std::int64_t most_ranks_asked = 1 << 20;

}  // namespace trellis::tools
