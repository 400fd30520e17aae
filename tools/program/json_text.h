// Prints JSON, and adds its origin: version, command line, machine and so on. Names and messages may hold bytes that
// are not UTF-8, which JSON does not allow: each is replaced by U+FFFD.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "tools/program/provenance.h"

namespace trellis::tools {

// An object gets one more entry, "made_by".
template <class Json>
std::string json_text(Json json, int indent = 2) {
  if (json.is_object())
    if (auto made_by = origin_json(); !made_by.empty()) json["made_by"] = std::move(made_by);
  return json.dump(indent, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace trellis::tools
