// Plain streaming loops, which do nothing but move: what other kernels' speed is measured against.
#include <cstring>

#include "kernels/registry.h"

namespace trellis::kernels {
namespace {

using Word = std::uint32_t;

Word word_at(const void* array, std::size_t i) {
  Word word;
  std::memcpy(&word, static_cast<const std::byte*>(array) + i * sizeof word, sizeof word);
  return word;
}

void truth(const Stretch& s) {
  for (std::size_t i = 0; i < s.n; ++i) {
    Word sum = 0;
    for (int k = 0; k < s.sources; ++k) sum += word_at(s.reads[k], i);
    std::memcpy(static_cast<std::byte*>(s.writes[0]) + i * sizeof sum, &sum, sizeof sum);
  }
}

void expand_truth(const Stretch& s) {
  for (std::size_t i = 0; i < s.n; ++i) {
    const Word word = word_at(s.reads[0], i);
    for (int w = 0; w < 2; ++w) std::memcpy(static_cast<std::byte*>(s.writes[w]) + i * sizeof word, &word, sizeof word);
  }
}

const Registered limits([] {
  const DType t = DType::u32;
  return std::vector<Kernel>{{.name = "limit.copy", .reads = {t}, .writes = {t}, .truth = truth},
                             {.name = "limit.add", .reads = {t, t}, .writes = {t}, .truth = truth},
                             {.name = "limit.sum4", .reads = {t, t, t, t}, .writes = {t}, .truth = truth},
                             {.name = "limit.sum8", .reads = {t, t, t, t, t, t, t, t}, .writes = {t}, .truth = truth},
                             {.name = "limit.expand", .reads = {t}, .writes = {t, t}, .truth = expand_truth}};
});

}  // namespace
}  // namespace trellis::kernels
