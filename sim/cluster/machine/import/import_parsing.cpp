#include "sim/cluster/machine/import/import_parsing.h"

#include "text/number_parsing.h"
#include "text/words.h"

namespace trellis::sim {

Chip import_count(std::string_view name, std::string_view what, std::string_view text) {
  constexpr Chip most = 1 << 21;
  const auto value = text::number<Chip>(text, 1, most);
  if (!value) refuse_import(name, "'{}' as {}: expected 1 to {}", text, what, most);
  return *value;
}

double import_number(std::string_view name, std::string_view what, std::string_view text, bool zero) {
  constexpr double most = 1e15;
  const auto value = text::number<double>(text, 0, most);
  if (!value || (*value == 0 && !zero)) refuse_import(name, "'{}' as {}: expected a number above 0", text, what);
  return *value;
}

std::vector<std::string_view> import_list(std::string_view text, char separator) {
  std::vector<std::string_view> parts = text::split(text, separator);
  for (std::string_view& part : parts) part = text::trimmed(part);
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
