#include "tools/train/config_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <filesystem>
#include <stdexcept>

#include "text/nearest.h"
#include "text/printable.h"
#include "text/refuse.h"
#include "tools/program/output.h"
#include "tools/train/config_interpolation.h"
#include "train/config/apply_config_keys.h"
#include "train/config/hf/hf_config.h"

namespace trellis::tools {
namespace {

std::string place_of(const YAML::Node& node, const std::string& name) {
  return node.Mark().is_null() ? name : fmt::format("{}, line {}", name, node.Mark().line + 1);
}

train::KeyValue value_of(const std::string& key, const YAML::Node& node) {
  train::KeyValue v{.key = key, .words = {}};
  v.null = node.IsNull();
  if (node.IsScalar()) v.words.push_back(node.Scalar());
  if (!node.IsSequence()) return v;
  v.list = true;
  for (const YAML::Node& each : node) {
    if (!each.IsScalar()) text::refuse("{}: expected a list of words", key);
    v.words.push_back(each.Scalar());
  }
  return v;
}

// A key's value from the file or the command line, before ${...} is replaced.
struct Leaf {
  train::KeyValue value;
  std::string place;
};

class Reading {
 public:
  explicit Reading(std::string name) : name_(std::move(name)), known_(train::known_keys()) {}

  void section(const std::string& path, const YAML::Node& node) {
    for (const auto& entry : node) {
      const YAML::Node &key = entry.first, &below = entry.second;
      const std::string place = place_of(key, name_);
      if (!key.IsScalar()) {
        problems_.push_back(fmt::format("{}: expected a word as a key", place));
        continue;
      }
      const std::string whole = path.empty() ? key.Scalar() : path + "." + key.Scalar();
      remember(whole, below);
      if (is_known(whole)) {
        note_problem(place, [&] { leaves_.push_back({value_of(whole, below), place}); });
      } else if (!train::is_section(whole)) {
        problems_.push_back(unknown(whole, place));
      } else if (below.IsMap()) {
        section(whole, below);
      } else if (!below.IsNull()) {
        problems_.push_back(fmt::format("{}: {} is a section: expected keys below it", place, whole));
      }
    }
  }

  // Replaces what the file says, before other values refer to it.
  void change(const std::string& text) {
    const std::string place = "--set " + text;
    const std::size_t equals = text.find('=');
    if (equals == text.npos) return problems_.push_back(fmt::format("{}: expected KEY=VALUE", place));
    const std::string key = text.substr(0, equals);
    if (!is_known(key)) return problems_.push_back(unknown(key, place));
    note_problem(place, [&] {
      const train::KeyValue value = value_of(key, YAML::Load(text.substr(equals + 1)));
      values_[key] = value;
      std::erase_if(leaves_, [&](const Leaf& l) { return l.value.key == key; });
      leaves_.push_back({value, place});
    });
  }

  ReadConfig read(const train::JobConfig& begin) {
    ReadConfig out;
    out.job = begin;
    std::ranges::stable_sort(leaves_, {}, [](const Leaf& l) { return train::turn_of(l.value.key); });
    for (const Leaf& leaf : leaves_)
      note_problem(leaf.place, [&] {
        if (std::string note = train::apply(out.job, interpolated(leaf.value, values_)); !note.empty())
          out.notes.push_back(std::move(note));
      });
    note_problem(name_, [&] { train::complete(out.job); });
    if (problems_.size() == 1) throw std::invalid_argument(problems_[0]);
    if (!problems_.empty()) text::refuse("{} mistakes: {}", problems_.size(), fmt::join(problems_, "; "));
    return out;
  }

 private:
  bool is_known(const std::string& key) const { return std::ranges::find(known_, key) != known_.end(); }

  template <class Call>
  void note_problem(const std::string& place, const Call& call) {
    try {
      call();
    } catch (const std::invalid_argument& e) {
      problems_.push_back(fmt::format("{}: {}", place, e.what()));
    } catch (const YAML::Exception& e) {
      problems_.push_back(fmt::format("{}: {}", place, e.msg));
    }
  }

