#include "ccl/diagnosis/diagnosis.h"

#include <fmt/format.h>

#include "ccl/diagnosis/root_cause.h"

namespace trellis::ccl {
namespace {

std::string word_of(const InferredRankState& p) {
  if (p.own != nullptr) return p.own->error.empty() ? "in" : "stuck in";
  return "in";
}

// What is known of a rank that left no dump.
std::string without_dump(Rank r, const InferredRankState& p) {
  const std::string text = fmt::format("rank {} left no dump", r);
  if (p.seen == nullptr) return text + ": killed, frozen, ended before, or never started";
  const std::string last =
      p.last.operation == 0 && !p.last.points ? "no operation" : fmt::format("operation {}", p.last.operation);
  return fmt::format("{}: another saw it {}, {} {}", text, name(p.standing), p.last.under_way ? "in" : "after", last);
}

std::string waits_in_words(const InferredRankState& p) {
  const std::vector<Rank> waits = p.waits();
  std::string text = p.own->step < 0 ? "" : fmt::format(", at step {}", p.own->step);
  if (!waits.empty()) text += fmt::format(", waiting for {}", list_of(waits));
  return text;
}

Diagnosis::Part part_of(std::size_t c, const JobEvidence& job, const WaitGraph& waits, const Wording& words,
                        bool well) {
  const CommunicatorEvidence& m = job.communicators[c];
  Diagnosis::Part part{.communicator = m.communicator, .ranks = m.ranks};
  part.name =
      m.communicator.empty() ? fmt::format("a communicator of {} ranks that was not made", m.ranks) : words.name(c);
  std::vector<CommunicatorRank> all;
  std::vector<Rank> silent;
  for (Rank r = 0; r < m.ranks; ++r) {
    all.push_back({c, r});
    const InferredRankState& p = waits.at({c, r});
    if (p.own == nullptr && p.seen == nullptr) silent.push_back(r);
    if (p.own == nullptr && p.seen != nullptr) part.lines.push_back(without_dump(r, p));
    if (p.own == nullptr || m.communicator.empty()) continue;
    const std::string ended = p.own->signal.empty() ? "" : fmt::format(", when SIG{} ended it", p.own->signal);
    if (p.last.under_way)
      part.lines.push_back(
          fmt::format("rank {} is {} {}{}{}", r, word_of(p), words.where(c, p.last), waits_in_words(p), ended));
    else if (!well)
      part.lines.push_back(fmt::format("rank {} was in code of its own {}{}", r, words.after(c, p.last), ended));
  }
  if (!silent.empty())
    part.lines.push_back(
        fmt::format("{} left no dump: killed, frozen, ended before, or never started", list_of(silent)));
  if (!m.parent.empty()) part.name += fmt::format(" ({})", words.ranks(all));
  for (const auto& [rank, d] : m.dumps) {
    if (!d.error.empty()) part.errors[rank] = d.error;
    for (const std::string& text : d.later) part.later.push_back(fmt::format("rank {} said later: {}", rank, text));
  }
  if (part.lines.empty() && !m.communicator.empty())
    part.lines.push_back(fmt::format("all {} ranks have finished operation {}", m.ranks, m.furthest_operation()));
  return part;
}

std::vector<std::string> ends_of(const JobEvidence& job) {
  std::vector<std::string> lines;
  for (const LaunchRecord& record : job.launches) {
    if (!record.told.empty())
      lines.push_back(fmt::format("the launch of node {} was told to end by SIG{}", record.node, record.told));
    if (!record.heard.empty())
      lines.push_back(fmt::format("the launch of node {} heard: {}", record.node, record.heard));
    for (const LaunchedRank& r : record.ranks)
      if (!r.end.empty())
        lines.push_back(fmt::format("rank {} (process {}) {}{}", r.rank, r.process, r.end,
                                    r.told ? ", after the launch had told it to end" : ""));
  }
  return lines;
}

Diagnosis diagnosis_of(const JobEvidence& job) {
  const WaitGraph waits(job);
  const Wording words(job);
  Diagnosis d{.cause = cause_of(job, waits, words), .moment_ns = job.moment_ns(), .ends = ends_of(job)};
  if (!job.communicators.empty()) d.moment_ns = job.communicators.front().moment_ns();
  bool well = d.cause.empty();
  for (const CommunicatorEvidence& m : job.communicators)
    for (const auto& [rank, dump] : m.dumps) well = well && dump.error.empty();
  for (std::size_t c = 0; c < job.communicators.size(); ++c) d.parts.push_back(part_of(c, job, waits, words, well));
  return d;
}

}  // namespace

std::vector<Diagnosis> diagnose(const CollectedEvidence& evidence) {
  std::vector<Diagnosis> all;
  for (const JobEvidence& job : evidence.jobs()) all.push_back(diagnosis_of(job));
  return all;
}

}  // namespace trellis::ccl
