// Shared parts of the machine importers: building machine text, amounts with units, XML.
#pragma once

#include <fmt/format.h>

#include <pugixml.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "sim/cluster/machine/machine.h"

namespace trellis::sim {

// Builds the text of a machine file line by line. read() parses it like any other machine file.
class MachineFileBuilder {
 public:
  explicit MachineFileBuilder(std::string_view name) : name_(name) {}

  void level(std::string_view kind, std::string_view name, std::string_view dims) {
    text_ += fmt::format("level {} {} {}\n", kind, name, dims);
  }
  void cluster(std::string_view kind, std::string_view name) { text_ += fmt::format("cluster {} {}\n", kind, name); }
  void rate(std::string_view key, double bytes_per_second, std::string_view source) {
    text_ += fmt::format("{} = {} B/s | documented | {}\n", key, bytes_per_second, source);
  }
  void latency(std::string_view key, double nanoseconds, std::string_view source) {
    text_ += fmt::format("{} = {} ns | documented | {}\n", key, nanoseconds, source);
  }
  void line(std::string_view figure) { text_ += fmt::format("{}\n", figure); }

  MachineSpec read() const { return read_machine(name_, text_); }

 private:
  std::string name_, text_;
};

template <class... T>
[[noreturn]] void refuse_import(std::string_view name, fmt::format_string<T...> format, T&&... values) {
  throw std::invalid_argument(fmt::format("{}: {}", name, fmt::format(format, std::forward<T>(values)...)));
}

// A count that is valid for a Machine. Throws invalid_argument with the name of what it counts.
Chip import_count(std::string_view name, std::string_view what, std::string_view text);
// A finite number above 0, or also 0 if `zero`.
double import_number(std::string_view name, std::string_view what, std::string_view text, bool zero = false);
std::vector<std::string_view> import_list(std::string_view text, char separator);  // items are trimmed

// Throws invalid_argument with the byte if it is not XML, or if the root is not the wanted one.
void import_xml(std::string_view name, std::string_view text, const char* root, pugi::xml_document&);

// All elements of one name, in document order.
std::vector<pugi::xml_node> import_elements(const pugi::xml_node&, std::string_view element);

}  // namespace trellis::sim
