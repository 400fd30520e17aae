#include "train/config/config_key.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "text/refuse.h"

namespace trellis::train {

ConfigKey also(std::string name, std::string same_as) {
  return {.name = std::move(name), .same_as = std::move(same_as)};
}

ConfigKey idle(std::string name, std::string why) {
  return {.name = name, .apply = [name, why](JobConfig&, const KeyValue&) {
            return fmt::format("{} has no effect here: {}", name, why);
          }};
}

ConfigKey only(std::string name, std::vector<std::string> served, std::string why) {
  return {.name = std::move(name), .apply = [served, why](JobConfig&, const KeyValue& v) -> std::string {
            std::string said = word(v);
            for (const char* truth : {"true", "false"})  // as Python writes them
              if (said.size() > 1 && said.substr(1) == truth + 1 && std::tolower(said[0]) == truth[0]) said = truth;
            if (std::ranges::find(served, said) == served.end())
              refuse(v, fmt::format("{}; {}", fmt::join(served, " or "), why));
            return "";
          }};
}

ConfigKey absent(std::string name, std::string why) {
  return {.name = name,
          .apply = [name, why](JobConfig&, const KeyValue&) -> std::string { text::refuse("{}: {}", name, why); }};
}

}  // namespace trellis::train
