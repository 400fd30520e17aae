// The parameters of a rank: which rectangle of which whole tensor each one is, and how it is treated.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "train/step/writer.h"

namespace trellis::train {

// A rectangle of a table of rows x columns. Checkpoints, initialisation and random rounding number elements by their
// place in the whole table.
struct TensorSlice {
  std::size_t rows = 0, columns = 0;  // of the whole table
  std::size_t row = 0, row_count = 0, column = 0, column_count = 0;
  std::size_t elements() const { return row_count * column_count; }
  std::uint64_t index(std::size_t r, std::size_t c) const { return (row + r) * columns + column + c; }  // in the whole
  bool operator==(const TensorSlice&) const = default;
};

struct Initial {
  enum class Kind : std::uint8_t { zeros, ones, normal } kind = Kind::normal;
  double deviation = 0.02;
};

enum class Split : std::uint8_t { none, rows, columns };  // over the tensor axis

struct Parameter {
  std::string name;   // of the whole tensor
  TensorSlice slice;  // the rectangle that this rank has
  Initial initial;
  bool decays = true;           // weight decay applies
  bool partial = false;         // with sequence parallelism: the gradient is summed over the tensor axis
  bool frozen = false;          // not trained: no gradient
  bool of_expert = false;       // one rank of each group of the expert axis has it
  bool owner = true;            // false: the copy of a tied weight that the norm and checkpoints leave out
  double share = 1;             // of its squares and products: 1 / (how many tensor ranks hold the same elements)
  bool first_copy = true;       // false: another tensor rank saves the same elements
  bool overwritten = false;     // the first product of a step sets the gradient; else it is zeroed, and all add to it
  std::size_t padded_rows = 0;  // row_count, rounded up to what ZeRO-1 divides among its group
  TensorId value = no_tensor, gradient = no_tensor;  // gradient: no_tensor, if frozen
};

struct ParameterTypes {
  DType value = DType::f32;
  DType gradient = DType::f32;
  bool zero = false;            // padded_rows is a multiple of the ranks that ZeRO-1 divides it among
  bool adapters_alone = false;  // only what is added as an adapter is trained
  bool none_trained = false;
};

// A tensor rank's part of the rows or columns of a split, where the parts are not all equal.
struct TensorPart {
  std::size_t first = 0, count = 0;
  int copies = 1;          // so many tensor ranks have it
  bool first_copy = true;  // this one is the first of them
};

// A tensor rank's part of n rows or columns that need not divide evenly: the first ranks have one more.
TensorPart uneven_part(std::size_t n, const Writer&);

struct NewParameter {
  std::string name;
  std::size_t rows = 1, columns = 1;
  Split split = Split::none;
  Initial initial = {};
  bool partial = false;
  bool adapter = false;
  bool owner = true;
  std::optional<TensorPart> part = {};  // none: equal parts
  bool of_products = false;             // its gradient is a sum of products alone
  bool of_expert = false;               // where there is an expert axis, one rank of each of its groups has it
  bool counted = false;  // in f32 and without a gradient: it is updated from counts, as experts' biases are
};

// Ranks that hold the same elements of a parameter, tensor ranks aside, sum its gradients over this axis.
Axis data_axis(const MeshShape&, const Parameter&);

class Parameters {
 public:
  explicit Parameters(const ParameterTypes& types) : types_(types) {}
  // Returns the parameter of this name if there is one. Throws invalid_argument where a split does not come out even.
  const Parameter& add(Writer&, const NewParameter&);
  const Parameter* find(std::string_view name) const;
  const std::deque<Parameter>& all() const { return all_; }
  const ParameterTypes& types() const { return types_; }

  // Adds the last word in the name of a weight that can have an adapter, whether or not it has one.
  void add_projection(std::string word);
  const std::vector<std::string>& projections() const { return projections_; }

 private:
  ParameterTypes types_;
  std::vector<std::string> projections_;
  std::deque<Parameter> all_;
};

// What is excluded from weight decay: names with "bias" or "norm" in them.
bool decays(std::string_view name);

// A value for each element of a parameter, by its index in the whole: the same however the tensor is cut up.
using Values = std::function<float(std::uint64_t index)>;
Values initial_values(const Parameter&, std::uint64_t seed);

}  // namespace trellis::train
