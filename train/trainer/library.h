// <trellis/train.h>: all that a program of one's own, or a plug-in, needs to train: models, data, rules, schedules,
// checkpoints, the trainer.
#pragma once

#include "ccl/communicator.h"
#include "train/checkpoint/save.h"
#include "train/config/keys.h"
#include "train/config/rate_schedule.h"
#include "train/data/blend.h"
#include "train/data/sampler.h"
#include "train/layers/arithmetic.h"
#include "train/layers/attention.h"
#include "train/layers/mlp.h"
#include "train/layers/norm.h"
#include "train/models/ends.h"
#include "train/trainer/trainer.h"
#include "train/update/rule.h"
#include "train/whole/evaluation.h"
