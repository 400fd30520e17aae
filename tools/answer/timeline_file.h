// Writes a timeline to a file, in the format that the file's name ends in.
#pragma once

#include <string>

#include "sim/hardware/report/html_report.h"

namespace trellis::tools {

inline constexpr const char* timeline_help = "FILE.html, or FILE.pftrace for ui.perfetto.dev";

// Call it before long work. Throws invalid_argument for an unknown ending, and system_error when the file can't be
// written. "": no file.
void expect_timeline_file(const std::string& path);
bool is_page(const std::string& path);  // it ends in .html
void write_timeline(const std::string& path, const sim::Timeline&, const sim::ReportOptions&);

}  // namespace trellis::tools
