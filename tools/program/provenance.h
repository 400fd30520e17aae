// What made a result: program, command line, machine, figures, seed, host, date. Written into each page, table and
// trace, so that two files can be told apart, and either be made again.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace trellis::tools {

using Facts = std::vector<std::pair<std::string, std::string>>;  // each name once

// The shell calls it once. The date is that of SOURCE_DATE_EPOCH where it is set, and then no host is named: the same
// command writes the same bytes everywhere.
void begin_origin(const std::string& version, const std::vector<std::string>& arguments);

// A command adds what else its results depend on: "machine", "figures", "era", "seed". An empty value takes it away.
void note_origin(const std::string& name, const std::string& value);

Facts origin();                                            // empty before begin_origin
std::string origin_comment(std::string_view mark = "# ");  // a line for each fact, which begins with the mark
nlohmann::ordered_json origin_json();

std::string shell_word(const std::string&);  // quoted where a shell needs it

}  // namespace trellis::tools
