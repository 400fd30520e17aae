#include "tools/train/config_file.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <stdexcept>

#include "sim/figures/nearest.h"
#include "tools/program/output.h"
#include "train/config/keys.h"

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
    if (!each.IsScalar()) throw std::invalid_argument(fmt::format("{}: expected a list of words", key));
    v.words.push_back(each.Scalar());
  }
  return v;
}

class Reading {
 public:
  Reading(ReadConfig& out, std::string name) : out_(out), name_(std::move(name)), known_(train::known_keys()) {}

  void section(const std::string& path, const YAML::Node& node) {
    for (const auto& entry : node) {
      const YAML::Node &key = entry.first, &below = entry.second;
      if (!key.IsScalar())
        throw std::invalid_argument(fmt::format("{}: expected a word as a key", place_of(key, name_)));
      const std::string whole = path.empty() ? key.Scalar() : path + "." + key.Scalar();
      const bool known = std::ranges::find(known_, whole) != known_.end();
      if (known) {
        set(value_of(whole, below), place_of(key, name_));
      } else if (!train::is_section(whole)) {
        unknown(whole, place_of(key, name_));
      } else if (below.IsMap()) {
        section(whole, below);
      } else if (!below.IsNull()) {
        throw std::invalid_argument(
            fmt::format("{}: {} is a section: expected keys below it", place_of(key, name_), whole));
      }
    }
  }

  void set(const train::KeyValue& value, const std::string& place) {
    try {
      if (std::string note = train::apply(out_.job, value); !note.empty()) out_.notes.push_back(std::move(note));
    } catch (const std::invalid_argument& e) {
      throw std::invalid_argument(fmt::format("{}: {}", place, e.what()));
    }
  }

  void change(const std::string& text) {
    const std::size_t equals = text.find('=');
    if (equals == text.npos) throw std::invalid_argument(fmt::format("--set {}: expected KEY=VALUE", text));
    const std::string key = text.substr(0, equals), place = "--set " + text;
    if (std::ranges::find(known_, key) == known_.end()) unknown(key, place);
    try {
      set(value_of(key, YAML::Load(text.substr(equals + 1))), place);
    } catch (const YAML::Exception& e) {
      throw std::invalid_argument(fmt::format("{}: {}", place, e.msg));
    }
  }

 private:
  [[noreturn]] void unknown(const std::string& key, const std::string& place) const {
    std::string near = sim::nearest(key, known_);
    // A key of another section is meant as well as a misspelt one.
    for (const std::string& each : known_)
      if (near.empty() && each.substr(each.rfind('.') + 1) == key.substr(key.rfind('.') + 1)) near = each;
    throw std::invalid_argument(
        fmt::format("{}: no key '{}'{}", place, key,
                    near.empty() ? "; `trellis train --keys` lists them" : fmt::format("; did you mean '{}'?", near)));
  }

  ReadConfig& out_;
  std::string name_;
  std::vector<std::string> known_;
};

}  // namespace

ReadConfig parse_config(const std::string& name, const std::string& text, const std::vector<std::string>& changes) {
  ReadConfig out;
  Reading reading(out, name);
  try {
    const YAML::Node root = YAML::Load(text);
    if (!root.IsNull() && !root.IsMap())
      throw std::invalid_argument(fmt::format("{}: expected sections with keys", name));
    reading.section("", root);
  } catch (const YAML::Exception& e) {
    throw std::invalid_argument(fmt::format("{}, line {}: {}", name, e.mark.line + 1, e.msg));
  }
  for (const std::string& change : changes) reading.change(change);
  return out;
}

ReadConfig read_config(const std::string& path, const std::vector<std::string>& changes) {
  return parse_config(path, read_input(path), changes);
}

}  // namespace trellis::tools
