#include "trellis/torch/native/torch_store_adapter.h"

#include <algorithm>
#include <thread>

#include "trellis/torch/native/progress/python_signals.h"

namespace trellis::process_group {

void TorchStoreAdapter::set(std::string_view key, std::span<const std::byte> value) {
  const auto* first = reinterpret_cast<const std::uint8_t*>(value.data());
  store_->set(named(key), std::vector<std::uint8_t>(first, first + value.size()));
}

ccl::Bytes TorchStoreAdapter::get(std::string_view key, ccl::Deadline deadline) {
  const std::string name = named(key);
  auto pause = std::chrono::microseconds(50);
  while (!store_->check({name})) {
    if (stopped_) throw ccl::Aborted("the group was shut down while it waited for " + name + " in the torch store");
    if (ccl::Clock::now() >= deadline) throw ccl::TimedOut("no rank has set " + name + " in the torch store in time");
    raise_if_interrupted();
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::microseconds(5000));
  }
  const std::vector<std::uint8_t> value = store_->get(name);
  ccl::Bytes bytes(value.size());
  std::ranges::transform(value, bytes.begin(), [](std::uint8_t byte) { return std::byte{byte}; });
  return bytes;
}

std::int64_t TorchStoreAdapter::add(std::string_view key, std::int64_t amount) {
  return store_->add(named(key), amount);
}

}  // namespace trellis::process_group
