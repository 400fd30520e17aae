// trellis train cache: the proofs of steps that are kept on disk.
#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "text/refuse.h"
#include "tools/program/command.h"
#include "tools/program/output.h"
#include "tools/program/table.h"
#include "train/cache/proof.h"

namespace trellis::tools {
namespace {

struct Options {
  std::string folder;
  double days = 30;
  bool json = false;
};

void add(CLI::App& app, Options& o) {
  app.add_option("folder", o.folder, "The cache: compiler_cache_url of the configuration, or EXP_DIR/steps")
      ->required();
}

void add_list(CLI::App& app, Options& o) {
  add(app, o);
  app.add_flag("--json", o.json, "Print JSON");
}

// The cache in a folder that must be there: of a mistyped one, nothing would be listed or removed.
train::ProofCache cache_in(const std::string& folder) {
  std::error_code error;
  const std::filesystem::directory_iterator there(folder, error);
  if (error) throw std::system_error(error, fmt::format("cannot read '{}'", folder));
  return train::ProofCache(folder);
}

int list(const Options& o) {
  Table table("steps",
              {left("key"), left("run"), {"ranks"}, {"days unused"}, {"size", "B"}, left("library"), left("result")});
  for (const auto& e : cache_in(o.folder).entries())
    table.add({e.key, e.name, static_cast<std::int64_t>(e.ranks), e.age_days, static_cast<double>(e.bytes), e.version,
               e.fault.empty() ? "proved" : "failed: " + e.fault});
  write_output("", o.json ? table.json() : table.text());
  return 0;
}

void add_prune(CLI::App& app, Options& o) {
  add(app, o);
  app.add_option("--days", o.days, "Remove proofs unused for this many days; 0: all")->capture_default_str();
}

int prune(const Options& o) {
  if (!(o.days >= 0)) text::refuse("--days {}: expected 0 or more", o.days);
  write_output("", fmt::format("{} removed\n", cache_in(o.folder).prune(o.days)));
  return 0;
}

const RegisteredCommand group({.path = "train cache",
                               .summary = "Laid-out and proved steps that are kept on disk",
                               .examples = "trellis train cache list build/runs/steps"});
const RegisteredCommand lists("train cache list", "Lists the steps of a cache, last used first",
                              "trellis train cache list build/runs/steps", add_list, list);
const RegisteredCommand prunes("train cache prune", "Removes steps that were not used for long",
                               "trellis train cache prune build/runs/steps --days 7", add_prune, prune);

}  // namespace
}  // namespace trellis::tools
