// Options that ask an algorithm for a schedule, and the grammars of their values.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "schedule/algorithms/algorithm.h"
#include "tools/program/cli_app.h"

namespace trellis::tools {

struct RequestOptions {
  std::string algorithm;
  std::string dims;
  std::optional<schedule::Rank> root;  // default: rank 0
  std::optional<schedule::Rank> peer;  // default: the last rank
  std::string pairs;
  bool in_place = false;
  std::optional<std::int32_t> channels, segments;  // default: 1
  std::string levels;
  std::string order;
  std::string numbering;
};

void add_request_options(CLI::App&, RequestOptions&);
std::string first_given(
    const RequestOptions&);  // "--dims" when it is the first option that was given; "" when none was

// The request to the algorithm. Throws std::invalid_argument with the value, as do the parsers below.
struct AlgorithmRequest {
  const schedule::Algorithm* algorithm = nullptr;
  schedule::Request request;
};
AlgorithmRequest asked(schedule::Collective, const RequestOptions&);
// Splits a config in `algorithm`, "torus@4x4^1.0*2", into the options' fields.
RequestOptions with_config(RequestOptions);
// The collective itself, before any algorithm: root, peer, pairs, in place, on so many ranks.
schedule::Request request_of(schedule::Collective, const RequestOptions&, std::vector<schedule::Rank> dims);
std::string in_words(const AlgorithmRequest&);  // "all_reduce by ring on 4x4, in place, 2 channels"

// Above so many ranks even one rank's program is refused: its chunks could not be numbered.
inline constexpr schedule::Rank most_ranks = 1 << 24;

std::string shape_text(const std::vector<schedule::Rank>& dims);       // "4x4"
std::vector<schedule::Rank> parse_shape(std::string_view text);        // "8", "4x4x4"
std::vector<schedule::Pair> parse_pairs(std::string_view text);        // "0:1,1:2"
std::vector<std::string> parse_names(std::string_view text);           // "direct,ring"
std::vector<std::int32_t> parse_order(std::string_view text);          // "1.0.2"
std::vector<schedule::Rank> parse_rank_counts(std::string_view text);  // "1..17,32,64": ascending, each once
struct IndexSpan {
  std::int32_t first = 0, last = 0;
};
IndexSpan parse_span(std::string_view text);  // "3..7", "5"

}  // namespace trellis::tools
