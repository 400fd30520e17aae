// <trellis/train.h>: what a program of one's own, or a plug-in, needs to train: models, data, rules, schedules, the
// trainer.
#pragma once

#include "ccl/communicator.h"
#include "train/layers/arithmetic.h"
#include "train/layers/attention.h"
#include "train/layers/mlp.h"
#include "train/layers/norm.h"
#include "train/models/ends.h"
#include "train/trainer/trainer.h"
#include "train/update/rule.h"
