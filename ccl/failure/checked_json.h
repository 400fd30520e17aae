// Reads JSON from outside and rejects every unexpected value with a clear message.
#pragma once

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace trellis::ccl {

// Throws invalid_argument when the text is not JSON.
nlohmann::json parsed(std::string_view text);

// One part of a JSON document; refers to the whole. Every function throws invalid_argument that names the part, its
// value and what was expected.
class CheckedJson {
 public:
  static constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();

  explicit CheckedJson(const nlohmann::json& value, const char* key = "a value") : value_(value), key_(key) {}
  bool has(const char* key) const { return value_.is_object() && value_.contains(key); }
  CheckedJson part(const char* key) const;
  std::int64_t as_number(std::int64_t least, std::int64_t greatest = most) const;
  std::string as_words() const;  // for messages; unprintable characters, which could reach a terminal, become '?'
  std::int64_t number(const char* key, std::int64_t least, std::int64_t greatest = most) const {
    return part(key).as_number(least, greatest);
  }
  std::string words(const char* key) const { return part(key).as_words(); }
  void require_list(const char* key) const;

  // The elements of a list, in order; none if the part is missing.
  template <class Take>
  void each(const char* key, Take take) const {
    if (!has(key)) return;
    require_list(key);
    for (const nlohmann::json& one : value_.at(key)) take(CheckedJson(one, key));
  }

 private:
  const nlohmann::json& value_;
  const char* key_;
};

}  // namespace trellis::ccl
