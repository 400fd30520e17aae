// A workload, a trace of one, or a schedule from a file, played on a simulated machine.
#pragma once

#include <string>
#include <vector>

#include "tools/noise.h"
#include "tools/subject.h"

namespace trellis::tools {

struct Playing {
  TypedFile file;  // *.et: a Chakra trace; *.xml, *.json, or begun as a schedule: one; else a workload
  std::string machine, bytes, algorithm, era, memory, output;
  std::vector<std::string> what_if = {};
  double tflops = 0;
  bool json = false, packets = false, in_place = false;
  NoiseOptions noise = {};
};

// What a command's help says of such files.
inline constexpr const char* workload_grammar =
    "A name that ends in .et is a Chakra trace, one file a rank (step.0.et stands for step.1.et and so on, too); in\n"
    ".xml an MSCCL algorithm, and in .json an MSCCL++ plan; these, and schedules in Trellis's own text, are proved "
    "before\nthey run on --bytes. Any other file is a workload, a task a line:\n"
    "  ranks 16\n"
    "  group tp 0-3 4-7 8-11 12-15\n"
    "  compute forward 1.2TFLOP 300MB\n"
    "  all_reduce sums 64MB on tp after forward\n"
    "  compute backward 240us after sums\n"
    "  all_reduce gradients 512MiB after backward stream data\n"
    "Further words of a task: `by ALGORITHM`, which may say how it goes (`by torus@4x4*2`, `by file:found.schedule`), "
    "`root\nRANK`, `from RANK to RANK` (send_recv), `stream NAME`: a rank does the tasks of one stream in order.";

// Prints what it takes, and writes the timeline where one is asked for; the exit status.
int play_file(const Playing&);

}  // namespace trellis::tools
