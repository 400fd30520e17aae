// An AlgorithmConfig names how to do a collective: an algorithm with its channels, segments, view of the ranks, and
// inner algorithms. Also the text form that tables, tools and tuners use.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "schedule/collective.h"

namespace trellis::schedule {

struct Request;

struct AlgorithmConfig {
  std::string algorithm;
  std::int32_t channels = 1, segments = 1;
  std::vector<std::string> levels = {};  // Request::levels
  std::vector<Rank> dims = {};           // Request::dims; empty: those of the caller
  std::vector<std::int32_t> order = {};  // Request::order
  std::vector<Rank> numbering = {};      // Request::numbering
  auto operator<=>(const AlgorithmConfig&) const = default;
};

// Prefix for a schedule file; the rest is its path. Such a config has no other fields.
inline constexpr std::string_view file_prefix = "file:";

// "torus dims=4x16 order=(1,0) channels=2", "hierarchical levels=(mesh,ring) dims=4x2 numbering=(0,5,1-4,6,7)".
std::string text_of(const AlgorithmConfig&);
// The inverse. Also reads the short form that needs no quotes in a shell: "torus@4x16^1.0*2", which is
// ALGORITHM[(LEVEL,...)][@DIMS][^ORDER][~NUMBERING][*CHANNELS][/SEGMENTS]. Throws invalid_argument.
AlgorithmConfig algorithm_config_named(std::string_view);
// Without channels and segments: "hierarchical levels=(mesh,ring) dims=4x16".
std::string family_of(const AlgorithmConfig&);
// The text of the config at the beginning of a line, up to the first word that is not a part of it.
std::string_view config_at_start_of(std::string_view line);

// "0.5.1-4", "0-6+2.1-7+2": ranks, and runs of them with their stride. The inverse also takes commas, and throws
// invalid_argument.
std::string numbering_text(const std::vector<Rank>&);
std::vector<Rank> numbering_named(std::string_view);

// Splits at commas outside parentheses. Throws invalid_argument if parentheses don't match.
std::vector<std::string> split_at_commas(std::string_view);

// `rest` with the fields of the config filled in.
Request request_by(const AlgorithmConfig&, Request rest);

}  // namespace trellis::schedule
