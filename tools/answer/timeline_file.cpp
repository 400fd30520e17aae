#include "tools/answer/timeline_file.h"

#include "sim/hardware/timeline/perfetto.h"
#include "text/refuse.h"
#include "tools/program/output.h"
#include "tools/program/provenance.h"

namespace trellis::tools {

void expect_timeline_file(const std::string& path) {
  if (path.empty()) return;
  if (!is_page(path) && !path.ends_with(".pftrace"))
    text::refuse("-o {}: expected a name that ends in .html or .pftrace", path);
  expect_writable(path);
}

bool is_page(const std::string& path) { return path.ends_with(".html"); }

void write_timeline(const std::string& path, const sim::Timeline& timeline, const sim::ReportOptions& options) {
  sim::ReportOptions all = options;
  all.made_by = origin();
  write_output(path, is_page(path) ? sim::html_report(timeline, all) : sim::perfetto(timeline, sim::ns, all.made_by));
}

}  // namespace trellis::tools
