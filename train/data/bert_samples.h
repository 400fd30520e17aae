// BERT's samples: two stretches of tokens between marks, of which some tokens are to be guessed, and whether the second
// follows the first in the text.
#pragma once

#include <cstddef>
#include <cstdint>

#include "train/data/source.h"

namespace trellis::train {

struct SpecialTokens {
  std::int32_t begin = 0, separator = 0, mask = 0;  // BERT's CLS, SEP and MASK
};

class BertSamples {
 public:
  // Throws invalid_argument where a sample has no room for two stretches, or a special token is not in the vocabulary.
  BertSamples(const DataSource&, std::size_t length, std::size_t vocabulary, const SpecialTokens&, std::uint64_t seed);

  // Sample number `number` of the whole training: `length` tokens, types and labels (-100: nothing to guess). Returns
  // whether the second part follows: half of them do. 15% of the tokens are guessed, of which 80% are masked, 10% are
  // other ones, and 10% stay.
  bool read(std::uint64_t number, std::int32_t* tokens, std::int32_t* types, std::int32_t* labels) const;

 private:
  const DataSource& source_;
  std::size_t length_, vocabulary_;
  SpecialTokens special_;
  std::uint64_t seed_;
};

}  // namespace trellis::train
