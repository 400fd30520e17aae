// Plain streaming loops that only move bytes: the limit with which other kernels' speed is compared.
#include <cstring>

#include "kernels/dispatch/parallel.h"
#include "kernels/dispatch/registry.h"

namespace trellis::kernels {
namespace {

using Word = std::uint32_t;

Word word_at(const void* array, std::size_t i) {
  Word word;
  std::memcpy(&word, static_cast<const std::byte*>(array) + i * sizeof word, sizeof word);
  return word;
}
void put_word(void* array, std::size_t i, Word word) {
  std::memcpy(static_cast<std::byte*>(array) + i * sizeof word, &word, sizeof word);
}

Word sum_at(const KernelArguments& s, std::size_t i) {
  Word sum = 0;
  for (int k = 0; k < s.sources; ++k) sum += word_at(s.reads[k], i);
  return sum;
}

template <int written>
void write_truth(const KernelArguments& s) {
  for (std::size_t i = 0; i < s.n; ++i)
    for (int w = 0; w < written; ++w) put_word(s.writes[w], i, sum_at(s, i));
}

template <int updated>
void update_truth(const KernelArguments& s) {
  for (std::size_t i = 0; i < s.n; ++i)
    for (int w = 0; w < updated; ++w) put_word(s.writes[w], i, word_at(s.writes[w], i) + sum_at(s, i));
}

void read_truth(const KernelArguments& s) {
  for (std::size_t part = 0; part < parts_of(s.n); ++part) {
    Word sum = 0;
    for (std::size_t i = part * part_elements; i < s.n && i < (part + 1) * part_elements; ++i) sum += sum_at(s, i);
    put_word(s.writes[0], part, sum);
  }
}

Kernel loop(const char* name, std::size_t reads, std::size_t writes, Body truth) {
  const auto words = [](std::size_t count) { return std::vector<DType>(count, DType::u32); };
  return {.name = name, .reads = words(reads), .writes = words(writes), .truth = truth};
}
Kernel updating(Kernel k) {
  k.updates = true;
  return k;
}
Kernel summing(Kernel k) {
  k.sums = true;
  return k;
}

const Registered limits([] {
  return std::vector<Kernel>{loop("limit.copy", 1, 1, write_truth<1>),
                             loop("limit.add", 2, 1, write_truth<1>),
                             loop("limit.sum4", 4, 1, write_truth<1>),
                             loop("limit.sum8", 8, 1, write_truth<1>),
                             loop("limit.expand", 1, 2, write_truth<2>),
                             updating(loop("limit.update", 1, 1, update_truth<1>)),
                             updating(loop("limit.update2", 1, 2, update_truth<2>)),
                             updating(loop("limit.update3", 1, 3, update_truth<3>)),
                             updating(loop("limit.triad", 2, 1, update_truth<1>)),
                             summing(loop("limit.read", 1, 1, read_truth)),
                             summing(loop("limit.read2", 2, 1, read_truth)),
                             summing(loop("limit.read3", 3, 1, read_truth))};
});

}  // namespace
}  // namespace trellis::kernels
