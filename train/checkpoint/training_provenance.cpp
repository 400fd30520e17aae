#include "train/checkpoint/training_provenance.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "train/config/apply_config_keys.h"

namespace trellis::train {
namespace {

std::string quoted(const std::string& text) { return text.empty() ? "none" : text; }

// Text as a checkpoint keeps it: JSON holds only UTF-8, so other bytes, which a path may have, are replaced.
std::string as_kept(const std::string& text) {
  using nlohmann::json;
  return json::parse(json(text).dump(-1, ' ', false, json::error_handler_t::replace)).get<std::string>();
}

std::string words_of(const DataFile& f) { return fmt::format("{} ({} bytes)", f.path, f.bytes); }

std::string missing_or(const std::vector<DataFile>& files, std::size_t i) {
  return i < files.size() ? words_of(files[i]) : "none";
}

bool same(const DataFile& a, const DataFile& b) { return a.bytes == b.bytes && a.checksum == b.checksum; }

void compare_data(const std::vector<DataFile>& was, const std::vector<DataFile>& now, ResumeDifferences& out) {
  for (std::size_t i = 0; i < std::max(was.size(), now.size()); ++i) {
    const bool both = i < was.size() && i < now.size();
    if (both && same(was[i], now[i])) {
      if (was[i].path != as_kept(now[i].path))
        out.said.push_back(
            fmt::format("data.train_path has {}, was {}: with the same contents", now[i].path, was[i].path));
    } else if (both && was[i].path == as_kept(now[i].path) && was[i].bytes == now[i].bytes) {
      out.refused.push_back(fmt::format("data.train_path: {} has other contents than it had", words_of(now[i])));
    } else {
      out.refused.push_back(fmt::format("data.train_path has {}, was {}", missing_or(now, i), missing_or(was, i)));
    }
  }
}

bool may_change(ChangeOnResume what, const TrainingProvenance& was, bool anew) {
  if (what == ChangeOnResume::model) return false;
  if (what == ChangeOnResume::course) return anew;
  if (what != ChangeOnResume::adapters) return true;
  const auto rank = was.settings.find("model_alignment_strategy.peft.lora_rank");
  return anew && (rank == was.settings.end() || rank->second == "0");
}

KeyValue value_of(const std::string& key, const std::string& text) {
  KeyValue v{.key = key, .words = {}};
  for (std::size_t at = 0; at != text.npos;) {
    const std::size_t comma = text.find(", ", at);
    v.words.push_back(text.substr(at, comma == text.npos ? comma : comma - at));
    at = comma == text.npos ? comma : comma + 2;
  }
  v.list = v.words.size() > 1;
  return v;
}

}  // namespace

TrainingProvenance origin_of(const JobConfig& config, std::vector<DataFile> data, std::string version) {
  TrainingProvenance o{.data = std::move(data), .version = std::move(version)};
  for (const Setting& s : settings_of(config)) o.settings[s.key] = s.text;
  return o;
}

JobConfig config_of(const TrainingProvenance& origin) {
  JobConfig c;
  const std::vector<std::string> known = known_keys();
  std::vector<KeyValue> values;
  for (const auto& [key, text] : origin.settings) {
    if (text.empty() || std::ranges::find(known, key) == known.end()) continue;
    if (key == "model.hf")
      c.experiment.hf = text;  // the folder may be gone: the model's other keys say what was in it
    else
      values.push_back(value_of(key, text));
  }
  std::ranges::stable_sort(values, {}, [](const KeyValue& v) { return turn_of(v.key); });
  for (const KeyValue& v : values) apply(c, v);
  return c;
}

ResumeDifferences differences(const TrainingProvenance& was, const JobConfig& now, const std::vector<DataFile>& data,
                              bool anew) {
  ResumeDifferences out;
  for (const Setting& s : settings_of(now)) {
    const auto found = was.settings.find(s.key);
    if (found == was.settings.end() || found->second == as_kept(s.text)) continue;
    std::string text = fmt::format("{} is {}, was {}", s.key, quoted(s.text), quoted(found->second));
    if (!may_change(s.resumed, was, anew))
      out.refused.push_back(std::move(text));
    else
      out.said.push_back(std::move(text));
  }
  if (!anew && !was.data.empty()) compare_data(was.data, data, out);
  return out;
}

}  // namespace trellis::train
