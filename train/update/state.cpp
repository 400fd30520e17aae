#include "train/update/state.h"

#include <algorithm>

#include "train/update/rule.h"

namespace trellis::train {

std::vector<ParameterState> make_states(Writer& w, const Parameters& parameters, const Config& config) {
  std::vector<ParameterState> states;
  const bool zero = config.strategy.zero1 && w.shape().data > 1;
  const auto group = static_cast<std::size_t>(zero ? w.shape().data : 1);
  const bool two = update_rule_named(config.optimizer.name).second_moment;
  for (const Parameter& p : parameters.all()) {
    ParameterState s;
    s.parameter = &p;
    s.rows = p.padded_rows / group;
    s.first_row = zero ? s.rows * static_cast<std::size_t>(w.place().data) : 0;
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
