// A way of doing a collective: an algorithm with its lanes and parts, how it is to see the ranks, and what it is made
// of; and the one text that tables, tools and tuners write it in.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "schedule/collective.h"

namespace trellis::schedule {

struct Request;

struct Way {
  std::string algorithm;
  std::int32_t channels = 1, segments = 1;
  std::vector<std::string> levels = {};  // Request::levels
  std::vector<Rank> dims = {};           // Request::dims; empty: as whoever runs it has them
  std::vector<std::int32_t> order = {};  // Request::order
  auto operator<=>(const Way&) const = default;
};

// An algorithm that begins so is a schedule's file, and the rest its path; such a way has nothing else.
inline constexpr std::string_view file_way = "file:";

std::string text_of(const Way&);    // "ring*2/4", "torus@4x16^1.0", "hierarchical(mesh,ring)@4x16*2"
Way way_named(std::string_view);    // the reverse; throws invalid_argument
std::string family_of(const Way&);  // without lanes and parts: "hierarchical(mesh,ring)@4x16"

// At the commas that no parentheses enclose; throws invalid_argument where these don't match.
std::vector<std::string> split_at_commas(std::string_view);

// The rest of the request, done in this way.
Request request_by(const Way&, Request rest);

}  // namespace trellis::schedule
