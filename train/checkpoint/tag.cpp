#include "train/checkpoint/tag.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <system_error>

#include "kernels/types/convert.h"
#include "text/number.h"
#include "train/data/read_file.h"

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

json as_json(const Origin& o) {
  json data = json::array();
  for (const DataFile& f : o.data) data.push_back({{"path", f.path}, {"bytes", f.bytes}, {"checksum", f.checksum}});
  return {{"configuration", o.settings}, {"data", data}, {"version", o.version}};
}

// Checkpoints of earlier versions say nothing of it.
Origin read_origin(const json& said) {
  Origin o;
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
  if (!in)
    throw std::invalid_argument(fmt::format("{}: not a complete checkpoint: it has no file 'done'", tag.string()));
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
      if (!fs::exists(tag / name)) throw std::invalid_argument(fmt::format("{} is missing", name));
      if (fs::file_size(tag / name) != bytes)
        throw std::invalid_argument(
            fmt::format("{} has {} bytes: expected {}", name, fs::file_size(tag / name), bytes));
      info.files.push_back(name);
    }
  } catch (const std::exception& e) {
    throw std::invalid_argument(fmt::format("{}: {}", tag.string(), e.what()));
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
  write_whole(tag / "done", said.dump(1) + "\n");
}

namespace {

// A tag's value as something of which more is better. Tags without a value, and damaged ones, come last.
double rank_of(const fs::path& tag, const Keep& keep) {
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

void keep_tags(const fs::path& root, const Keep& keep) {
  if (keep.most < 0) return;
  const std::vector<std::string> complete = complete_tags(root);
  std::vector<std::pair<double, std::string>> ranked;
  for (const std::string& tag : complete) ranked.emplace_back(rank_of(root / tag, keep), tag);
  std::ranges::sort(ranked, std::greater<>());
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

struct TensorSource::File {
  explicit File(const fs::path& path) : file(path) {}
  // As much of it as its tensors' names and places take.
  std::string header() const {
    std::uint64_t size = 0;
    if (file.size() >= sizeof size) file.read(0, sizeof size, &size);
    std::string text(std::min<std::size_t>(file.size(), std::min(size, most_header) + sizeof size), '\0');
    file.read(0, text.size(), text.data());
    return text;
  }
  ReadFile file;
};

TensorSource::TensorSource(const fs::path& path) {
  std::vector<fs::path> paths;
  if (fs::is_directory(path)) {
    info_ = read_done(path);
    for (const std::string& name : info_.files) paths.push_back(path / name);
  } else {
    paths.push_back(path);
  }
  for (const fs::path& each : paths) {
    files_.push_back(std::make_unique<File>(each));
    for (ShardEntry& entry : shard_entries(each.string(), files_.back()->header(), files_.back()->file.size())) {
      const std::string name = entry.name;
      parts_[name].push_back({files_.back().get(), std::move(entry)});
    }
  }
}

TensorSource::~TensorSource() = default;

std::vector<std::string> TensorSource::names() const {
  std::vector<std::string> all;
  for (const auto& [name, parts] : parts_) all.push_back(name);
  return all;
}

Slice TensorSource::whole(const std::string& name) const {
  const Slice& s = parts_.at(name).front().entry.slice;
  return {s.rows, s.columns, 0, s.rows, 0, s.columns};
}

DType TensorSource::type(const std::string& name) const { return parts_.at(name).front().entry.type; }

std::vector<std::byte> TensorSource::bytes_of(const Part& p) const {
  std::vector<std::byte> bytes(p.entry.slice.elements() * kernels::size_of(p.entry.type));
  p.file->file.read(p.entry.first, bytes.size(), bytes.data());
  if (p.entry.checked && checksum_of(bytes.data(), bytes.size()) != p.entry.checksum)
    throw std::invalid_argument(fmt::format("{}: the bytes of {} are not those that were written: its checksum differs",
                                            p.file->file.path().string(), p.entry.name));
  return bytes;
}

std::size_t TensorSource::verify() const {
  std::size_t checked = 0;
  for (const auto& [name, parts] : parts_)
    for (const Part& p : parts) bytes_of(p), checked += p.entry.checked;
  return checked;
}

void TensorSource::read(const std::string& name, const Slice& wanted, float* out) const {
  const auto found = parts_.find(name);
  if (found == parts_.end()) throw std::invalid_argument(fmt::format("the checkpoint has no tensor {}", name));
  const Slice all = whole(name);
  if (all.rows != wanted.rows || all.columns != wanted.columns)
    throw std::invalid_argument(fmt::format("{} is {} x {} in the checkpoint and {} x {} in the model", name, all.rows,
                                            all.columns, wanted.rows, wanted.columns));
  std::vector<bool> covered(wanted.elements(), false);
  std::size_t left = wanted.elements();
  for (const Part& p : found->second) {
    const Slice& s = p.entry.slice;
    const std::size_t row = std::max(s.row, wanted.row),
                      row_end = std::min(s.row + s.row_count, wanted.row + wanted.row_count);
    const std::size_t column = std::max(s.column, wanted.column),
                      column_end = std::min(s.column + s.column_count, wanted.column + wanted.column_count);
    if (row >= row_end || column >= column_end || left == 0) continue;
    const std::size_t size = kernels::size_of(p.entry.type);
    const std::vector<std::byte> bytes = bytes_of(p);
    for (std::size_t r = row; r < row_end; ++r)
      for (std::size_t c = column; c < column_end; ++c) {
        const std::size_t from = (r - s.row) * s.column_count + c - s.column;
        const std::size_t to = (r - wanted.row) * wanted.column_count + c - wanted.column;
        out[to] = static_cast<float>(kernels::load(p.entry.type, bytes.data() + from * size));
        if (!covered[to]) covered[to] = true, --left;
      }
  }
  if (left > 0)
    throw std::invalid_argument(
        fmt::format("{}: {} of {} elements are in no file of the checkpoint", name, left, wanted.elements()));
}

}  // namespace trellis::train
