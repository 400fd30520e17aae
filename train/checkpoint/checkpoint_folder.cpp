#include "train/checkpoint/checkpoint_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <system_error>

#include "text/number_parsing.h"
#include "text/refuse.h"

namespace trellis::train {

namespace fs = std::filesystem;
using nlohmann::json;

std::string tag_name(std::int64_t step) { return fmt::format("step_{:08}", step); }

namespace {

// The step in a tag's name; none: it is no tag.
std::optional<std::int64_t> step_of(const std::string& name) {
  constexpr std::string_view begin = "step_";
  if (!name.starts_with(begin)) return std::nullopt;
  const auto step = text::number<std::int64_t>(std::string_view(name).substr(begin.size()));
  return step && tag_name(*step) == name ? step : std::nullopt;
}

// Names with more digits come after those with fewer.
bool is_older(const std::string& a, const std::string& b) { return step_of(a) < step_of(b); }

}  // namespace

std::vector<std::string> complete_tags(const fs::path& root) {
  std::vector<std::string> tags;
  std::error_code error;
  for (const auto& each : fs::directory_iterator(root, error))
    if (step_of(each.path().filename().string()) && fs::exists(each.path() / "done"))
      tags.push_back(each.path().filename().string());
  std::ranges::sort(tags, is_older);
  return tags;
}

namespace {

json as_json(const TrainingProvenance& o) {
  json data = json::array();
  for (const DataFile& f : o.data) data.push_back({{"path", f.path}, {"bytes", f.bytes}, {"checksum", f.checksum}});
  return {{"configuration", o.settings}, {"data", data}, {"version", o.version}};
}

// Checkpoints of earlier versions have no origin.
TrainingProvenance read_origin(const json& said) {
  TrainingProvenance o;
  if (!said.contains("origin")) return o;
  const json& from = said["origin"];
  o.settings = from.at("configuration").get<std::map<std::string, std::string>>();
  for (const json& f : from.at("data")) o.data.push_back({f.at("path"), f.at("bytes"), f.at("checksum")});
  o.version = from.at("version");
  return o;
}

}  // namespace

TagInfo read_done(const fs::path& tag) {
  std::ifstream in(tag / "done");
  if (!in) text::refuse("{}: not a complete checkpoint: it has no file 'done', nor config.json", tag.string());
  const json said = json::parse(in, nullptr, false);
  TagInfo info;
  try {
    info.step = said.at("step");
    info.layout = said.value("layout", std::string());
    info.lora_alpha = said.value("lora_alpha", 0.0);
    info.monitor = said.value("monitor", std::string());
    if (said.contains("monitored") && said["monitored"].is_number()) info.monitored = said["monitored"];
    info.origin = read_origin(said);
    for (const json& file : said.at("files")) {
      const std::string name = file.at("name");
      const std::uint64_t bytes = file.at("bytes");
      if (!fs::exists(tag / name)) text::refuse("{} is missing", name);
      if (fs::file_size(tag / name) != bytes)
        text::refuse("{} has {} bytes: expected {}", name, fs::file_size(tag / name), bytes);
      info.files.push_back(name);
    }
  } catch (const std::exception& e) {
    text::refuse("{}: {}", tag.string(), e.what());
  }
  return info;
}

void write_done(const fs::path& tag, const TagInfo& info) {
  json files = json::array();
  for (const std::string& name : info.files) files.push_back({{"name", name}, {"bytes", fs::file_size(tag / name)}});
  json said{{"step", info.step}, {"layout", info.layout}, {"files", files}};
  if (info.lora_alpha != 0) said["lora_alpha"] = info.lora_alpha;
  if (!info.monitor.empty()) said["monitor"] = info.monitor, said["monitored"] = info.monitored;
  if (!info.origin.settings.empty()) said["origin"] = as_json(info.origin);
  write_whole(tag / "done", said.dump(1, ' ', false, json::error_handler_t::replace) + "\n");
}

namespace {

// The monitored value of a tag, negated if the lowest is best. Tags without a value, and damaged ones, come last.
double rank_of(const fs::path& tag, const Retention& keep) {
  double value = std::numeric_limits<double>::quiet_NaN();
  try {
    const TagInfo info = read_done(tag);
    if (keep.monitor == "global_step")
      value = static_cast<double>(info.step);
    else if (info.monitor == keep.monitor)
      value = info.monitored;
  } catch (const std::invalid_argument&) {  // it is damaged
  }
  if (std::isnan(value)) return -std::numeric_limits<double>::infinity();
  return keep.lowest ? -value : value;
}

}  // namespace

void keep_tags(const fs::path& root, const Retention& keep) {
  if (keep.most < 0) return;
  const std::vector<std::string> complete = complete_tags(root);
  std::vector<std::pair<double, std::string>> ranked;
  for (const std::string& tag : complete) ranked.emplace_back(rank_of(root / tag, keep), tag);
  std::ranges::reverse(ranked);  // of equal ones, the newest is the best
  std::ranges::stable_sort(ranked, std::greater<>(), &std::pair<double, std::string>::first);
  const auto remove = [&](const fs::path& tag) {
    fs::remove(tag / "done");
    fs::remove_all(tag);
  };
  for (std::size_t i = static_cast<std::size_t>(keep.most); i < ranked.size(); ++i)
    if (!keep.newest || ranked[i].second != complete.back()) remove(root / ranked[i].second);
  for (const auto& each : fs::directory_iterator(root)) {
    const std::string name = each.path().filename().string();
    if (step_of(name) && !complete.empty() && is_older(name, complete[0])) remove(each.path());
  }
}

}  // namespace trellis::train
