#include "device/conformance/conformance.h"

#include <algorithm>

namespace trellis::device {
namespace {

std::vector<Check>& registry() {
  static std::vector<Check> all;
  return all;
}

}  // namespace

RegisteredCheck::RegisteredCheck(Check check) {
  auto& all = registry();
  all.insert(std::ranges::upper_bound(all, check.name, {}, &Check::name), std::move(check));
}

const std::vector<Check>& checks() { return registry(); }

Verdict run_check(const Check& check, Device& device) {
  for (const Capability c : every_capability())
    if (check.needs.has(c) && !device.capabilities().has(c)) return {Outcome::not_needed, device.why_not(c)};
  try {
    check.run(device);
    return {};
  } catch (const std::exception& e) {
    return {Outcome::failed, e.what()};
  }
}

}  // namespace trellis::device
