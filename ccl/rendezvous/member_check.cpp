#include "ccl/rendezvous/member_check.h"

#include <fmt/format.h>

#include <optional>

#include "net/sha256.h"
#include "text/number_parsing.h"
#include "text/refuse.h"

namespace trellis::ccl {
namespace {

constexpr const char *all_together = "", *all_apart = "apart";

std::string here(Rank r) { return fmt::format("here/{}", r); }

// The first member's note, which tells its terms to the others: "0 2 ranks over loopback".
std::string note_of(const MemberCheck& roll) { return fmt::format("{} {}", roll.mine, roll.terms); }

// How the terms differ; empty: they do not.
std::string difference(const MemberCheck& mine, const std::string& firsts) {
  std::string_view terms = firsts;
  const std::optional<Rank> first = text::take_number<Rank>(terms);
  if (!first || !terms.starts_with(' '))
    text::refuse("the store's note '{}' is not what a first {} writes", firsts, mine.noun);
  terms.remove_prefix(1);
  if (terms == mine.terms) return "";
  return fmt::format("{} {} was told of {}, and {} {} of {}", mine.noun, mine.mine, mine.terms, mine.noun, *first,
                     terms);
}

// The first rank that has not come. One of the waiting ranks looks for it and tells the others.
std::optional<Rank> missing(Store& store, Rank ranks) {
  constexpr std::chrono::seconds others_patience{2};
  try {
    if (store.add("looked", 1) != 1)
      return text::number<Rank>(text_of(store.get("missing", Clock::now() + others_patience)));
  } catch (const TimedOut&) {
    return std::nullopt;
  }
  for (Rank r = 0; r < ranks; ++r) try {
      store.get(here(r), Clock::now());
    } catch (const TimedOut&) {
      store.set("missing", net::bytes_of(std::to_string(r)));
      return r;
    }
  return std::nullopt;
}

}  // namespace

bool check_members(Store& store, const MemberCheck& roll, Deadline deadline) {
  if (store.add(here(roll.mine), 1) != 1)
    text::refuse("{} {} has joined already: two were told the same {}, or the store has served others before",
                 roll.noun, roll.mine, roll.noun);
  const bool leads = store.add("come", 1) == 1;
  std::string other;
  if (leads) {
    store.set("place", net::bytes_of(roll.place));
    store.set("first", net::bytes_of(note_of(roll)));
  } else {
    other = difference(roll, text_of(store.get("first", deadline)));
    if (text_of(store.get("place", deadline)) != roll.place) store.add("apart", 1);
  }
  if (!other.empty())
    store.set("all", net::bytes_of(other));  // wakes the waiting members
  else if (store.add("arrived", 1) == roll.members)
    store.set("all", net::bytes_of(store.add("apart", 0) == 0 ? all_together : all_apart));
  std::string said;
  try {
    said = text_of(store.get("all", deadline));
  } catch (const TimedOut&) {
    if (const auto r = missing(store, roll.members))
      throw PeerLost(*r, -1, fmt::format("{} {} did not join in time", roll.noun, *r));
    throw;
  }
  if (said != all_together && said != all_apart) {
    refused_together(store, roll.mine);
    throw std::invalid_argument(said);
  }
  return said == all_apart;
}

void refused_together(Store& store, Rank mine) {
  constexpr std::chrono::seconds for_the_others{1};
  try {
    if (store.add("know", 1) >= store.add("come", 0)) store.set("all know", {});
    if (mine == 0) store.get("all know", Clock::now() + for_the_others);
  } catch (const std::exception&) {  // waiting is a courtesy: the caller throws its own error next
  }
}

}  // namespace trellis::ccl
