// What every device must do, as checks by name: for the tests, and for `trellis device test`.
#pragma once

#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "device/capabilities.h"
#include "device/device.h"

namespace trellis::device {

// What went wrong, in words.
struct NotConforming : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Check {
  std::string name;     // "copies"
  std::string promise;  // "bytes arrive whichever way they are copied"
  Capabilities needs = {};
  void (*run)(Device&) = nullptr;  // throws NotConforming, or whatever the device throws
};

struct RegisteredCheck {
  explicit RegisteredCheck(Check);
};

const std::map<std::string, Check, std::less<>>& checks();

enum class CheckStatus : unsigned char { passed, failed, not_needed };
struct CheckResult {
  CheckStatus outcome = CheckStatus::passed;
  std::string why;  // of a failure, or what the device lacks
};
CheckResult run_check(const Check&, Device&);

}  // namespace trellis::device
