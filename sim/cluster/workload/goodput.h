// The goodput of a long job: the fraction of its time that goes to steps which count. Hosts fail, checkpoints take
// time, and steps since the last checkpoint are repeated after a failure. Failures are independent and equally likely
// at any time.
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
