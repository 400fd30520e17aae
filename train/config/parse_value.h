// Reads the value of a key as one type or another. All throw invalid_argument with the key, the value and what was
// expected.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/config/keys.h"

namespace trellis::train {

[[noreturn]] void refuse(const KeyValue&, const std::string& expected);

const std::string& word(const KeyValue&);  // one word, no list
double decimal(const KeyValue&, const std::string& text, const char* expected);

void parse(const KeyValue&, bool&);
void parse(const KeyValue&, std::string&);
void parse(const KeyValue&, double&);
void parse(const KeyValue&, std::size_t&);
void parse(const KeyValue&, std::int64_t&);
void parse(const KeyValue&, Rank&);
void parse(const KeyValue&, std::vector<std::string>&);
void parse(const KeyValue&, std::vector<std::size_t>&);  // layers, by number or name

}  // namespace trellis::train
