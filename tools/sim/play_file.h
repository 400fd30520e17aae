// Plays a workload or a trace of one from a file on a simulated machine.
#pragma once

#include <string>
#include <vector>

#include "tools/answer/noise.h"
#include "tools/schedule/schedule_source.h"

namespace trellis::tools {

struct PlayFileOptions {
  FileText file;  // *.et: a Chakra trace; else a workload
  std::string machine, algorithm, era, memory, output, figures = {};
  std::vector<std::string> what_if = {};
  double tflops = 0;
  bool json = false, tasks = false, unfolded = false;
  sim::NoiseOptions noise = {};
};

// For --help: the files that can be played.
inline constexpr const char* workload_grammar =
    "A file's name that ends in .et is a Chakra trace, one file a rank (step.0.et stands for step.1.et and so on, "
    "too); in\n.xml an MSCCL algorithm, and in .json an MSCCL++ plan; these, and schedules in Trellis's own text, are "
    "proved before\nthey run on --bytes. Any other file is a workload, a task a line:\n"
    "  ranks 16\n"
    "  group tp 0-3 4-7 8-11 12-15\n"
    "  compute forward 1.2TFLOP 300MB\n"
    "  all_reduce sums 64MB on tp after forward\n"
    "  compute backward 240us after sums\n"
    "  all_reduce gradients 512MiB after backward stream data\n"
    "Further words of a task: `by ALGORITHM`, which may say how it goes (`by torus@4x4*2`, `by file:found.schedule`), "
    "`root\nRANK`, `from RANK to RANK` (send_recv), `stream NAME`: a rank does the tasks of one stream in order.\n"
    "KB, MB and GB are of 1000 here; KiB, MiB and GiB of 1024.";

// Prints the result, and writes the timeline if asked for. Returns the exit status.
int play_file(const PlayFileOptions&);

}  // namespace trellis::tools
