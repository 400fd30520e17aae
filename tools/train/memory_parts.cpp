#include "tools/train/memory_parts.h"

#include "train/step/program.h"

namespace trellis::tools {

std::array<double, memory_part_names.size()> memory_parts(const schedule::PeakMemory& peak) {
  using train::Category;
  const auto of = [&](Category c) { return static_cast<double>(peak.by_category[static_cast<std::size_t>(c)]); };
  return {of(Category::parameter), of(Category::gradient), of(Category::master) + of(Category::moment),
          of(Category::activation) + of(Category::scratch) + of(Category::input) + attention_pairs(peak)};
}

double attention_pairs(const schedule::PeakMemory& peak) {
  return static_cast<double>(peak.by_category[static_cast<std::size_t>(train::Category::accelerator)]);
}

}  // namespace trellis::tools
