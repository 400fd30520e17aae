#include <algorithm>
#include <vector>

#include "kernels/reduce/cast.h"
#include "train/update/parameter_update.h"
#include "train/update/rule.h"

namespace trellis::train {
namespace {

using kernels::WeightStorage;

constexpr std::size_t piece = 1 << 14;  // elements that are widened at once
constexpr double flops_of_element = 12;

// Updates elements `first` to `first + n` of a span.
void update_piece(const UpdateSpan& r, std::size_t first, std::size_t n, std::vector<float>& room, ElementUpdate u,
                  const std::function<void(const ElementUpdate&)>& formula) {
  const DType type = kernels::type_of(r.weights.keep);
  const auto at = [&](const void* array, DType t) {
    return static_cast<std::byte*>(const_cast<void*>(array)) + first * kernels::size_of(t);
  };
  float *const gradient = room.data(), *const widened = gradient + piece;
  kernels::cast(r.gradient.type, at(r.gradient.values, r.gradient.type), DType::f32, gradient, n);
  for (std::size_t i = 0; i < n; ++i) gradient[i] *= static_cast<float>(r.gradient.scale);
  void* const own = at(r.weights.values, type);
  if (type != DType::f32) kernels::cast(type, own, DType::f32, widened, n);
  u.values = type == DType::f32 ? static_cast<float*>(own) : widened;
  u.gradient = gradient;
  u.first = r.first == nullptr ? nullptr : r.first + first;
  u.second = r.second == nullptr ? nullptr : r.second + first;
  u.n = n;
  formula(u);
  kernels::CastOptions options;
  options.random = r.random;
  options.random.first += first;
  if (r.weights.keep == WeightStorage::bf16_stochastic) options.rounding = kernels::Rounding::stochastic;
  if (type != DType::f32) kernels::cast(DType::f32, widened, type, own, n, options);
  if (r.weights.keep == WeightStorage::f32_copy)
    kernels::cast(DType::f32, u.values, DType::bf16, at(r.weights.copy, DType::bf16), n);
}

}  // namespace

UpdateRule element_rule(std::string name, std::function<void(const ElementUpdate&)> formula, bool second_moment) {
  return {.name = name,
          .second_moment = second_moment,
          .write = [name, formula](Writer& w, const UpdateContext& update, std::size_t state) {
            const ParameterUpdate p(w, update, state);
            w.compute(name, p.reads(), p.writes(), flops_of_element * p.elements(), p.shape("adamw"),
                      [p, formula, config = update.config.optimizer](const Memory& at, const StepInputs& now) {
                        std::vector<float> room(2 * piece);
                        p.each_run(at, now, [&](const UpdateSpan& r) {
                          const ElementUpdate u{.values = nullptr,
                                                .gradient = nullptr,
                                                .first = nullptr,
                                                .second = nullptr,
                                                .n = 0,
                                                .learning_rate = p.learning_rate(now),
                                                .weight_decay = p.weight_decay(),
                                                .step = now.step,
                                                .config = config};
                          for (std::size_t first = 0; first < r.n; first += piece)
                            update_piece(r, first, std::min(piece, r.n - first), room, u, formula);
                        });
                      });
          }};
}

}  // namespace trellis::train
