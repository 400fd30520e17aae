// Makes one random edit of a schedule, as a wrong generator, a corrupt file or a flipped bit might.
#pragma once
#include <random>

#include "schedule/schedule.h"

namespace trellis::schedule {

// Each returns a description of the edit, or an empty string if it found nothing to edit.
std::string damage(Schedule&, std::mt19937&);       // the steps
std::string damage_task(Schedule&, std::mt19937&);  // the task that the steps are for

}  // namespace trellis::schedule
