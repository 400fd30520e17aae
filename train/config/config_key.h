// What a configuration's key does, and the lists of keys.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "train/config/apply_config_keys.h"
#include "train/config/job_config.h"
#include "train/config/parse_value.h"

namespace trellis::train {

// Upper bounds of values, for keys of several lists.
inline constexpr double most_side = 1 << 28;  // of a tensor, in elements
inline constexpr double most_steps = 1e15;    // every whole number up to it is a double

struct ConfigKey {
  std::string name;
  std::function<std::string(JobConfig&, const KeyValue&)> apply = {};
  ChangeOnResume resumed = ChangeOnResume::silent;
  std::function<std::string(const JobConfig&)> text = {};  // the setting's value; none: it is no setting
  std::function<void(const JobConfig&)> check = {};        // throws where a number is not in its range
  std::string same_as = {};                                // if set, this is only another name of that key
  int turn = 2;  // the turn in which the key is applied: 0 and 1 are for keys that also set what later ones set
};

template <class Get>
using SettingOf = std::remove_pointer_t<std::invoke_result_t<Get, JobConfig&>>;
template <class T>
concept Numeric = (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) ||
                  std::is_same_v<T, std::vector<std::size_t>> || std::is_same_v<T, std::vector<double>>;

// Makes the key of a setting that is no number. get: returns the address of the setting in a JobConfig, constant or
// not.
template <class Get>
requires(!Numeric<SettingOf<Get>>) ConfigKey key(std::string name, ChangeOnResume resumed, Get get) {
  return {.name = std::move(name),
          .apply =
              [get](JobConfig& c, const KeyValue& v) {
                parse(v, *get(c));
                return std::string();
              },
          .resumed = resumed,
          .text = [get](const JobConfig& c) { return text_of(*get(c)); }};
}

// The same for a number or a list of numbers, which must be in the range.
template <class Get>
requires Numeric<SettingOf<Get>> ConfigKey key(std::string name, ChangeOnResume resumed, AllowedRange range, Get get) {
  return {.name = name,
          .apply =
              [get, range](JobConfig& c, const KeyValue& v) {
                parse(v, *get(c), range);
                return std::string();
              },
          .resumed = resumed,
          .text = [get](const JobConfig& c) { return text_of(*get(c)); },
          .check =
              [get, range, name](const JobConfig& c) {
                const auto& value = *get(c);
                if (const std::string expected = misfit(value, range); !expected.empty())
                  throw std::invalid_argument(fmt::format("{} is {}: expected {}", name, text_of(value), expected));
              }};
}

// Makes the keys of a section.
struct KeySection {
  const char* name;
  ConfigKey operator()(const char* word, ChangeOnResume resumed, auto... rest) const {
    return key(fmt::format("{}.{}", name, word), resumed, std::move(rest)...);
  }
};

ConfigKey also(std::string name, std::string same_as);  // another name of a key
ConfigKey idle(std::string name, std::string why);      // it is read, and makes no difference
ConfigKey only(std::string name, std::vector<std::string> served, std::string why);  // other values are refused
ConfigKey absent(std::string name, std::string why);                                 // the whole section is refused

std::vector<ConfigKey> model_keys();
std::vector<ConfigKey> experts_keys();
std::vector<ConfigKey> optimizer_keys();
std::vector<ConfigKey> trainer_keys();
std::vector<ConfigKey> experiment_keys();
std::vector<ConfigKey> strategy_keys();
std::vector<ConfigKey> data_keys();
std::vector<ConfigKey> other_keys();
std::vector<ConfigKey> foreign_keys();  // of NxD Training, NeMo and Megatron, without a counterpart here

}  // namespace trellis::train
