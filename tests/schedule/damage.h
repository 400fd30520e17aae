// One random edit of a schedule, of the kind that a wrong generator, a bad file or a flipped bit would make.
#pragma once
#include <random>

#include "schedule/schedule.h"

namespace trellis::schedule {

// Each says what it did; empty when this edit had nothing to act on.
std::string damage(Schedule&, std::mt19937&);       // the steps
std::string damage_task(Schedule&, std::mt19937&);  // what they are said to do

}  // namespace trellis::schedule
