#include "tools/layouts/layout_journal.h"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>

#include "text/refuse.h"
#include "text/words.h"
#include "tools/program/output.h"

namespace trellis::tools {
namespace {

using nlohmann::json;

constexpr const char* key = "layouts_searched_for";

}  // namespace

LayoutJournal::LayoutJournal(std::string path, const std::string& fingerprint) : path_(std::move(path)) {
  if (path_.empty()) return;
  const std::string text = std::filesystem::exists(path_) ? read_input(path_) : "";
  const auto refuse = [&](const char* what) {
    text::refuse("--points {}: {}: expected a new file, or one of an earlier search for the same", path_, what);
  };
  std::size_t number = 0;
  for (const std::string_view line : text::split(text, '\n')) {
    if (text::trimmed(line).empty()) continue;
    const json j = json::parse(line, nullptr, false);
    if (number++ == 0) {
      if (!j.is_object() || !j.contains(key)) refuse("something else is in this file");
      if (j[key] != fingerprint) refuse("it is of another model, machine, software or build of trellis");
      continue;
    }
    // A line that was cut off is skipped: its layout is priced again.
    if (!j.is_object() || !j.contains("layout") || !j["layout"].is_string()) continue;
    try {
      PricedLayout l;
      l.time = j.at("time_ps").get<sim::Time>(), l.memory = j.at("memory_bytes").get<double>();
      l.fits = j.at("fits").get<bool>(), l.mfu = j.at("mfu").get<double>();
      l.parts = j.at("parts").get<std::map<std::string, double>>();
      if (l.time > 0) known_[j["layout"].get<std::string>()] = std::move(l);
    } catch (const json::exception&) {
      continue;
    }
  }
  if (number == 0)
    append(json{{key, fingerprint}}.dump() + "\n");
  else if (text.back() != '\n')
    append("\n");
}

bool LayoutJournal::known(PricedLayout& l) const {
  const auto found = known_.find(words_of(l.layout));
  if (found == known_.end()) return false;
  const PricedLayout& k = found->second;
  l.time = k.time, l.memory = k.memory, l.fits = k.fits, l.mfu = k.mfu, l.parts = k.parts;
  return true;
}

void LayoutJournal::keep(const PricedLayout& l) {
  if (path_.empty()) return;
  append(json{{"layout", words_of(l.layout)},
              {"time_ps", l.time},
              {"memory_bytes", l.memory},
              {"fits", l.fits},
              {"mfu", l.mfu},
              {"parts", l.parts}}
             .dump() +
         "\n");
}

void LayoutJournal::append(const std::string& line) const {
  std::ofstream file(path_, std::ios::app | std::ios::binary);
  file << line << std::flush;
  if (!file) throw std::system_error(errno, std::generic_category(), path_);
}

}  // namespace trellis::tools
