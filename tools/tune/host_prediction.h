// What the model of a host predicts for a collective, on this machine or on one that isn't here.
#pragma once

#include <cstdint>
#include <string>

#include "ccl/communicator.h"

namespace trellis::tools {

struct HostPredictionOptions {
  ccl::Call call;
  std::uint64_t bytes = 0;
  ccl::Rank ranks = 1;
  int cores = 1, threads = 1, sockets = 1, caches = 1;
  bool all = false, json = false;
};

std::string prediction_text(const HostPredictionOptions&);

}  // namespace trellis::tools
