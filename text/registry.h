// Entries by name: each source file that defines one adds it before main, by a constant at namespace scope.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/nearest.h"

namespace trellis::text {

template <class Entry>
class Registry {
 public:
  using Entries = std::map<std::string, Entry, std::less<>>;

  // `noun` is what messages call an entry: "algorithm".
  explicit Registry(std::string noun, std::string Entry::*name = &Entry::name) : noun_(std::move(noun)), name_(name) {}

  void add(Entry entry) {
    std::string name = entry.*name_;
    const auto [at, added] = entries_.try_emplace(std::move(name), std::move(entry));
    if (!added) throw std::logic_error(fmt::format("{} '{}' is registered twice", noun_, at->first));
  }

  const Entries& entries() const { return entries_; }

  const Entry* find(std::string_view name) const {
    const auto found = entries_.find(name);
    return found == entries_.end() ? nullptr : &found->second;
  }

  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& [name, entry] : entries_) all.push_back(name);
    return all;
  }

  // Throws invalid_argument: "no algorithm is called 'rung': expected one of ring, torus". `said`: words to put before
  // the name instead of "no algorithm is called".
  const Entry& named(std::string_view name, std::string_view said = {}) const {
    if (const Entry* found = find(name)) return *found;
    throw std::invalid_argument(fmt::format("{} '{}': expected one of {}{}",
                                            said.empty() ? fmt::format("no {} is called", noun_) : std::string(said),
                                            name, fmt::join(names(), ", "), did_you_mean(name, names())));
  }

 private:
  std::string noun_;
  std::string Entry::*name_;
  Entries entries_;
};

}  // namespace trellis::text
