// One rank's program as the executor runs it: a flat list of steps with their places in memory, in elements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ccl/layout.h"
#include "ccl/origins.h"

namespace trellis::ccl {

using Rank = schedule::Rank;

// A run of elements of one of the buffers.
struct Place {
  schedule::Buffer buffer = schedule::Buffer::input;
  std::size_t first = 0;
  std::size_t elements = 0;
};

// Elements of a place, from where the last such run ends, whose values have one origin.
struct OriginRun {
  std::size_t elements = 0;
  std::size_t first = 0;  // element of the contributions' input
  std::uint64_t of = 0;   // see Origin
  bool rounds = false;
};

// A step's places again, as runs of Compiled::runs.
struct StepRuns {
  schedule::Range from = {}, to = {};
  std::uint32_t further = 0;  // the first of one for each of its further places, in Compiled::further_runs
};

struct FlatStep {
  schedule::Op op = schedule::Op::copy;
  Place to = {}, from = {};
  std::uint32_t further = 0;  // first of its places in Compiled::places
  std::uint32_t further_count = 0;
  std::uint32_t follows = 0;  // first of the steps that wait for it, in Compiled::followers
  std::uint32_t follow_count = 0;
  std::int32_t origin = 0;  // the step's number in the schedule's program
  std::uint32_t mark = 0;   // added to the job's
};

// What a step has before it, as it changes while the program runs.
struct Ahead {
  std::uint32_t waits = 0;  // for so many other steps
  std::uint32_t ends = 1;   // a send to two places ends twice
};

// The messages that go one way over one lane, in order.
struct Line {
  Rank peer = 0;
  std::int32_t lane = 0;
  bool receives = false;
  std::uint32_t first = 0;  // in Compiled::messages
  std::uint32_t count = 0;
};

struct Compiled {
  std::vector<FlatStep> steps;
  std::vector<Ahead> ahead;  // of each step; the start of each run's own copy
  std::vector<Place> places;
  std::vector<std::uint32_t> followers;
  std::vector<std::uint32_t> messages;  // steps, line by line
  std::vector<Line> lines;
  std::vector<std::uint32_t> first;  // local steps that wait for nothing
  std::size_t scratch_elements = 0;
  std::size_t input_elements = 0, output_elements = 0;

  // Where origins were asked for; else empty.
  std::vector<StepRuns> step_runs;
  std::vector<schedule::Range> further_runs;
  std::vector<OriginRun> runs;
  schedule::Range output_runs = {};
};

// lanes: that the transport has for schedules; a schedule's channels share them. `aligned`: see Layout.
Compiled compile(const schedule::Task&, const schedule::Program&, Rank, const Counts&, std::size_t aligned, int lanes,
                 const Origins* = nullptr);

// Whether every rank could run its program with the messages of each lane strictly in order, as lanes are: no step is
// then waited for by an earlier message of its own lane.
bool runs_in_order(const schedule::Schedule&, int lanes);

}  // namespace trellis::ccl
