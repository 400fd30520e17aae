#include "tools/program/table.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <stdexcept>

namespace trellis::tools {
namespace {

Table prices() {
  Table table("price", {left("algorithm"), {"size", "B"}, {"time", "s"}, {"bus bw", "B/s"}, {"proved"}});
  table.add({"ring", std::int64_t{1048576}, 0.0000123, 46.2e9, true});
  table.add({"ré", std::int64_t{8}, 0.0, 999.99999, false});
  return table;
}

TEST(Table, TextIsAlignedAndCarriesPrefixes) {
  EXPECT_EQ(prices().text(),
            "algorithm  size (B)     time     bus bw  proved\n"
            "ring        1048576  12.3 us  46.2 GB/s     yes\n"
            "ré                8      0 s     1 kB/s      no\n");
}

TEST(Table, JsonNamesTheUnitInTheKey) {
  EXPECT_EQ(prices().object().dump(2), R"({
  "price": [
    {
      "algorithm": "ring",
      "size_bytes": 1048576,
      "time_us": 12.3,
      "bus_bw_GBps": 46.2,
      "proved": true
    },
    {
      "algorithm": "ré",
      "size_bytes": 8,
      "time_us": 0.0,
      "bus_bw_GBps": 9.999999900000001e-07,
      "proved": false
    }
  ]
})");
}

TEST(Table, NoRowsIsStillATable) {
  const Table empty("price", {{"time", "s"}});
  EXPECT_EQ(empty.text(), "time\n");
  EXPECT_EQ(empty.object().dump(2), "{\n  \"price\": []\n}");
}

TEST(Table, ARowOfAnotherLengthIsAMistake) {
  Table table("price", {{"time"}});
  EXPECT_THROW(table.add({1.0, 2.0}), std::invalid_argument);
}

}  // namespace
}  // namespace trellis::tools
