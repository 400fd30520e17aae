#include "tools/schedule/schedule_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <stdexcept>

#include "schedule/formats/msccl_xml.h"
#include "schedule/formats/mscclpp_json.h"
#include "schedule/formats/text.h"
#include "schedule/proof/verify.h"
#include "text/nearest.h"
#include "text/printable.h"
#include "text/refuse.h"
#include "tools/program/output.h"

namespace trellis::tools {
namespace {

using schedule::Rank;

constexpr Rank most_ranks_written_out = 4096;
constexpr std::int64_t most_steps_written_out = 8'000'000;

bool names_a_file(const std::string& word) { return word.find_first_of("./-") != std::string::npos; }

std::string in_words(const FileText& file) { return file.path == "-" ? "standard input" : file.path; }

schedule::Schedule schedule_in(const FileText& file, bool in_place) {
  const std::size_t start = file.text.find_first_not_of(" \t\r\n");
  const char sign = start == std::string::npos ? '\0' : file.text[start];
  try {
    if (sign == '<') return schedule::import_msccl(file.text, in_place ? std::optional(true) : std::nullopt);
    if (in_place) throw std::invalid_argument("--in-place: only an MSCCL file leaves it open");
    if (sign == '{') return schedule::import_mscclpp(file.text);
    return schedule::parse(file.text);
  } catch (const std::invalid_argument& error) {
    text::refuse("{}: {}", in_words(file), error.what());
  }
}

}  // namespace

std::optional<schedule::Collective> collective_meant(const std::string& word) {
  std::vector<std::string> names;
  for (schedule::Collective c : schedule::collectives()) {
    if (schedule::name(c) == word) return c;
    names.emplace_back(schedule::name(c));
  }
  const std::string meant = text::did_you_mean(word, names);
  if (!names_a_file(word) && !meant.empty()) text::refuse("no collective is called '{}'{}", word, meant);
  return {};
}

ScheduleSource subject(const std::string& word, const RequestOptions& options) {
  if (const auto collective = collective_meant(word)) return {.asked = asked(*collective, options)};
  RequestOptions rest = options;
  rest.in_place = false;
  if (const std::string option = first_given(rest); !option.empty())
    text::refuse("{} goes with a collective: '{}' is none, and a file says for itself what it holds", option, word);
  return {.asked = {}, .path = word, .in_place = options.in_place};
}

std::string in_words(const ScheduleSource& s) { return s.asked ? in_words(*s.asked) : in_words(FileText{s.path, ""}); }

bool too_large(const AlgorithmRequest& a) {
  const Rank ranks = a.request.ranks();
  if (ranks > most_ranks_written_out) return true;
  std::int64_t steps = 0;
  // The number of steps of all ranks is estimated from the programs of a few.
  const std::initializer_list<Rank> looked_at = {0, ranks / 3, ranks - 1};
  for (Rank r : looked_at) steps += static_cast<std::int64_t>(make_program(*a.algorithm, a.request, r).steps.size());
  return steps / static_cast<std::int64_t>(looked_at.size()) * ranks > most_steps_written_out;
}

schedule::Schedule written_out(const ScheduleSource& s) {
  if (!s.asked) return schedule_in(typed_file(s.path), s.in_place);
  if (too_large(*s.asked))
    text::refuse("{} is too large to write out for all of its {} ranks", in_words(s), s.asked->request.ranks());
  return make(*s.asked->algorithm, s.asked->request);
}

void expect_proved(const schedule::Schedule& s, const ScheduleSource& what, bool unproved) {
  if (unproved) return;
  if (const schedule::Report report = schedule::verify(s); !report.ok())
    throw std::runtime_error(
        fmt::format("{}: {}; nothing is written without --unproved", in_words(what), report.text()));
}

FileText typed_file(const std::string& path) {
  FileText file{path, read_input(path)};
  if (!path.ends_with(".et")) text::expect_text(path, file.text);  // a Chakra trace is not text
  return file;
}

bool holds_schedule(const FileText& file) {
  const std::string ending = std::filesystem::path(file.path).extension();
  if (ending == ".xml" || ending == ".json") return true;
  if (ending == ".et") return false;
  const std::string_view text = file.text;
  std::size_t at = text.find_first_not_of(" \t\r\n");
  if (at == text.npos) return false;
  if (text[at] == '<' || text[at] == '{') return true;
  while (at < text.size() && (text[at] == '#' || text[at] == '\n'))
    at = std::min(text.find('\n', at), text.size() - 1) + 1;
  return text.substr(at).starts_with("trellis schedule ");
}

schedule::Schedule proved(const FileText& file, bool in_place) {
  schedule::Schedule found = schedule_in(file, in_place);
  if (const schedule::Report report = schedule::verify(found); !report.ok())
    throw std::runtime_error(fmt::format("{}: {}", in_words(file), report.text()));
  return found;
}

}  // namespace trellis::tools
