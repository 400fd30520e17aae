#include "train/cache/proof.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "kernels/dispatch/build_id.h"
#include "schedule/graph/graph_text.h"
#include "schedule/graph/merge_computations.h"
#include "train/checkpoint/shard.h"
#include "train/config/canonical.h"
#include "train/config/plugin_code.h"
#include "train/whole/check.h"
#include "train/whole/graph.h"

namespace trellis::train {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

struct Made {
  Proof proof;
  schedule::ExecutionGraph graph;
};

Made made(const StepConfig& config, Rank world) {
  const auto begin = std::chrono::steady_clock::now();
  Made m;
  try {
    const std::vector<RankStep> classes = classes_of(config, world);
    m.graph = graph_of(classes);
    m.proof.fault = check_step(config, world, classes, m.graph);
    if (!m.proof.fault.empty()) m.proof.fault = "the step is not proved: " + m.proof.fault;
  } catch (const std::invalid_argument& e) {
    m.proof.fault = e.what();
  }
  // The peaks are those of a rank that runs here, where what only an accelerator holds takes no room.
  for (schedule::RankClass& c : m.graph.classes) {
    for (schedule::GraphTensor& t : c.tensors)
      if (t.category == static_cast<std::uint8_t>(Category::accelerator)) t.rows = 0;
    m.proof.peaks.push_back(peak_memory(m.graph, c));
  }
  m.proof.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return m;
}

std::string file_text(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

json as_json(const Proof& p, const std::string& canonical, const StepConfig& config, Rank world) {
  json peaks = json::array();
  for (const schedule::PeakMemory& m : p.peaks)
    peaks.push_back({{"bytes", m.bytes}, {"by_category", m.by_category}, {"task", m.task}});
  return {{"name", config.name}, {"ranks", world},       {"fault", p.fault},
          {"peaks", peaks},      {"seconds", p.seconds}, {"canonical", canonical}};
}

void keep(const fs::path& folder, const Made& m, const std::string& canonical, const StepConfig& config, Rank world) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return;
  try {
    if (m.proof.fault.empty()) write_whole(folder / "plan", schedule::graph_text(merged(m.graph)));
    const json said = as_json(m.proof, canonical, config, world);
    write_whole(folder / "proof", said.dump(1, ' ', false, json::error_handler_t::replace) + "\n");
  } catch (const std::system_error&) {  // the disk is full or not writable: the proof is made again the next time
  }
}

}  // namespace

std::string proof_key(const std::string& canonical) {
  return fmt::format("{:016x}", checksum_of(canonical.data(), canonical.size()));
}

std::string library_version() { return kernels::build_id(); }

Proof prove(const StepConfig& config, Rank world) { return made(config, world).proof; }

ProofCache::ProofCache(fs::path root) : root_(std::move(root)) {}

std::optional<Proof> ProofCache::find(const fs::path& folder, const std::string& canonical) const {
  const json said = json::parse(file_text(folder / "proof"), nullptr, false);
  try {
    if (!said.is_object() || said.at("canonical") != canonical) return {};
    Proof p{.fault = said.at("fault"), .peaks = {}, .seconds = said.at("seconds"), .remembered = true};
    for (const json& each : said.at("peaks"))
      p.peaks.push_back({each.at("bytes"), each.at("by_category"), each.at("task")});
    std::error_code error;
    fs::last_write_time(folder / "proof", fs::file_time_type::clock::now(), error);
    return p;
  } catch (const json::exception&) {
    return {};
  }
}

Proof ProofCache::proof(const StepConfig& config, Rank world, bool again) const {
  const std::string text = canonical(config, world);
  const std::string foreign = foreign_code();
  const fs::path folder = root_ / (library_version() + (foreign.empty() ? "" : "-" + foreign)) / proof_key(text);
  if (auto found = find(folder, text); found && (found->fault.empty() || !again)) return *found;
  const Made m = made(config, world);
  keep(folder, m, text, config, world);
  return m.proof;
}

std::vector<ProofCache::Entry> ProofCache::entries() const {
  std::vector<Entry> all;
  std::error_code error;
  for (const auto& version : fs::directory_iterator(root_, error))
    for (const auto& each : fs::directory_iterator(version.path(), error)) {
      const json said = json::parse(file_text(each.path() / "proof"), nullptr, false);
      if (!said.is_object()) continue;
      Entry e{.folder = each.path(), .version = version.path().filename(), .key = each.path().filename()};
      e.name = said.value("name", ""), e.ranks = said.value("ranks", 0), e.fault = said.value("fault", "");
      const auto used = fs::last_write_time(each.path() / "proof", error);
      e.age_days = std::chrono::duration<double>(fs::file_time_type::clock::now() - used).count() / 86'400;
      for (const auto& file : fs::directory_iterator(each.path(), error)) e.bytes += file.file_size(error);
      all.push_back(std::move(e));
    }
  std::ranges::sort(all, {}, &Entry::age_days);
  return all;
}

std::size_t ProofCache::prune(double days) const {
  std::size_t gone = 0;
  for (const Entry& e : entries())
    if (e.age_days >= days) fs::remove_all(e.folder), ++gone;
  return gone;
}

}  // namespace trellis::train
