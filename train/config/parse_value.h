// Reads the value of a key as one type or another. All throw invalid_argument with the key, the value and what was
// expected.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/config/allowed_range.h"
#include "train/config/apply_config_keys.h"

namespace trellis::train {

[[noreturn]] void refuse(const KeyValue&, const std::string& expected);

const std::string& word(const KeyValue&);  // one word, no list
double decimal(const KeyValue&, const std::string& text, const AllowedRange&);

void parse(const KeyValue&, bool&);
void parse(const KeyValue&, std::string&);
void parse(const KeyValue&, std::vector<std::string>&);

// Whole numbers are also read as people write them: 5.0, 1e4.
void parse(const KeyValue&, double&, const AllowedRange&);
void parse(const KeyValue&, std::size_t&, const AllowedRange&);
void parse(const KeyValue&, std::int64_t&, const AllowedRange&);
void parse(const KeyValue&, Rank&, const AllowedRange&);
void parse(const KeyValue&, std::vector<double>&, const AllowedRange&);
void parse(const KeyValue&, std::vector<std::size_t>&, const AllowedRange&);  // layers, by number or name

// Checks a value that a program set: returns the expected range if the value is outside, else an empty text.
std::string misfit(double, const AllowedRange&);
std::string misfit(std::size_t, const AllowedRange&);
std::string misfit(std::int64_t, const AllowedRange&);
std::string misfit(Rank, const AllowedRange&);
std::string misfit(const std::vector<std::size_t>&, const AllowedRange&);
std::string misfit(const std::vector<double>&, const AllowedRange&);

// The text that a configuration file would have for the value.
std::string text_of(bool);
std::string text_of(double);
std::string text_of(std::size_t);
std::string text_of(std::int64_t);
std::string text_of(Rank);
std::string text_of(const std::string&);
std::string text_of(const std::vector<std::string>&);
std::string text_of(const std::vector<std::size_t>&);
std::string text_of(const std::vector<double>&);

}  // namespace trellis::train
