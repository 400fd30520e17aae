#include "train/update/optimizer_state.h"

#include <algorithm>

#include "train/update/rule.h"

namespace trellis::train {

std::vector<OptimizerState> make_states(Writer& w, const Parameters& parameters, const StepConfig& config) {
  std::vector<OptimizerState> states;
  const bool two = update_rule_named(config.optimizer.name).second_moment;
  for (const Parameter& p : parameters.all()) {
    OptimizerState s;
    s.parameter = &p;
    const bool zero = config.strategy.zero1 && size_of(w.shape(), data_axis(w.shape(), p)) > 1;
    s.rows = p.padded_rows / static_cast<std::size_t>(zero ? size_of(w.shape(), data_axis(w.shape(), p)) : 1);
    s.first_row = zero ? s.rows * static_cast<std::size_t>(index_of(w.shape(), data_axis(w.shape(), p), w.place())) : 0;
    s.slice = p.slice;
    const std::size_t first = std::min(s.first_row, p.slice.row_count);
    s.slice.row += first;
    s.slice.row_count = std::min(s.rows, p.slice.row_count - first);
    if (p.frozen) {
      states.push_back(s);
      continue;
    }
    const std::size_t columns = p.slice.column_count;
    if (has_masters(config.precision))
      s.master = w.tensor(p.name + ".master", DType::f32, s.rows, columns, Category::master);
    s.first = w.tensor(p.name + ".first_moment", DType::f32, s.rows, columns, Category::moment);
    if (two) s.second = w.tensor(p.name + ".second_moment", DType::f32, s.rows, columns, Category::moment);
    s.gradient = zero ? w.tensor(p.name + ".summed", w.tensor(p.gradient).type, s.rows, columns) : p.gradient;
    states.push_back(s);
  }
  return states;
}

}  // namespace trellis::train
