#include "measure/published/record.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <regex>
#include <set>
#include <utility>

#include "text/refuse.h"
#include "text/words.h"

namespace trellis::measure {
namespace {

using Answerer = std::function<std::optional<RecordAnswer>(const Record&, const std::vector<Record>&)>;

std::vector<std::pair<std::string, Answerer>>& models() {
  static std::vector<std::pair<std::string, Answerer>> all;
  return all;
}

std::string text_of(const nlohmann::json& record, const char* field, std::string_view where, bool required) {
  const auto found = record.find(field);
  if (found == record.end() && !required) return {};
  if (found == record.end() || !found->is_string()) text::refuse("{}: '{}' must be a string", where, field);
  auto text = found->get<std::string>();
  constexpr std::size_t most = 4096;  // a std::regex takes a part of the stack for each character
  if (text.size() > most)
    text::refuse("{}: '{}' has {} characters: expected {} at most", where, field, text.size(), most);
  return text;
}

Record read_record(const nlohmann::json& json, std::string_view where) {
  if (!json.is_object()) text::refuse("{}: expected an object", where);
  Record r;
  r.id = text_of(json, "id", where, true);
  const std::string named = fmt::format("{} ({})", where, r.id);
  r.generation = text_of(json, "generation", named, false);
  r.instance = text_of(json, "instance", named, false);
  r.what = text_of(json, "what", named, false);
  r.unit = text_of(json, "unit", named, true);
  r.source = text_of(json, "source", named, false);
  if (const auto p = json.find("parameters"); p != json.end() && p->is_object()) r.parameters = *p;
  const auto value = json.find("value");
  if (value == json.end() || !value->is_number()) text::refuse("{}: 'value' must be a number", named);
  r.value = value->get<double>();
  return r;
}

}  // namespace

double LaunchOverhead::with(double value_of_figure, double beside) const {
  const double launch = growth * value_of_figure + further;
  return part * launch + std::hypot((1 - part) * launch, beside);
}

double LaunchOverhead::without(double time, double beside) const {
  const double squares = time * time - beside * beside;
  const double launch =
      2 * squares / (2 * part * time + std::sqrt(4 * (part * part * time * time + (1 - 2 * part) * squares)));
  return (launch - further) / growth;
}

std::optional<double> Record::number(std::string_view key) const {
  const auto found = parameters.find(std::string(key));
  if (found == parameters.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

std::optional<std::int32_t> Record::count(std::string_view key) const {
  const auto found = number(key);
  return found ? std::optional(whole_count(key, *found)) : std::nullopt;
}

std::string Record::word(std::string_view key) const {
  const auto found = parameters.find(std::string(key));
  return found == parameters.end() || !found->is_string() ? std::string{} : found->get<std::string>();
}

bool Record::says(std::string_view text) const {
  return text::lower(what).find(text::lower(text)) != std::string::npos;
}

std::string Record::kind() const { return id.substr(0, id.find('.')); }

std::string Record::configuration() const {
  static const std::regex sizes(R"(\.(\d+B|i\d+|run[A-Z]\d*|p\d+|[a-z_]*(time|active|pct)[a-z_]*)(?=\.|$))");
  const std::string table = std::regex_replace(id, sizes, "");
  const std::size_t parts = kind() == "coll" ? 6 : 2;  // coll.all_reduce.r8.n1.TYPE.LAUNCH
  std::size_t end = 0;
  for (std::size_t i = 0; i < parts && end != table.npos; ++i) end = table.find('.', end + (i > 0 ? 1 : 0));
  return fmt::format("{}:{}", publisher(), table.substr(0, end));
}

std::string Record::publisher() const { return source.substr(0, source.find_first_of(" @;,")); }

std::int32_t whole_count(std::string_view what, double value) {
  constexpr std::int32_t most = std::numeric_limits<std::int32_t>::max();
  if (!(value >= 0 && value <= most) || value != std::floor(value))
    text::refuse("{} is {:.17g}: expected a whole number from 0 to {}", what, value, most);
  return static_cast<std::int32_t>(value);
}

std::vector<Record> read_records(std::string_view text, std::string_view file) {
  nlohmann::json json;
  try {
    json = nlohmann::json::parse(text);
  } catch (const nlohmann::json::exception& e) {
    const std::string_view said = e.what();  // "[json.exception.parse_error.101] parse error at ..."
    text::refuse("{} is no JSON: {}", file, said.substr(said.find("] ") + 2));
  }
  if (json.is_object() && json.contains("records")) json = nlohmann::json(json["records"]);
  if (!json.is_array() || json.empty())
    text::refuse("{}: expected a list of records{}", file, json.is_array() ? ", not an empty one" : "");
  std::vector<Record> records;
  for (std::size_t i = 0; i < json.size(); ++i)
    records.push_back(read_record(json[i], fmt::format("{}: record {}", file, i)));
  return records;
}

RegisteredRecordModel::RegisteredRecordModel(std::string name, Answerer answerer) {
  models().emplace_back(std::move(name), std::move(answerer));
}

RecordAnswer answer(const Record& r, const std::vector<Record>& all) {
  for (const auto& [name, model] : models()) {
    try {
      if (std::optional<RecordAnswer> found = model(r, all)) return *found;
    } catch (const std::exception& e) {
      return RecordAnswer::no(e.what());
    }
  }
  return RecordAnswer::no("no model for what it measures");
}

namespace {

sim::ChipSpec changed(const sim::ChipSpec& chip, const std::vector<std::pair<std::string, double>>& figures) {
  sim::Figures all = chip.figures();
  for (const auto& [key, value] : figures) all.set(key, value);
  return sim::ChipSpec(chip.name, std::move(all));
}

// The chip with the figures that hold for the record's compiler: one that was told not to use DGE, or release 2.21.
sim::ChipSpec as_compiled(const Record& r, sim::ChipSpec chip) {
  if (r.word("compiler_flags").find("--disable-dge") != std::string::npos)
    return changed(chip, {{"dma.generate", 0}, {"dma.descriptor.write", 0}});
  if (r.source.find("@v2.21.0") != std::string::npos)
    return changed(chip, {{"dma.prefetch", 0}, {"dma.interval", chip.figures().at("dma.interval.2024").value}});
  return chip;
}

}  // namespace

std::optional<sim::ChipSpec> chip_of(const Record& r) {
  const std::string instance = text::lower(r.instance), generation = text::lower(r.generation);
  const auto about = [&](std::string_view word) { return instance.find(word) != std::string::npos; };
  if (about("inf2")) return as_compiled(r, sim::chip_named("inf2"));
  for (const auto& [word, version, chip] :
       {std::tuple{"trn1", "v2", "trn1"}, std::tuple{"trn2", "v3", "trn2"}, std::tuple{"trn3", "v4", "trn3"}})
    if (about(word) || generation.ends_with(version)) return as_compiled(r, sim::chip_named(chip));
  return std::nullopt;
}

std::optional<double> seconds_of(std::string_view unit) {
  for (const auto& [word, seconds] :
       {std::pair{"ns", 1e-9}, std::pair{"us", 1e-6}, std::pair{"ms", 1e-3}, std::pair{"s", 1.0}})
    if (unit == word) return seconds;
  return std::nullopt;
}

std::optional<double> time_in(std::string_view unit, sim::Time t) {
  const auto seconds = seconds_of(unit);
  return seconds ? std::optional(sim::in_seconds(t) / *seconds) : std::nullopt;
}

}  // namespace trellis::measure
