// The Recorder turns moves between places into each rank's program, with the order that the moves need. Where a data
// chunk lies at a moment (the caller's input, the output, scratch) is its business, so that an algorithm is written
// once for in place and out of place. Given one rank it records that rank alone and forgets the rest.
#pragma once
#include <functional>
#include <optional>

#include "schedule/counts.h"
#include "schedule/hazards.h"
#include "schedule/scratch.h"

namespace trellis::schedule {

// `data` numbers the chunks of the larger buffer, wherever each lies; the others are the buffers themselves.
enum class Region : std::uint8_t { data, input, output, scratch };

struct Place {
  Rank rank = 0;
  Region region = Region::data;
  std::int64_t first = 0;
  std::int64_t count = 1;
  std::int64_t like =
      -1;  // scratch: the data chunk that its first chunk is as large as; negative: the one of its number
};

// Shown a program in the making after each step that is added to it; false: the rest is not wanted.
using Watch = std::function<bool(const Program&)>;

class Recorder {
 public:
  explicit Recorder(const Task&, std::optional<Rank> only = {}, Watch watch = {});

  void copy(const Place& from, const Place& to, int channel);
  void copy_twice(const Place& from, const Place& to, const Place& also, int channel);
  void reduce(const Place& from, const Place& to, int channel);
  void reduce_both(const Place& a, const Place& b, const Place& a_waits, const Place& b_waits, int channel);
  void reduce_all(std::span<const Place> sources, const Place& to, int channel);
  void settle(const Place&, int channel);  // brings all chunks of the place together, where a write to it would go

  struct Unwanted {};  // thrown by whatever adds a step that the watch wants no more after

  const Task& task() const { return task_; }
  std::optional<Rank> only() const { return only_; }
  int channels() const { return channels_; }
  // Steps of one round that do not depend on each other are listed sends first, so that ranks that are alike get
  // programs that are alike, in whichever order the ranks were gone through.
  void next_round() { ++round_; }
  std::vector<Program> finish();  // settles what the collective wants, orders the rounds, packs the scratch

 private:
  struct Owner {  // one rank's program in the making
    Rank rank = 0;
    Cells cells;
    std::int64_t input_start = 0, input_end = 0;    // the data chunks that the input holds
    std::int64_t output_start = 0, output_end = 0;  // and the output
    Program program;
    std::vector<std::int32_t> rounds;  // of each step
    Hazards hazards;
    Labels labels;          // of scratch, before packing
    Counts sent, received;  // transfers so far, by peer and channel
  };
  struct Part {  // a run of data chunks that lie in one buffer; `held` is false where nothing was ever put
    Buffer buffer = Buffer::input;
    Hazards::Run data;
    bool held = true;
  };
  Owner* owner(Rank);  // null when this rank is not recorded
  std::optional<Buffer> lies_in(const Owner&, Hazards::Run data) const;
  std::vector<Part> locate(const Owner&, Hazards::Run data) const;
  Slice slice(const Owner&, const Place&, Buffer) const;
  Slice source(Owner&, const Place&, int channel);
  Slice home(Owner&, const Place&) const;
  void gather_at(Owner&, const Place&, const Slice& home, int channel);
  void add(Owner&, Step, std::span<const Slice> further = {});
  End next(Counts&, Rank peer, int channel) const;
  void transfer(const Place& from, const Place& to, bool adding, int channel);
  void send(const Place& from, Rank to, int channel, Rank also = -1);
  void receive(const Place& to, Rank from, bool adding, int channel);
  void receive_beside(const Place& to, Rank from, const Place& waits, int channel);

  Task task_;
  std::optional<Rank> only_;
  Watch watch_;
  std::vector<Owner> owners_;
  std::vector<std::int32_t> after_;  // reused from step to step
  std::int64_t steps_ = 0;
  std::int32_t round_ = 0;
  int channels_ = 1;
};

}  // namespace trellis::schedule
