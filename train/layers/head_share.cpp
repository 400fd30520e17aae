#include "train/layers/head_share.h"

#include "text/refuse.h"
#include "train/mesh/even_split.h"

namespace trellis::train {
HeadShare head_share(HeadCounts n, Rank tensor, Rank place, Wiring wiring) {
  const auto ranks = static_cast<std::size_t>(tensor), t = static_cast<std::size_t>(place);
  const std::size_t served = n.heads / n.kv_heads;
  HeadShare s;
  if (n.kv_heads >= ranks) {
    const SplitRange kv = run_of(n.kv_heads, ranks, t);
    s.kv_first = kv.first, s.kv_count = kv.count;
    s.first = s.kv_first * served, s.count = s.kv_count * served;
    return s;
  }
  if (ranks % n.kv_heads != 0)
    text::refuse("model.num_key_value_heads is {}: expected a divisor of tensor_model_parallel_size {}, or no less",
                 n.kv_heads, tensor);
  const std::size_t copies = ranks / n.kv_heads;
  if (served < copies)
    text::refuse("model.num_attention_heads is {}: expected at least one for each of tensor_model_parallel_size {}",
                 n.heads, tensor);
  const bool apart = wiring == Wiring::trn1;
  const std::size_t copy = apart ? t / n.kv_heads : t % copies;
  s.kv_first = apart ? t % n.kv_heads : t / copies, s.kv_count = 1;
  s.copies = static_cast<int>(copies), s.first_copy = copy == 0;
  const SplitRange own = run_of(served, copies, copy);
  s.first = s.kv_first * served + own.first, s.count = own.count;
  return s;
}

}  // namespace trellis::train
