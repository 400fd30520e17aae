#include "kernels/optimizers/sgd.h"

#include "train/update/parameter_update.h"
#include "train/update/rule.h"

namespace trellis::train {
namespace {

void write_sgd(Writer& w, const UpdateContext& u, std::size_t state) {
  const ParameterUpdate p(w, u, state);
  w.compute("sgd", p.reads(), p.writes(), 6 * p.elements(), p.shape("sgd"),
            [p, o = u.config.optimizer](const Memory& at, const StepInputs& now) {
              p.each_run(at, now, [&](const UpdateSpan& r) {
                kernels::sgd(r.weights, r.gradient, DType::f32, r.first, r.n,
                             {.learning_rate = p.learning_rate(now),
                              .momentum = o.momentum,
                              .weight_decay = p.weight_decay(),
                              .nesterov = o.nesterov,
                              .random = r.random,
                              .threads = at.threads()});
              });
            });
}

const RegisteredUpdateRule sgd({.name = "sgd", .second_moment = false, .write = write_sgd});

}  // namespace
}  // namespace trellis::train
