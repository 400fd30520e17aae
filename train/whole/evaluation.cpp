#include "train/whole/evaluation.h"

#include <stdexcept>

#include "schedule/graph/match_exchanges.h"

#include "train/whole/check.h"
#include "train/whole/graph.h"

namespace trellis::train {
namespace {

// The configuration of an evaluation: no dropout, no label smoothing, and no recomputation.
StepConfig of_evaluation(StepConfig c) {
  c.model.hidden_dropout = c.model.attention_dropout = c.model.label_smoothing = 0;
  c.recompute = Recompute::none;
  return c;
}

RankStep laid_out(const Job& job) {
  const StepConfig config = of_evaluation(job.step().config);
  const Mesh& mesh = job.step().mesh;
  const std::vector<RankStep> classes = classes_of(config, mesh.ranks(), StepPurpose::evaluate);
  if (const std::string fault = schedule::match(graph_of(classes)).fault; !fault.empty())
    throw std::runtime_error("the evaluation is not proved: " + fault);
  return lay_out(config, mesh.ranks(), mesh.rank(job.step().place), StepPurpose::evaluate);
}

}  // namespace

Evaluation::Evaluation(Job& job) : step_(laid_out(job)) {
  runner_ = std::make_unique<Runner>(step_.program, job.runner().communicators(), job.runner().threads(),
                                     ParameterStorage::parameters_elsewhere);
  for (const Parameter& p : step_.parameters.all())
    runner_->borrow(p.value, job.runner().at(job.parameters().find(p.name)->value));
}

double Evaluation::run() {
  runner_->run({});
  return *runner_->as<double>(step_.loss);
}

}  // namespace trellis::train
