#include "tools/schedule/proof.h"

#include <fmt/format.h>

#include <utility>

#include "schedule/proof/folded.h"
#include "text/refuse.h"

namespace trellis::tools {
namespace {

using schedule::Rank;
using schedule::Schedule;

void tell(ProofReport& proof, const Schedule& s, const schedule::Report& report) {
  proof.proved = {
      fmt::format("every output chunk ends with what the collective wants, whatever the data{}",
                  s.task.even ? ", for counts that divide evenly" : " and its size"),
      "both ends of every transfer exist and agree in size, and no step leaves its buffers",
      "no step touches a chunk while another writes it, whatever the timing",
      "no step waits for ever, even when nothing on the way can hold data",
  };
  if (!reduces(s.task.operation.collective)) return;
  proof.proved.emplace_back(
      report.same_bits_everywhere
          ? "all results of a sum are added up in one order, and agree to the bit"
          : "every sum is complete, but ranks add up in different orders: results may differ in the last bits");
}

// Checks that each rank's program, when made without the other ranks', is the one in the proved schedule, and that
// ranks of a symmetry class are alike.
std::optional<schedule::Fault> compare_alone(const AlgorithmRequest& a, const Schedule& s) {
  const schedule::Symmetry symmetry = symmetry_of(*a.algorithm, a.request);
  for (Rank r = 0; r < s.ranks(); ++r) {
    if (!same(make_program(*a.algorithm, a.request, r), s.programs[r]))
      return schedule::Fault{r, -1, -1, fmt::format("rank {}: the program made alone is not the one made with all", r)};
    const Rank like = symmetry.representative(r);
    if (auto fault = find_difference(symmetry, like, s.programs[like], r, s.programs[r])) return fault;
  }
  return {};
}

ProofReport prove_folded(const AlgorithmRequest& a) {
  const schedule::FoldedReport report = verify_folded(*a.algorithm, a.request);
  ProofReport proof{.of = in_words(a), .ranks = report.ranks, .steps = report.steps, .transfers = 0};
  if (report.fault) {
    proof.fault = report.fault->text;
    return proof;
  }
  // The first sentence is the proof on the small machine; the others are about this machine, by samples.
  for (const std::string& words : report.proved) (proof.proved.empty() ? proof.proved : proof.sampled).push_back(words);
  proof.limits.emplace_back("the result and deadlock are proved on the small machine only");
  return proof;
}

}  // namespace

ProofReport prove(const Schedule& s, std::string of) {
  ProofReport proof{.of = std::move(of), .ranks = s.ranks()};
  const schedule::Report report = verify(s);
  proof.steps = report.steps;
  proof.transfers = report.transfers;
  if (report.fault)
    proof.fault = report.fault->text;
  else
    tell(proof, s, report);
  return proof;
}

ProofReport prove(const AlgorithmRequest& a, bool folded) {
  if (folded) {
    // A refusal is reported in the algorithm's own words.
    if (const std::string why = refusal(*a.algorithm, a.request); !why.empty())
      text::refuse("{}: {}", in_words(a), why);
    return prove_folded(a);
  }
  const Schedule s = make(*a.algorithm, a.request);
  ProofReport proof = prove(s, in_words(a));
  if (!proof.ok()) return proof;
  if (const auto fault = compare_alone(a, s)) proof.fault = fault->text;
  proof.proved.emplace_back("each rank's program, made alone, is the one proved; ranks said to be alike are");
  return proof;
}

std::string ProofReport::text() const {
  if (!ok()) return fmt::format("{}: FAULT\n  {}\n", of, fault);
  std::string words = fmt::format("{}: {}; {} ranks, {} steps{}\n", of,
                                  sampled.empty() ? "proved" : "proved when small, sampled at this size", ranks, steps,
                                  sampled.empty() ? fmt::format(", {} transfers", transfers) : " looked at");
  for (const std::string& line : proved) words += fmt::format("  {}{}\n", sampled.empty() ? "" : "proved ", line);
  for (const std::string& line : sampled) words += fmt::format("  sampled: {}\n", line);
  for (const std::string& line : limits) words += fmt::format("  {}\n", line);
  return words;
}

}  // namespace trellis::tools
