// Programs of all-to-all rounds: in each, every rank sends one message to every other rank, and what it sends depends
// only on what it has received in earlier rounds. Between ranks that share memory, a round is one write and n-1 reads:
// ccl/transports/segment/all_to_all_exchange.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "schedule/algorithms/algorithm.h"
#include "schedule/algorithms/algorithm_config.h"

namespace trellis::ccl {

struct CompiledProgram;

struct ExchangeRounds {
  static constexpr std::uint32_t none = UINT32_MAX;
  struct Round {
    bool same = false;        // all ranks are sent the same elements
    bool may_stay = false;    // what is sent stays unchanged until all have read it, so they may read it in place
    std::int32_t chunks = 0;  // of the largest message
    // The step that sums up the messages, if nothing else reads them: it may read them where they are. `summed` has the
    // rank whose message each of its sources is; -1: it is no message.
    std::uint32_t sum = none;
    std::vector<schedule::Rank> summed = {};
  };
  schedule::Rank ranks = 0;
  std::vector<Round> rounds = {};                        // empty: the program is not of this form
  std::vector<std::uint32_t> sends = {}, receives = {};  // steps, by round and by the other rank; unused for the own

  bool empty() const { return rounds.empty(); }
  std::uint32_t send(std::size_t round, schedule::Rank to) const { return sends[index(round, to)]; }
  std::uint32_t receive(std::size_t round, schedule::Rank from) const { return receives[index(round, from)]; }
  // The bytes of all of a rank's messages of the largest round, if no chunk has more than `chunk_bytes`.
  std::size_t bytes(std::size_t chunk_bytes) const;

 private:
  std::size_t index(std::size_t round, schedule::Rank r) const {
    return round * static_cast<std::size_t>(ranks) + static_cast<std::size_t>(r);
  }
};

// Whether all ranks' programs are alike, so that all of them are of this form if one is.
bool alike_on_all(const schedule::AlgorithmConfig&, const schedule::Request&);

ExchangeRounds rounds_of(const CompiledProgram&, const schedule::Program&, schedule::Rank rank, schedule::Rank ranks);

}  // namespace trellis::ccl
