#include "sim/machine/import/text.h"

#include <charconv>
#include <cmath>

namespace trellis::sim {

Chip import_count(std::string_view name, std::string_view what, std::string_view text) {
  constexpr Chip most = 1 << 21;
  Chip value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 1 || value > most)
    refuse_import(name, "'{}' as {}: expected 1 to {}", text, what, most);
  return value;
}

double import_number(std::string_view name, std::string_view what, std::string_view text, bool zero) {
  constexpr double most = 1e15;
  double value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !(value >= 0 && value <= most) ||
      (value == 0 && !zero))
    refuse_import(name, "'{}' as {}: expected a number above 0", text, what);
  return value;
}

std::string_view import_trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first == text.npos ? "" : text.substr(first, text.find_last_not_of(" \t\r\n") + 1 - first);
}

std::vector<std::string_view> import_list(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(separator, at), text.size());
    parts.push_back(import_trimmed(text.substr(at, end - at)));
    at = end + 1;
  }
  return parts;
}

void import_xml(std::string_view name, std::string_view text, const char* root, pugi::xml_document& document) {
  const pugi::xml_parse_result result = document.load_buffer(text.data(), text.size());
  if (!result) refuse_import(name, "byte {}: {}", result.offset, result.description());
  if (std::string_view(document.document_element().name()) != root)
    refuse_import(name, "<{}> where <{}> was expected", document.document_element().name(), root);
}

// Not recursive, so that any depth of elements is safe.
std::vector<pugi::xml_node> import_elements(const pugi::xml_node& top, std::string_view element) {
  std::vector<pugi::xml_node> found;
  pugi::xml_node at = top;
  while (at) {
    if (at.type() == pugi::node_element && at.name() == element) found.push_back(at);
    if (at.first_child()) {
      at = at.first_child();
      continue;
    }
    while (at != top && !at.next_sibling()) at = at.parent();
    at = at == top ? pugi::xml_node() : at.next_sibling();
  }
  return found;
}

}  // namespace trellis::sim
