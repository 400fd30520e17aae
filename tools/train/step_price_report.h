// A priced training step in words, as JSON, and as a page's introduction.
#pragma once

#include <string>

#include "tools/train/step_pricing.h"

namespace trellis::tools {

std::string step_text(const PricedStep&, const sim::Machine&);
std::string step_json(const PricedStep&, const sim::Machine&);
std::string step_page(const PricedStep&, const sim::Machine&);  // HTML

// What the critical path is made of, longest first: "79% backward on ranks 0 to 31, 12% all_gather on tensor, ...".
std::string step_path_words(const PricedStep&);

}  // namespace trellis::tools
