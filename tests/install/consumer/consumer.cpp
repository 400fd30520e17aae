#include <iostream>

#include "schedule/algorithms/algorithm.h"
#include "schedule/proof/verify.h"

int main() {
  using namespace trellis::schedule;
  const Schedule ring = make("ring", Request{.operation = {.collective = Collective::all_reduce}, .dims = {4}});
  const auto report = verify(ring);
  std::cout << (report.ok() ? "proved" : report.text()) << "\n";
  return report.ok() ? 0 : 1;
}
