// A timeline as a file, in the format that the file's name asks for.
#pragma once

#include <string>

#include "sim/report.h"

namespace trellis::tools {

inline constexpr const char* timeline_help = "FILE.html, FILE.pftrace (ui.perfetto.dev) or FILE.json (Chrome's events)";

// Throws invalid_argument for another ending and system_error where it can't be written: before long work. "": none.
void expect_timeline_file(const std::string& path);
bool is_page(const std::string& path);  // it ends in .html
void write_timeline(const std::string& path, const sim::Timeline&, const sim::ReportOptions&);

}  // namespace trellis::tools
