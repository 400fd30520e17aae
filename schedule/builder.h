// What an algorithm writes to: it says what moves between which places of the whole machine, and each rank's program
// comes out with its sends, receives and order. A Builder can be a window onto part of a machine and of its chunks, so
// that one algorithm runs inside another without knowing.
#pragma once
#include <algorithm>
#include <memory>
#include <numeric>

#include "schedule/recorder.h"

namespace trellis::schedule {

// Places, by the buffer they lie in: `count` chunks from `first` on.
constexpr Place data(Rank r, std::int64_t first, std::int64_t count = 1) { return {r, Region::data, first, count}; }
constexpr Place in(Rank r, std::int64_t first, std::int64_t count = 1) { return {r, Region::input, first, count}; }
constexpr Place out(Rank r, std::int64_t first, std::int64_t count = 1) { return {r, Region::output, first, count}; }

// Scratch for what is as large as the data chunks from `like` on; negative: as large as those of the same numbers.
constexpr Place tmp(Rank r, std::int64_t first, std::int64_t count = 1, std::int64_t like = -1) {
  return {r, Region::scratch, first, count, like};
}

// Where an inner algorithm's chunks of one region lie: its chunk j stands for chunks j*grain.. of a sequence that
// `digits` lay out over the outer region, innermost digit first.
struct Window {
  struct Digit {
    std::int64_t size = 1;
    std::int64_t stride = 1;
    std::int64_t shift = 0;  // this digit begins at `shift` and comes round to it
  };
  Region region = Region::data;
  std::int64_t base = 0;
  std::int64_t grain = 1;
  std::vector<Digit> digits = {};  // empty: one after the other
};

// Part of a machine: ranks first, first + stride, ..., or those that dims count through; and where its chunks lie. Its
// scratch is as finely cut as its data.
struct Part {
  struct Dim {
    Rank size = 1, stride = 1;
  };
  Rank first = 0;
  Rank stride = 1;
  Rank count = 1;
  Window data = {}, input = {}, output = {};
  std::int64_t scratch = 0;    // the number that its own scratch begins with here
  std::vector<Dim> dims = {};  // innermost first, instead of `stride`

  Rank outer(Rank inner) const;
  Rank inner(Rank outer) const;  // -1: it is not in it
};

class Builder {
 public:
  Builder(Recorder& recorder, Rank ranks)
      : recorder_(&recorder), ranks_(ranks), scratch_used_(std::make_shared<std::int64_t>(0)) {}

  void copy(Place from, Place to);                    // to = from
  void copy_twice(Place from, Place to, Place also);  // to = also = from: one read, two writes, other ranks
  void reduce(Place from, Place to);                  // to = to + from
  // a = b = a + b, of the same chunks of two ranks. Where a sum would come over what is being sent, what arrives waits
  // in the scratch of this number.
  void reduce_both(Place a, Place b, std::int64_t waits);
  void reduce_all(const std::vector<Place>& sources, Place to);  // to = the sum in that order, all on to's rank
  void settle(Place);                                            // bring these chunks together in one buffer

  Rank ranks() const { return ranks_; }
  bool everyone() const { return !recorder_->only(); }  // all programs are wanted, not just one rank's
  bool in_place() const;                                // what is written to the output overwrites the input
  Builder on_channel(int channel) const;  // what moves through it moves on this channel, counted from ours
  Builder part(const Part&) const;
  Builder beside(int builders, int number) const;               // one of so many that have no channel in common
  std::int64_t scratch_used() const { return *scratch_used_; }  // scratch numbers from here on are free so far

  // Begins a round and gives the ranks that a loop over senders must visit: all, or, when one rank's program is wanted,
  // that rank and those that send to it, which each function given names (a Rank, negative for none, or a list).
  template <class... SenderOf>
  std::vector<Rank> senders(SenderOf... sender_of) const {
    recorder_->next_round();
    if (!recorder_->only()) {
      std::vector<Rank> all(ranks_);
      std::iota(all.begin(), all.end(), 0);
      return all;
    }
    const Rank me = wanted_rank();
    if (me < 0) return {};
    std::vector<Rank> some{me};
    (append(some, sender_of(me)), ...);
    std::ranges::sort(some);
    some.erase(std::unique(some.begin(), some.end()), some.end());
    return some;
  }
  void pass_rounds(int rounds) const;  // instead of so many loops over senders in which the wanted rank has no part
  Rank wanted_rank() const;  // whose program is wanted, in our numbering; -1 when it is everyone's, or nobody's here

 private:
  static void append(std::vector<Rank>& list, Rank r) {
    if (r >= 0) list.push_back(r);
  }
  static void append(std::vector<Rank>& list, const std::vector<Rank>& more) {
    list.insert(list.end(), more.begin(), more.end());
  }
  std::int64_t counted_from(const Place&) const;
  std::optional<Place> as_one(Place) const;        // of the recorder's places; none: it is several runs of these
  std::vector<Place> resolve(const Place&) const;  // as such runs
  void resolve(const Place&, std::vector<Place>&) const;
  template <class Move>
  void each_run(const Place& from, const Place& to, Move move) const;

  Recorder* recorder_;
  Rank ranks_ = 1;
  int channel_ = 0;
  int spacing_ = 1;  // of the channels that are asked for
  std::shared_ptr<std::int64_t> scratch_used_;
  std::shared_ptr<const Builder> parent_;  // what we are a part of
  std::shared_ptr<const Part> part_;
};

}  // namespace trellis::schedule
