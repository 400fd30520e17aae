// Prints JSON. Names and messages may hold bytes that are not UTF-8, which JSON does not allow: each is replaced by
// U+FFFD.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace trellis::tools {

template <class Json>
std::string json_text(const Json& json, int indent = 2) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace trellis::tools
