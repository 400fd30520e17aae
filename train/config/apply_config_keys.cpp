#include "train/config/apply_config_keys.h"

#include <algorithm>
#include <iterator>

#include "text/refuse.h"
#include "train/config/config_key.h"

namespace trellis::train {
namespace {

const std::vector<ConfigKey>& keys() {
  static const std::vector<ConfigKey> all = [] {
    std::vector<ConfigKey> made;
    for (const auto& list : {trainer_keys, experiment_keys, strategy_keys, data_keys, model_keys, experts_keys,
                             optimizer_keys, foreign_keys, other_keys})
      std::ranges::move(list(), std::back_inserter(made));
    return made;
  }();
  return all;
}

const ConfigKey& named(std::string_view name) {
  const auto found = std::ranges::find(keys(), name, &ConfigKey::name);
  if (found == keys().end()) text::refuse("'{}' is no key", name);
  return found->same_as.empty() ? *found : named(found->same_as);
}

}  // namespace

std::vector<std::string> known_keys() {
  std::vector<std::string> names;
  for (const ConfigKey& k : keys()) names.push_back(k.name);
  return names;
}

std::string canonical_key(std::string_view name) { return named(name).name; }

bool is_section(std::string_view key) {
  return std::ranges::any_of(keys(), [&](const ConfigKey& k) {
    return k.name.size() > key.size() && k.name.starts_with(key) && k.name[key.size()] == '.';
  });
}

std::string apply(JobConfig& config, const KeyValue& value) {
  const ConfigKey& key = named(value.key);
  if (value.null) return "";
  return key.apply(config, value);
}

int turn_of(std::string_view key) { return named(key).turn; }

void check_values(const JobConfig& config) {
  for (const ConfigKey& k : keys())
    if (k.check) k.check(config);
}

std::vector<Setting> settings_of(const JobConfig& config) {
  std::vector<Setting> all;
  for (const ConfigKey& k : keys())
    if (k.text && k.resumed != ChangeOnResume::silent) all.push_back({k.name, k.text(config), k.resumed});
  return all;
}

}  // namespace trellis::train
