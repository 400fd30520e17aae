#include "device/conformance/conformance.h"

#include "text/registry.h"

namespace trellis::device {
namespace {

text::Registry<Check>& registry() {
  static text::Registry<Check> all("check");
  return all;
}

}  // namespace

RegisteredCheck::RegisteredCheck(Check check) { registry().add(std::move(check)); }

const std::map<std::string, Check, std::less<>>& checks() { return registry().entries(); }

CheckResult run_check(const Check& check, Device& device) {
  for (const Capability c : every_capability())
    if (check.needs.has(c) && !device.capabilities().has(c)) return {CheckStatus::not_needed, device.why_not(c)};
  try {
    check.run(device);
    return {};
  } catch (const std::exception& e) {
    return {CheckStatus::failed, e.what()};
  }
}

}  // namespace trellis::device
