#include "tools/machine/sweep_journal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <set>
#include <stdexcept>
#include <string_view>
#include <system_error>

#include "text/refuse.h"
#include "tools/program/output.h"

namespace trellis::tools {

using sim::ConfigCost;
using sim::SweepSpec;

namespace {

constexpr std::size_t fingerprint_digits = 16;

// The first line of a file of points begins with a machine's fingerprint; it may have been cut off.
bool may_be_points(std::string_view text) {
  const std::string_view first = text.substr(0, text.find('\n'));
  const std::size_t digits = std::min(first.find_first_not_of("0123456789abcdef"), first.size());
  return digits == first.size() ? digits <= fingerprint_digits : digits == fingerprint_digits && first[digits] == ' ';
}

}  // namespace

SweepJournal::SweepJournal(std::string path, const sim::Machine& machine, const std::string& era,
                           const ccl::LaunchedProcess& launched)
    : path_(std::move(path)), fingerprint_(sim::fingerprint(machine.spec(), era)) {
  if (path_.empty()) return;
  own_ = launched.rank == 0 ? path_ : fmt::format("{}.{}", path_, launched.rank);
  const std::string text = std::filesystem::exists(own_) ? read_input(own_) : "";
  if (!may_be_points(text))
    text::refuse("--points {}: something else is in this file: expected a new one, or one of an earlier sweep", own_);
  const int named_here = own_ == path_ ? 0 : O_NOFOLLOW;  // a link is followed only where the user named the file
  file_ = net::Descriptor(open(own_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | named_here, 0666));
  if (file_.number() < 0) throw std::system_error(errno, std::generic_category(), own_);
  if (!text.empty() && text.back() != '\n') append("\n");  // ends a line that was cut off
}

// This file, and those beside it with the same name and a number.
std::vector<std::string> SweepJournal::paths() const {
  std::vector<std::string> found;
  const std::filesystem::path whole = std::filesystem::absolute(path_);
  const std::string begin = whole.filename().string() + ".";
  for (const auto& entry : std::filesystem::directory_iterator(whole.parent_path())) {
    const std::string name = entry.path().filename().string();
    const bool numbered = name.size() > begin.size() && name.starts_with(begin) &&
                          name.find_first_not_of("0123456789", begin.size()) == name.npos;
    if (numbered || entry.path() == whole) found.push_back(entry.path().string());
  }
  return found;
}

template <class Read>
std::vector<ConfigCost> SweepJournal::all(const SweepSpec& s, const Read& read) const {
  std::vector<ConfigCost> all;
  if (path_.empty()) return all;
  for (const std::string& path : paths()) {
    try {
      const std::vector<ConfigCost> some = read(read_input(path), fingerprint_, s);
      all.insert(all.end(), some.begin(), some.end());
    } catch (const std::invalid_argument& error) {
      text::refuse("{}: damaged: {}; take that line out", path, error.what());
    }
  }
  return all;
}

std::vector<ConfigCost> SweepJournal::known(const SweepSpec& s) const { return all(s, sim::read_points); }
std::vector<ConfigCost> SweepJournal::slower(const SweepSpec& s) const { return all(s, sim::read_slower); }

void SweepJournal::keep(const SweepSpec& s, const ConfigCost& c) {
  if (!path_.empty()) append(sim::point_line(fingerprint_, s, c));
}

void SweepJournal::keep_slower(const SweepSpec& s, const ConfigCost& c) {
  if (!path_.empty()) append(sim::slower_line(fingerprint_, s, c));
}

void SweepJournal::join(const SweepSpec& s) {
  if (path_.empty()) return;
  std::set<std::pair<sim::AlgorithmConfig, double>> here;
  for (const ConfigCost& c : sim::read_points(read_input(own_), fingerprint_, s)) here.insert({c.config, c.bytes});
  for (const ConfigCost& c : known(s))
    if (here.insert({c.config, c.bytes}).second) keep(s, c);
}

void SweepJournal::append(const std::string& line) {
  const ssize_t done = write(file_.number(), line.data(), line.size());
  if (done != static_cast<ssize_t>(line.size())) throw std::system_error(errno, std::generic_category(), own_);
}

namespace {

// The configs that lack a cost for some size.
std::vector<sim::AlgorithmConfig> missing_configs(const SweepSpec& s, const std::vector<ConfigCost>& known) {
  std::map<sim::AlgorithmConfig, std::set<double>> sizes;
  for (const ConfigCost& c : known) sizes[c.config].insert(c.bytes);
  std::vector<sim::AlgorithmConfig> missing;
  for (const sim::AlgorithmConfig& config : s.configs)
    if (std::ranges::any_of(s.sizes, [&](double bytes) { return !sizes[config].contains(bytes); }))
      missing.push_back(config);
  return missing;
}

}  // namespace

std::vector<ConfigCost> shared_sweep(const sim::Machine& machine, const SweepSpec& s, sim::SweepControl control,
                                     SweepJournal& points, const ccl::LaunchedProcess& launched) {
  const auto priced = [&](std::vector<sim::AlgorithmConfig> configs) {
    SweepSpec part = s;
    part.configs = std::move(configs);
    control.known = points.known(part);
    return sim::sweep(machine, part, control);
  };
  const auto stopped = [&] { return control.stopped && control.stopped(); };
  if (launched.ranks == 1) {
    std::vector<ConfigCost> all = priced(s.configs);
    points.join(s);
    return all;
  }
  std::vector<sim::AlgorithmConfig> own;
  for (std::size_t i = 0; i < s.configs.size(); ++i)
    if (i % static_cast<std::size_t>(launched.ranks) == static_cast<std::size_t>(launched.rank))
      own.push_back(s.configs[i]);
  priced(std::move(own));
  if (launched.rank > 0) return {};
  while (!stopped()) {
    std::vector<sim::AlgorithmConfig> missing = missing_configs(s, points.known(s));
    if (missing.empty()) break;
    const auto some = static_cast<std::size_t>(std::max(1, control.threads));
    if (missing.size() > some) missing.erase(missing.begin(), missing.end() - static_cast<std::ptrdiff_t>(some));
    priced(std::move(missing));
  }
  points.join(s);
  control.known = points.known(s);
  control.stopped = [] { return true; };
  return sim::sweep(machine, s, control);
}

}  // namespace trellis::tools
