#include "ccl/failure/checked_json.h"

#include <stdexcept>

#include "text/refuse.h"

namespace trellis::ccl {

using nlohmann::json;

json parsed(std::string_view text) {
  json value = json::parse(text, nullptr, false);
  if (value.is_discarded()) throw std::invalid_argument("it is not JSON");
  return value;
}

CheckedJson CheckedJson::part(const char* key) const {
  if (!has(key)) text::refuse("'{}' is missing", key);
  return CheckedJson(value_.at(key), key);
}

std::int64_t CheckedJson::as_number(std::int64_t least, std::int64_t greatest) const {
  const bool fits = value_.is_number_unsigned() ? value_.get<std::uint64_t>() <= static_cast<std::uint64_t>(most)
                                                : value_.is_number_integer();
  if (!fits || value_.get<std::int64_t>() < least || value_.get<std::int64_t>() > greatest)
    text::refuse("'{}' is {}: expected a whole number from {} to {}", key_,
                 value_.is_number() ? value_.dump() : value_.type_name(), least, greatest);
  return value_.get<std::int64_t>();
}

std::string CheckedJson::as_words() const {
  if (!value_.is_string()) text::refuse("'{}' is {}: expected text", key_, value_.type_name());
  std::string all = value_.get<std::string>();
  for (char& c : all)
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7F') c = '?';
  return all;
}

void CheckedJson::require_list(const char* key) const {
  if (!has(key) || !value_.at(key).is_array()) text::refuse("'{}' is no list", key);
}

}  // namespace trellis::ccl
