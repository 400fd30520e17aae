// Times single kernel calls for torch_kernels.py. For each line "operation elements threads calls" on standard input,
// prints the median seconds per call. With any argument, runs every operation once on few elements.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "kernels/optimizers/adamw.h"
#include "kernels/reduce/cast.h"
#include "kernels/reduce/reduce.h"

namespace {

using namespace trellis::kernels;

struct Call {
  std::size_t n = 0;
  int threads = 1;
};

// Four arrays for all operations. Bytes of 0x3C are valid numbers in every type.
class Arrays {
 public:
  void* at(std::size_t i, std::size_t bytes) {
    if (memory_[i].size() < bytes) memory_[i].assign(bytes, std::byte{0x3C});
    return memory_[i].data();
  }
  // The output of one operation may be NaNs when the next one reads it as another type.
  void forget() {
    for (std::vector<std::byte>& m : memory_) m.assign(m.size(), std::byte{0x3C});
  }

 private:
  std::vector<std::byte> memory_[4];
};

void add(Arrays& a, const Call& c, DType d) {
  const std::size_t bytes = c.n * size_of(d);
  const void* const sources[] = {a.at(0, bytes), a.at(1, bytes)};
  reduce(Reduction::sum, d, sources, a.at(2, bytes), c.n, {.threads = c.threads});
}

void to_bf16(Arrays& a, const Call& c) {
  cast(DType::f32, a.at(0, c.n * 4), DType::bf16, a.at(1, c.n * 2), c.n, {.threads = c.threads});
}

void step(Arrays& a, const Call& c, WeightStorage keep, DType d) {
  const std::size_t bytes = c.n * size_of(d);
  adamw({.keep = keep, .values = a.at(0, bytes)}, {.type = d, .values = a.at(1, bytes)},
        {.type = d, .first = a.at(2, bytes), .second = a.at(3, bytes)}, c.n, {.step = 10, .threads = c.threads});
}

using Operation = std::function<void(Arrays&, const Call&)>;

const std::map<std::string, Operation, std::less<>>& operations() {
  static const std::map<std::string, Operation, std::less<>> all = {
      {"add.bf16", [](Arrays& a, const Call& c) { add(a, c, DType::bf16); }},
      {"add.f32", [](Arrays& a, const Call& c) { add(a, c, DType::f32); }},
      {"to_bf16", to_bf16},
      {"adamw.f32", [](Arrays& a, const Call& c) { step(a, c, WeightStorage::f32, DType::f32); }},
      {"adamw.bf16", [](Arrays& a, const Call& c) { step(a, c, WeightStorage::bf16_stochastic, DType::bf16); }}};
  return all;
}

double median_seconds(const Operation& operation, const Call& call, int calls) {
  static Arrays arrays;
  arrays.forget();
  operation(arrays, call);
  std::vector<double> times;
  for (int i = 0; i < calls; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    operation(arrays, call);
    times.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

}  // namespace

int main(int argc, char**) {
  if (argc > 1) {
    for (const auto& [name, operation] : operations())
      std::printf("%s %.9g\n", name.c_str(), median_seconds(operation, {.n = 1000}, 3));
    return 0;
  }
  std::string name;
  Call call;
  for (int calls = 0; std::cin >> name >> call.n >> call.threads >> calls;) {
    const auto found = operations().find(name);
    if (found == operations().end() || calls < 1) {
      std::fprintf(stderr, "'%s' %d times; known are:", name.c_str(), calls);
      for (const auto& [known, operation] : operations()) std::fprintf(stderr, " %s", known.c_str());
      std::fprintf(stderr, "\n");
      return 1;
    }
    std::printf("%.9g\n", median_seconds(found->second, call, calls));
    std::fflush(stdout);
  }
  return 0;
}
