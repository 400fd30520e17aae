// The ProgramRecorder turns moves between places into each rank's program with the dependencies that the moves need. It
// tracks where each data chunk currently lies (input, output or scratch), so that an algorithm is written once for in
// place and out of place. Given one rank, it records only that rank.
#pragma once
#include <functional>
#include <optional>

#include "schedule/builder/counter_map.h"
#include "schedule/builder/hazard_tracker.h"
#include "schedule/builder/place.h"
#include "schedule/builder/scratch.h"

namespace trellis::schedule {

// A larger schedule would not fit in the memory of an ordinary machine.
inline constexpr std::int64_t most_steps_written = 30'000'000;

class ProgramRecorder {
 public:
  // Sees a program after each step that is added. Returns false to stop recording.
  using Watch = std::function<bool(const Program&)>;
  explicit ProgramRecorder(const Task&, std::optional<Rank> only = {}, Watch = {});

  void copy(const ChunkPlace& from, const ChunkPlace& to, int channel);
  void copy_twice(const ChunkPlace& from, const ChunkPlace& to, const ChunkPlace& also, int channel);
  void reduce(const ChunkPlace& from, const ChunkPlace& to, int channel);
  void reduce_both(const ChunkPlace& a, const ChunkPlace& b, const ChunkPlace& a_waits, const ChunkPlace& b_waits,
                   int channel);
  void reduce_all(std::span<const ChunkPlace> sources, const ChunkPlace& to, int channel);
  void settle(const ChunkPlace&, int channel);  // gathers the chunks where a write to this place would go

  struct Unwanted {};  // thrown after a step for which the watch returned false

  const Task& task() const { return task_; }
  std::optional<Rank> only() const { return only_; }
  int channels() const { return channels_; }
  // Steps of one round that don't depend on each other are listed sends first. So ranks of one class get equal
  // programs, whatever order the ranks were visited in.
  void next_round() { ++round_; }
  std::vector<Program> finish();  // settles the collective's results, orders rounds, packs scratch

 private:
  struct Owner {  // one rank's program under construction
    Rank rank = 0;
    Cells cells;
    std::int64_t input_start = 0, input_end = 0;    // the data chunks in the input
    std::int64_t output_start = 0, output_end = 0;  // and in the output
    Program program;
    std::vector<std::int32_t> rounds;  // per step
    HazardTracker hazards;
    ScratchSizes labels;        // sizes of scratch chunks, before packing
    CounterMap sent, received;  // transfers so far, by peer and channel
  };
  struct Part {  // a run of data chunks in one buffer; `held` is false if nothing was stored there
    Buffer buffer = Buffer::input;
    HazardTracker::Run data;
    bool held = true;
  };
  Owner* owner(Rank);  // null if this rank is not recorded
  std::optional<Buffer> lies_in(const Owner&, HazardTracker::Run data) const;
  std::vector<Part> locate(const Owner&, HazardTracker::Run data) const;
  Slice slice(const Owner&, const ChunkPlace&, Buffer) const;
  Slice source(Owner&, const ChunkPlace&, int channel);
  Slice home(Owner&, const ChunkPlace&) const;
  void gather_at(Owner&, const ChunkPlace&, const Slice& home, int channel);
  void add(Owner&, Step, std::span<const Slice> further = {});
  End next(CounterMap&, Rank peer, int channel) const;
  void transfer(const ChunkPlace& from, const ChunkPlace& to, bool adding, int channel);
  void send(const ChunkPlace& from, Rank to, int channel, Rank also = -1);
  void receive(const ChunkPlace& to, Rank from, bool adding, int channel);
  void receive_beside(const ChunkPlace& to, Rank from, const ChunkPlace& waits, int channel);

  Task task_;
  std::optional<Rank> only_;
  Watch watch_;
  std::vector<Owner> owners_;
  std::vector<std::int32_t> after_;  // reused for each step
  std::int64_t steps_ = 0;
  std::int32_t round_ = 0;
  int channels_ = 1;
};

}  // namespace trellis::schedule
