#include "kernels/optimizers/adamw.h"

#include "train/update/parameter_update.h"
#include "train/update/rule.h"

namespace trellis::train {
namespace {

void write_adamw(Writer& w, const UpdateContext& u, std::size_t state) {
  const ParameterUpdate p(w, u, state);
  w.compute("adamw", p.reads(), p.writes(), 12 * p.elements(), p.shape("adamw"),
            [p, o = u.config.optimizer](const Memory& at, const StepInputs& now) {
              p.each_run(at, now, [&](const UpdateSpan& r) {
                kernels::adamw(r.weights, r.gradient, {DType::f32, r.first, r.second}, r.n,
                               {.learning_rate = p.learning_rate(now),
                                .beta1 = o.beta1,
                                .beta2 = o.beta2,
                                .epsilon = o.epsilon,
                                .weight_decay = p.weight_decay(),
                                .step = static_cast<std::uint64_t>(now.step),
                                .order = o.decay_last ? kernels::AdamWDecayOrder::decay_last
                                                      : kernels::AdamWDecayOrder::decay_first,
                                .random = r.random,
                                .threads = at.threads()});
              });
            });
}

const RegisteredUpdateRule adamw({.name = "adamw", .write = write_adamw});

}  // namespace
}  // namespace trellis::train
