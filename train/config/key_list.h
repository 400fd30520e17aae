// What a configuration's key does, and the lists of keys.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "train/config/job_config.h"
#include "train/config/key_value.h"
#include "train/config/keys.h"

namespace trellis::train {

struct Key {
  std::string name;
  std::function<std::string(JobConfig&, const KeyValue&)> apply;
};

template <class Get>
Key key(std::string name, Get get) {
  return {std::move(name), [get](JobConfig& c, const KeyValue& v) {
            parse(v, get(c));
            return std::string();
          }};
}

// It is read, and makes no difference: a word on why.
inline Key idle(std::string name, std::string why) {
  return {name,
          [name, why](JobConfig&, const KeyValue&) { return fmt::format("{} has no effect here: {}", name, why); }};
}

// One value alone is served.
inline Key only(std::string name, std::vector<std::string> served, std::string why) {
  return {std::move(name), [served, why](JobConfig&, const KeyValue& v) -> std::string {
            if (std::ranges::find(served, word(v)) == served.end())
              refuse(v, fmt::format("{}; {}", fmt::join(served, " or "), why));
            return "";
          }};
}

// The whole section is refused.
inline Key absent(std::string name, std::string why) {
  return {name, [name, why](JobConfig&, const KeyValue&) -> std::string {
            throw std::invalid_argument(fmt::format("{}: {}", name, why));
          }};
}

std::vector<Key> model_keys();
std::vector<Key> optimizer_keys();

}  // namespace trellis::train
