#include "sim/cluster/operation/program_time_cache.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>
#include <vector>

#include "net/sha256.h"
#include "text/number_parsing.h"
#include "text/words.h"

namespace trellis::sim {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view head = "trellis times 1 ", between = " = ";

// Parses the text of a file of times; none if it is damaged.
std::optional<std::map<std::string, Time>> times_of(std::string_view text) {
  const std::size_t end = text.find('\n');
  if (!text.starts_with(head) || end == text.npos) return {};
  const std::string_view body = text.substr(end + 1);
  if (text.substr(head.size(), end - head.size()) != net::short_digest(body)) return {};
  std::map<std::string, Time> times;
  for (const std::string_view line : text::split(body, '\n')) {
    const std::size_t at = line.find(between);
    if (line.empty()) continue;
    const auto time = at == line.npos ? std::nullopt : text::number<Time>(line.substr(at + between.size()), 0, forever);
    if (!time) return {};
    times.emplace(line.substr(0, at), *time);
  }
  return times;
}

std::string text_of(const std::map<std::string, Time>& times) {
  std::string body;
  for (const auto& [run, time] : times) body += fmt::format("{}{}{}\n", run, between, time);
  return fmt::format("{}{}\n{}", head, net::short_digest(body), body);
}

// Removes the least recently used files, among them drafts of processes that were killed.
void prune(const fs::path& folder) {
  std::vector<std::pair<fs::file_time_type, fs::path>> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const auto used = entry.last_write_time(error);
    if (!error && entry.is_regular_file(error)) files.emplace_back(used, entry.path());
  }
  if (files.size() <= ProgramTimeCache::most_files) return;
  std::ranges::sort(files);
  files.resize(files.size() - ProgramTimeCache::most_files);
  for (const auto& [used, path] : files) fs::remove(path, error);
}

}  // namespace

ProgramTimeCache::ProgramTimeCache(fs::path folder, const std::string& name) : folder_(std::move(folder)) {
  if (folder_.empty()) return;
  path_ = folder_ / (name + ".times");
  read();
  std::error_code error;
  fs::last_write_time(path_, fs::file_time_type::clock::now(), error);  // marks it as used, if it exists
}

void ProgramTimeCache::read() {
  std::ifstream file(path_, std::ios::binary);
  if (!file) return;
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (auto found = times_of(text))
    times_ = std::move(*found);
  else
    damage_ = fmt::format("{}: not as it was written: its times are found anew", path_.string());
}

std::optional<Time> ProgramTimeCache::find(const std::string& run) const {
  for (const auto* from : {&fresh_, &times_})
    if (const auto found = from->find(run); found != from->end()) return found->second;
  return {};
}

void ProgramTimeCache::add(const std::string& run, Time time) { fresh_[run] = time; }

void ProgramTimeCache::save() {
  if (fresh_.empty() || folder_.empty()) return;
  const std::string damage = damage_;
  read();  // what others have written
  damage_ = damage;
  std::map<std::string, Time> all = fresh_;
  for (const auto& [run, time] : times_)
    if (all.size() < most_times) all.emplace(run, time);
  while (all.size() > most_times) all.erase(all.begin());
  times_.merge(std::exchange(fresh_, {}));
  std::error_code error;
  fs::create_directories(folder_, error);
  const fs::path draft = fmt::format("{}.{}.{:08x}.part", path_.string(), getpid(), net::random_number() & 0xffffffffU);
  {
    std::ofstream file(draft, std::ios::binary);
    file << text_of(all);
    file.close();
    if (!file) {
      fs::remove(draft, error);
      return;
    }
  }
  fs::rename(draft, path_, error);
  if (error) fs::remove(draft, error);
  prune(folder_);
}

fs::path times_folder() {
  const auto of = [](const char* name) -> fs::path {
    const char* const value = std::getenv(name);
    return value == nullptr ? "" : value;
  };
  if (const fs::path own = of("TRELLIS_CACHE"); !own.empty()) return own / "times";
  if (const fs::path cache = of("XDG_CACHE_HOME"); cache.is_absolute()) return cache / "trellis" / "times";
  const fs::path home = of("HOME");
  return home.empty() ? fs::path() : home / ".cache" / "trellis" / "times";
}

}  // namespace trellis::sim
