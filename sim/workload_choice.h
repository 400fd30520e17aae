// Which algorithm runs a workload's collective, and its pattern, made once for all that are alike.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "sim/choice.h"
#include "sim/workload.h"
#include "sim/workload_play.h"

namespace trellis::sim {

struct Chosen {
  std::string words;                       // the way, "ring@16*2"
  std::shared_ptr<const Pattern> pattern;  // null: stopped before there was one
  double chunk_bytes = 0;                  // where chunks are one element or none
  Time alone = 0;                          // by price, where nothing else is under way
};

class Choices {
 public:
  Choices(const Machine& machine, const PlayOptions& options) : machine_(machine), options_(options) {}

  // The named way, or the best by price: of all that serve, or of those of the named algorithm.
  // Groups that lie alike have the same. `members`: never empty. Throws invalid_argument.
  const Chosen& choose(const Part&, const std::vector<Rank>& members);

 private:
  using Key = std::tuple<schedule::Collective, double, Rank, Rank, std::string, const void*, std::vector<Rank>>;

  Chosen chosen(const Part&, const std::vector<Rank>& members) const;

  const Machine& machine_;
  const PlayOptions& options_;
  std::map<Key, Chosen> chosen_;
};

}  // namespace trellis::sim