  // Keeps all values: ${...} may refer to keys that nothing reads.
  void remember(const std::string& path, const YAML::Node& node) {
    if (!node.IsMap()) {
      train::KeyValue v{.key = path, .words = {}, .list = node.IsSequence(), .null = node.IsNull()};
      if (node.IsScalar()) v.words.push_back(node.Scalar());
      for (std::size_t i = 0; node.IsSequence() && i < node.size(); ++i)
        if (node[i].IsScalar()) v.words.push_back(node[i].Scalar());
      values_[path] = std::move(v);
      return;
    }
    if (!is_known(path) && train::is_section(path)) return;  // its keys come one by one
    for (const auto& entry : node)
      if (entry.first.IsScalar()) remember(path + "." + entry.first.Scalar(), entry.second);
  }

  std::string unknown(const std::string& key, const std::string& place) const {
    std::string near = text::nearest(key, known_);
    // If no known key is spelt like it, the key may be in the wrong section: suggests a known one with the same last
    // part.
    for (const std::string& each : known_)
      if (near.empty() && each.substr(each.rfind('.') + 1) == key.substr(key.rfind('.') + 1)) near = each;
    return fmt::format(
        "{}: no key '{}'{}", place, key,
        near.empty() ? "; `trellis train --keys` lists them" : fmt::format("; did you mean '{}'?", near));
  }

  std::string name_;
  std::vector<std::string> known_;
  Values values_;
  std::vector<Leaf> leaves_;
  std::vector<std::string> problems_;
};

}  // namespace

ReadConfig parse_config(const std::string& name, const std::string& text, const std::vector<std::string>& changes,
                        const train::JobConfig& begin) {
  text::expect_text(name, text);
  Reading reading(name);
  try {
    const YAML::Node root = YAML::Load(text);
    if (!root.IsNull() && !root.IsMap())
      text::refuse("{}, line {}: expected sections with keys, as in examples/llama.yaml", name, root.Mark().line + 1);
    reading.section("", root);
  } catch (const YAML::Exception& e) {
    text::refuse("{}, line {}: {}", name, e.mark.line + 1, e.msg);
  }
  for (const std::string& change : changes) reading.change(change);
  return reading.read(begin);
}

std::string list_of(const std::vector<std::string>& notes) {
  return notes.size() < 2 ? fmt::format("{}", fmt::join(notes, ""))
                          : fmt::format("{} notes on the configuration:\n  {}", notes.size(), fmt::join(notes, "\n  "));
}

ReadConfig read_config(const std::string& path, const std::vector<std::string>& changes) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return parse_config(path, read_input(path), changes);
  if (!std::filesystem::exists(std::filesystem::path(path) / "config.json", error))
    text::refuse("{} is a folder without config.json: expected a configuration, or a folder of Hugging Face", path);
  train::JobConfig of_folder;
  of_folder.experiment.hf = path;
  of_folder.step.name = std::filesystem::canonical(path).filename().string();
  const std::string note = train::apply_hf_config(of_folder, path);
  ReadConfig read = parse_config(path, "", changes, of_folder);
  if (!note.empty()) read.notes.insert(read.notes.begin(), note);
  read.says_batch = std::ranges::any_of(
      changes, [](const std::string& change) { return change.starts_with("data.global_batch_size="); });
  return read;
}

void complete_batch(ReadConfig& read, train::Rank ranks) {
  train::StepConfig& c = read.job.step;
  const std::size_t together = c.sequences_together(ranks);
  if (read.says_batch || together == 0) return;  // 0: the number of ranks does not fit, which train::derive() refuses
  c.global_batch_size = together;
  if (c.global_batch_size > 1)
    read.notes.push_back(
        fmt::format("data.global_batch_size is {}, a micro-batch for each data-parallel rank, as nothing says it",
                    c.global_batch_size));
}

}  // namespace trellis::tools
