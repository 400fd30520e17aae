#include "tools/program/provenance.h"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "launch/remote_shell.h"
#include "text/number_parsing.h"
#include "text/refuse.h"
#include "text/words.h"

namespace trellis::tools {
namespace {

Facts& facts() {
  static Facts all;
  return all;
}

std::optional<std::time_t> wanted_date() {
  constexpr std::time_t most = 253'402'300'799;  // the last second of the year 9999
  const char* const seconds = std::getenv("SOURCE_DATE_EPOCH");
  if (seconds == nullptr || *seconds == '\0') return std::nullopt;
  const auto date = text::number<std::time_t>(seconds, 0, most);
  if (!date) text::refuse("SOURCE_DATE_EPOCH={}: expected seconds since 1970, from 0 to {}", seconds, most);
  return date;
}

std::string date_text(std::time_t seconds) {
  std::tm parts = {};
  gmtime_r(&seconds, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday,
                     parts.tm_hour, parts.tm_min, parts.tm_sec);
}

std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name")) return std::string(text::trimmed(line.substr(line.find(':') + 1)));
  return "";
}

std::string host_text() {
  utsname about = {};
  uname(&about);
  const std::string model = processor();
  return fmt::format("{}, {} CPUs{}{}, {} {}", about.nodename, std::thread::hardware_concurrency(),
                     model.empty() ? "" : " of ", model, about.sysname, about.machine);
}

}  // namespace

std::string shell_word(const std::string& word) {
  const auto plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("-_=+:,./@%^").find(c) != std::string_view::npos;
  };
  if (!word.empty() && std::ranges::all_of(word, plain)) return word;
  return launch::shell_word(word);
}

void begin_origin(const std::string& version, const std::vector<std::string>& arguments) {
  std::string command = "trellis";
  for (const std::string& word : arguments) command += " " + shell_word(word);
  const std::optional<std::time_t> wanted = wanted_date();
  facts() = {{"program", "trellis " + version}, {"command", command}};
  if (!wanted) facts().emplace_back("host", "");  // origin() fills it in
  facts().emplace_back("date", date_text(wanted.value_or(std::time(nullptr))));
}

void note_origin(const std::string& name, const std::string& value) {
  std::erase_if(facts(), [&](const auto& fact) { return fact.first == name; });
  if (!value.empty()) facts().emplace_back(name, value);
}

Facts origin() {
  for (auto& [name, value] : facts())
    if (name == "host" && value.empty()) value = host_text();
  return facts();
}

std::string origin_comment(std::string_view mark) {
  std::string text;
  for (const auto& [name, value] : origin()) {
    std::string line = value;
    std::ranges::replace(line, '\n', ' ');
    text += fmt::format("{}{}: {}\n", mark, name, line);
  }
  return text;
}

nlohmann::ordered_json origin_json() {
  nlohmann::ordered_json all = nlohmann::ordered_json::object();
  for (const auto& [name, value] : origin()) all[name] = value;
  return all;
}

}  // namespace trellis::tools
