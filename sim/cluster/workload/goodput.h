// How much of a long job's time is steps that count: hosts fail, checkpoints take time, and what came after the last
// one is done again. Failures are independent and as likely at any time.
#pragma once

namespace trellis::sim {

struct GoodputInputs {
  double between = 0;   // seconds from a failure to the next one, of the whole machine
  double interval = 0;  // seconds of steps from a checkpoint to the next one
  double save = 0;      // seconds in which a checkpoint is written and no step is done
  double restart = 0;   // seconds from a failure to the first step after it
};

double goodput(const GoodputInputs&);        // the part of the time that is steps which count
double best_interval(const GoodputInputs&);  // the interval with the highest goodput; `interval` is not used

}  // namespace trellis::sim
