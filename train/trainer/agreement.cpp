#include "train/trainer/agreement.h"

#include <algorithm>
#include <stdexcept>
#include <vector>

namespace trellis::train {
namespace {

std::string broadcast(ccl::Communicator& world, std::string text, ccl::Rank root) {
  std::uint64_t size = text.size();
  world.broadcast(&size, &size, 1, kernels::DType::u64, root);
  text.resize(size);
  if (size > 0) world.broadcast(text.data(), text.data(), size, kernels::DType::u8, root);
  return text;
}

}  // namespace

bool any_rank(ccl::Communicator& world, bool mine) {
  std::int32_t all = mine ? 1 : 0;
  world.all_reduce(&all, &all, 1, kernels::DType::i32, {kernels::Reduction::max});
  return all != 0;
}

std::string from_first(ccl::Communicator& world, std::string text) { return broadcast(world, std::move(text), 0); }

std::string first_fault(ccl::Communicator& world, std::string mine) {
  const std::int32_t has = mine.empty() ? 0 : 1;
  std::vector<std::int32_t> all(static_cast<std::size_t>(world.ranks()));
  world.all_gather(&has, all.data(), 1, kernels::DType::i32);
  const auto first = std::ranges::find(all, 1);
  return first == all.end() ? "" : broadcast(world, std::move(mine), static_cast<ccl::Rank>(first - all.begin()));
}

void refuse_together(ccl::Communicator& world, const std::string& fault) {
  if (const std::string all = from_first(world, fault); !all.empty()) throw std::invalid_argument(all);
}

}  // namespace trellis::train
