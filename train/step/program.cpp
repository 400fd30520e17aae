#include "train/step/program.h"

namespace trellis::train {

std::string_view name(Category c) {
  constexpr std::string_view names[] = {"parameters", "gradients",   "masters", "moments",
                                        "inputs",     "activations", "scratch"};
  return names[static_cast<std::size_t>(c)];
}

std::string_view name(Exchange::Kind k) {
  constexpr std::string_view names[] = {"all_reduce", "reduce_scatter", "all_gather", "send", "receive"};
  return names[static_cast<std::size_t>(k)];
}

double Program::bytes_touched(const Operation& o) const {
  double bytes = 0;
  for (const auto* list : {&o.reads, &o.writes})
    for (TensorId t : *list) bytes += static_cast<double>(tensor(t).bytes());
  return bytes;
}

double Program::bytes_exchanged(const Operation& o) const {
  double bytes = 0;
  for (const Transfer& t : o.exchange.transfers) bytes += static_cast<double>(t.count * kernels::size_of(t.type));
  return bytes;
}

}  // namespace trellis::train
