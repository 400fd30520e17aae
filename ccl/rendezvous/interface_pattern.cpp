#include "ccl/rendezvous/interface_pattern.h"

#include <algorithm>

namespace trellis::ccl {
namespace {

bool take(std::string_view& text, char first) {
  const bool taken = text.starts_with(first);
  if (taken) text.remove_prefix(1);
  return taken;
}

// Empty entries, as in "eth0,", match nothing.
bool matches_entry(std::string_view entry, bool exact, std::string_view name) {
  if (take(entry, '=') || exact) return !entry.empty() && name == entry;
  return !entry.empty() && name.starts_with(entry);
}

bool is_in_list(std::string_view list, bool exact, std::string_view name) {
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(','), list.size());
    if (matches_entry(list.substr(0, end), exact, name)) return true;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return false;
}

}  // namespace

bool matches_interface(std::string_view pattern, std::string_view name) {
  if (pattern.empty()) return true;
  const bool excludes = take(pattern, '^');
  const bool exact = take(pattern, '=');
  return is_in_list(pattern, exact, name) != excludes;
}

}  // namespace trellis::ccl
