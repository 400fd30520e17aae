// A model of one's own, which registers itself: linked into a program (train_own_model.cpp), or in a plug-in whose
// names a configuration uses (own_parts.yaml).
#include <trellis/train.h>

#include <map>

namespace {

using namespace trellis::train;

// x + mlp(norm(x)). What the backward pass needs is kept by micro-batch.
class Layer : public Block {
 public:
  Layer(const BlockContext& b, const std::string& name)
      : norm_(b.writer, b.parameters, Norm::Kind::rms, name + ".norm", b.config.model.hidden_size, 1e-5F,
              b.scattered()),
        mlp_(b.writer, b.parameters, name,
             {.hidden = b.config.model.hidden_size,
              .inner = b.config.model.inner(),
              .linear = {.sequence = b.scattered()}}) {}

  TensorId forward(Writer& w, TensorId x, std::size_t micro) override {
    auto& [norm, mlp] = kept_[micro];
    return added(w, "residual", x, mlp_.forward(w, norm_.forward(w, x, norm), mlp));
  }
  TensorId backward(Writer& w, TensorId dy, std::size_t micro) override {
    const auto& [norm, mlp] = kept_.at(micro);
    return added(w, "residual", dy, norm_.backward(w, mlp_.backward(w, dy, mlp), norm));
  }

 private:
  Norm norm_;
  Mlp mlp_;
  std::map<std::size_t, std::pair<Norm::Saved, Mlp::Saved>> kept_;
};

const RegisteredModel model({
    .name = "perceptrons",
    .embedding = [](const BlockContext& b) { return std::make_unique<EmbeddingBlock>(b, "embedding"); },
    .head = [](const BlockContext& b) { return std::make_unique<HeadBlock>(b, Norm::Kind::rms, "norm", "head"); },
    .layer = [](const BlockContext& b,
                std::size_t i) { return std::make_unique<Layer>(b, "layers." + std::to_string(i)); },
});

}  // namespace
