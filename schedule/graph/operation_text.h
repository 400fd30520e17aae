// An operation's shape as words: "product rows=4096 columns=11008 inner=4096 type=f32 accumulate".
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "schedule/graph/operation_shape.h"

namespace trellis::schedule {

std::string text_of(const OperationShape&);  // only fields that differ from the defaults

// Throws invalid_argument that names the word and what was expected. Kinds and types are not looked up.
OperationShape read_operation(std::span<const std::string_view> words);

}  // namespace trellis::schedule
