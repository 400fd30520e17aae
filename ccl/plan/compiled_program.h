// One rank's compiled program, as the executor runs it: a flat list of steps with their places in memory, in elements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ccl/plan/chunk_layout.h"
#include "ccl/plan/contributing_ranks.h"
#include "ccl/plan/exchange_rounds.h"

namespace trellis::ccl {

using Rank = schedule::Rank;

// A range of elements of one buffer.
struct BufferRange {
  schedule::Buffer buffer = schedule::Buffer::input;
  std::size_t first = 0;
  std::size_t elements = 0;
};

// Consecutive elements of a place whose values have the same contributing ranks. A run begins where the previous one
// ends.
struct ContributorRun {
  std::size_t elements = 0;
  std::size_t first = 0;  // their first element in the input of the contributing ranks
  std::uint64_t of = 0;   // see ChunkContributors::of
  bool rounds = false;
};

// The contributors to the values at a step's places, as ranges of CompiledProgram::runs.
struct StepContributorRuns {
  schedule::Range from = {}, to = {};
  std::uint32_t further = 0;  // index in CompiledProgram::further_runs of the first of its further places' runs
};

struct CompiledStep {
  schedule::Op op = schedule::Op::copy;
  BufferRange to = {}, from = {};
  std::uint32_t further = 0;  // index of the first of its places in CompiledProgram::places
  std::uint32_t further_count = 0;
  std::uint32_t follows = 0;  // index in CompiledProgram::followers of the first step that waits for it
  std::uint32_t follow_count = 0;
  std::int32_t origin = 0;  // number of the step in the schedule's program
  std::uint32_t mark = 0;   // added to BoundProgram::mark
};

// What must happen before a step is done; changes while the program runs.
struct StepPrerequisites {
  std::uint32_t waits = 0;  // number of other steps that it waits for
  std::uint32_t ends = 1;   // number of its messages, 1 for a local step; a send to two ranks has two
};

// A line: the messages that go one way over one lane between this rank and one peer, in order.
struct LaneMessages {
  Rank peer = 0;
  std::int32_t lane = 0;
  bool receives = false;
  std::uint32_t first = 0;  // index in CompiledProgram::messages
  std::uint32_t count = 0;
};

// What a transport offers to carry the messages of schedules.
struct TransportCapabilities {
  int lanes = 1;                // per ordered pair of ranks; a schedule's channels share them
  std::size_t round_bytes = 0;  // room for a rank's messages of one all-to-all round; 0: there are no such rounds
};

struct CompiledProgram {
  std::vector<CompiledStep> steps;
  std::vector<StepPrerequisites> ahead;  // one per step; each run starts with its own copy
  std::vector<BufferRange> places;
  std::vector<std::uint32_t> followers;
  std::vector<std::uint32_t> messages;  // step numbers, grouped by line
  std::vector<LaneMessages> lines;      // those that receive come first, as the executor moves them in this order
  std::vector<std::uint32_t> first;     // local steps that wait for nothing
  ExchangeRounds rounds;                // empty: messages go over the lines
  std::size_t scratch_elements = 0;
  std::size_t input_elements = 0, output_elements = 0;

  // One per step if compile() was given contributors; otherwise empty.
  std::vector<StepContributorRuns> step_runs;
  std::vector<schedule::Range> further_runs;
  std::vector<ContributorRun> runs;
  schedule::Range output_runs = {};
};

// element: its size in bytes. Looks for all-to-all rounds unless round_bytes is 0. They may be used only if all ranks'
// programs are alike: otherwise some ranks could have rounds and others none.
CompiledProgram compile(const schedule::Task&, const schedule::Program&, Rank, const BlockCounts&, std::size_t element,
                        const TransportCapabilities&, const ProgramContributors* = nullptr);

}  // namespace trellis::ccl
