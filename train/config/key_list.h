// What a configuration's key does, and the lists of keys.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "train/config/job_config.h"
#include "train/config/keys.h"
#include "train/config/parse_value.h"

namespace trellis::train {

struct Key {
  std::string name;
  std::function<std::string(JobConfig&, const KeyValue&)> apply;
};

// get: the address of the setting.
template <class Get>
Key key(std::string name, Get get) {
  return {std::move(name), [get](JobConfig& c, const KeyValue& v) {
            parse(v, *get(c));
            return std::string();
          }};
}

Key idle(std::string name, std::string why);                                   // it is read, and makes no difference
Key only(std::string name, std::vector<std::string> served, std::string why);  // one of these values alone
Key absent(std::string name, std::string why);                                 // the whole section is refused

std::vector<Key> model_keys();
std::vector<Key> optimizer_keys();

}  // namespace trellis::train
