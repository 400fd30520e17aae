// The Builder is what algorithms write to. They state moves between places of the whole machine; each rank's program
// with sends, receives and ordering is derived. A Builder may be a window onto part of the machine and of its chunks,
// so that an algorithm can run inside another one unchanged.
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "schedule/builder/place.h"

namespace trellis::schedule {

class ProgramRecorder;
class RankPermutation;

// Maps an inner algorithm's chunks of one region to the outer region. Inner chunk j is `grain` positions from j*grain
// on in a sequence that `digits` lay out over the outer region, innermost digit first.
struct ChunkWindow {
  struct Digit {
    std::int64_t size = 1;
    std::int64_t stride = 1;
    std::int64_t shift = 0;  // the digit counts from this value and wraps around
  };
  Region region = Region::data;
  std::int64_t base = 0;
  std::int64_t grain = 1;
  std::vector<Digit> digits = {};                     // empty: contiguous
  std::shared_ptr<const RankPermutation> names = {};  // of the last digit's values; null: unchanged
};

// A part of a machine: the ranks first, first + stride, ..., or the whole by other names, and where its chunks lie. Its
// scratch is cut as finely as its data.
struct SubMachine {
  Rank first = 0;
  Rank stride = 1;
  Rank count = 1;
  ChunkWindow data = {}, input = {}, output = {};
  std::int64_t scratch = 0;                           // outer number of its first scratch chunk
  std::shared_ptr<const RankPermutation> names = {};  // replaces `first` and `stride` if not null

  Rank outer(Rank inner) const;
  Rank inner(Rank outer) const;  // -1: not in this part
};

class Builder {
 public:
  Builder(ProgramRecorder& recorder, Rank ranks)
      : recorder_(&recorder), ranks_(ranks), scratch_used_(std::make_shared<std::int64_t>(0)) {}

  void copy(ChunkPlace from, ChunkPlace to);  // to = from
  void copy_twice(ChunkPlace from, ChunkPlace to,
                  ChunkPlace also);             // to = also = from: one read, two writes, on different ranks
  void reduce(ChunkPlace from, ChunkPlace to);  // to = to + from
  // a = b = a + b for the same chunks of two ranks. If the sum would overwrite data that is being sent, the received
  // data waits in scratch chunk number `waits`.
  void reduce_both(ChunkPlace a, ChunkPlace b, std::int64_t waits);
  void reduce_all(const std::vector<ChunkPlace>& sources,
                  ChunkPlace to);  // to = the sum in that order, all on to's rank
  void settle(ChunkPlace);         // gather these chunks in one buffer

  Rank ranks() const { return ranks_; }
  bool everyone() const;                  // all programs are built, not just one rank's
  bool in_place() const;                  // writing the output overwrites the input
  Builder on_channel(int channel) const;  // its moves use this channel, relative to this builder's
  Builder part(const SubMachine&) const;
  Builder beside(int builders, int number) const;  // number-th of `builders` builders with disjoint channels
  std::int64_t scratch_used() const { return *scratch_used_; }  // first scratch number that is still free

  // Begins a round and returns the ranks that a loop over senders must visit: all, or, if only one rank's program is
  // built, that rank and its senders. Each function returns the senders to a rank: a Rank (negative: none) or a list.
  template <class... SenderOf>
  std::vector<Rank> senders(SenderOf... sender_of) const {
    std::vector<Rank> visited = next_round();
    if (everyone() || visited.empty()) return visited;
    (append(visited, sender_of(visited.front())), ...);
    return sorted(std::move(visited));
  }
  void pass_rounds(int rounds) const;  // skips `rounds` loops over senders in which the wanted rank takes no part
  Rank wanted_rank() const;  // the rank being built, in this builder's numbering; -1: all ranks, or one outside

 private:
  static void append(std::vector<Rank>& list, Rank r) {
    if (r >= 0) list.push_back(r);
  }
  static void append(std::vector<Rank>& list, const std::vector<Rank>& more) {
    list.insert(list.end(), more.begin(), more.end());
  }
  std::vector<Rank> next_round() const;                // the ranks whose programs are built: all, one, or none
  static std::vector<Rank> sorted(std::vector<Rank>);  // each once
  std::int64_t counted_from(const ChunkPlace&) const;
  std::optional<ChunkPlace> as_one(ChunkPlace) const;        // in the recorder's places; none: several runs
  std::vector<ChunkPlace> resolve(const ChunkPlace&) const;  // as runs of the recorder's places
  void resolve(const ChunkPlace&, std::vector<ChunkPlace>&) const;
  template <class Move>
  void each_run(const ChunkPlace& from, const ChunkPlace& to, Move move) const;

  ProgramRecorder* recorder_;
  Rank ranks_ = 1;
  int channel_ = 0;
  int spacing_ = 1;  // between the channels of on_channel
  std::shared_ptr<std::int64_t> scratch_used_;
  std::shared_ptr<const Builder> parent_;  // the builder that this is a part of
  std::shared_ptr<const SubMachine> part_;
};

}  // namespace trellis::schedule
