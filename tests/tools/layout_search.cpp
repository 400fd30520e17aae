// The report of a search for layouts in which none fits.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "tools/layouts/layout_search_report.h"

namespace trellis::tools {
namespace {

TEST(LayoutSearchResult, WhatWasStoppedSaysNoMoreThanItLookedAt) {
  SearchedMachine m{.name = "trn1.32xlarge", .search = {.memory_of_rank = 16.0 * (1 << 30), .stopped = true}};
  EXPECT_NE(search_text(m, 5).find("no layout was priced before the search was stopped"), std::string::npos);
  m.search.too_large = 1;
  EXPECT_NE(search_text(m, 5).find("none of those looked at fits into 16.0 GiB a rank"), std::string::npos);
  m.search.stopped = false;
  EXPECT_NE(search_text(m, 5).find("none fits into 16.0 GiB a rank"), std::string::npos);
}

TEST(LayoutSearchResult, WhereNoLayoutIsPossibleItSaysWhy) {
  SearchedMachine m{.name = "trn1.2xlarge", .search = {.refusal = "T=1 P=1: too many micro-batches"}};
  EXPECT_NE(search_text(m, 5).find("no layout is possible: T=1 P=1: too many micro-batches\n"), std::string::npos);
  EXPECT_EQ(search_text(m, 5).find("fits into"), std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(search_json({m}, 5)).at("none_possible"), m.search.refusal);
}

SearchedMachine machine_with(const char* name, sim::Time time, double price) {
  SearchedMachine m{.name = name, .config = {}, .price = price};
  m.search.layouts.push_back({.layout = {}, .time = time, .fits = true, .mfu = 0.00561});
  m.config.global_batch_size = 4, m.config.seq_length = 8;
  return m;
}

// The front has the machines that no other beats. Two with equal values do not beat each other, so both are on it.
TEST(LayoutSearchResult, OfMachinesThatTieBothAreOnTheFront) {
  const auto fronts = [](const std::vector<SearchedMachine>& all) {
    std::string found;
    const auto parsed = nlohmann::json::parse(search_json(all, 1));
    for (const auto& row : parsed.at("best")) found += row.at("front").get<bool>() ? '+' : '-';
    return found;
  };
  EXPECT_EQ(fronts({machine_with("a", 100, 2), machine_with("b", 100, 2)}), "++");
  EXPECT_EQ(fronts({machine_with("a", 100, 2), machine_with("b", 100, 3)}), "+-");
  EXPECT_EQ(fronts({machine_with("a", 100, 2), machine_with("b", 90, 3)}), "++");
  EXPECT_EQ(fronts({machine_with("a", 100, 2), machine_with("b", 90, 2)}), "-+");
  SearchedMachine free = machine_with("a", 100, 2), other = machine_with("b", 100, 2);
  free.price = other.price = std::nullopt;
  EXPECT_EQ(fronts({free, other}), "++");
}

TEST(LayoutSearchResult, ProgramsReadNumbers) {
  const auto row = nlohmann::json::parse(search_json({machine_with("a", 100, 2)}, 1)).at("layouts").at(0);
  EXPECT_EQ(row.at("mfu"), 0.00561);
  EXPECT_TRUE(row.at("exposed").is_number() && row.at("idle").is_number() && row.at("cost_dollars").is_number()) << row;
}

}  // namespace
}  // namespace trellis::tools
