#include "train/whole/export.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <stdexcept>

#include "train/whole/check.h"

namespace trellis::train {
namespace {

std::string listed(const Group& group) {
  std::string text;
  for (Rank r : group) text += (text.empty() ? "" : ",") + std::to_string(r);
  return text;
}

class Writing {
 public:
  explicit Writing(const std::vector<Step>& stages) : stages_(stages), mesh_(stages[0].mesh) {
    sum_.resize(stages.size()), waits_.resize(stages.size()), tickets_.resize(stages.size());
  }

  std::string run() {
    std::vector<const Program*> programs;
    for (const Step& s : stages_) programs.push_back(&s.program);
    const std::string fault = walk_pipeline(
        programs, [this](std::size_t stage, std::size_t i) { take(stage, stages_[stage].program.operations[i]); });
    if (!fault.empty()) throw std::invalid_argument(fault);
    for (std::size_t s = 0; s < stages_.size(); ++s) flush(s);
    return heading() + tasks_;
  }

 private:
  std::size_t stage_of(Rank r) const { return static_cast<std::size_t>(mesh_.place(r).pipeline); }

  std::string heading() const {
    std::string text = fmt::format("# {}: a training step of {} ranks, as trellis train lays it out\nranks {}\n",
                                   stages_[0].config.name, mesh_.ranks(), mesh_.ranks());
    std::vector<Group> all(stages_.size());
    for (Rank r = 0; r < mesh_.ranks(); ++r) all[stage_of(r)].push_back(r);
    for (std::size_t s = 0; s < stages_.size(); ++s) text += fmt::format("group stage{} {}\n", s, listed(all[s]));
    for (const auto& [name, groups] : groups_) {
      text += "group " + name;
      for (const Group& g : groups) text += " " + listed(g);
      text += "\n";
    }
    return text;
  }

  // The groups of an axis that have members in the stage.
  std::string group_name(const Exchange& e, std::size_t stage) {
    const bool across = e.axis == Axis::pipeline || e.axis == Axis::tied;
    const std::string word = across ? std::string(name(e.axis)) : fmt::format("{}{}", name(e.axis), stage);
    if (groups_.contains(word)) return word;
    Groups all = e.axis == Axis::kv ? mesh_.kv_groups(stages_[0].kv_copies)
                                    : mesh_.groups(e.axis == Axis::tied ? Axis::pipeline : e.axis);
    if (e.axis == Axis::tied)
      for (Group& g : all) g = {g.front(), g.back()};
    if (!across) std::erase_if(all, [&](const Group& g) { return stage_of(g[0]) != stage; });
    groups_[word] = std::move(all);
    return word;
  }

  std::size_t group_size(const Exchange& e) const {
    const MeshShape& s = mesh_.shape();
    if (e.axis == Axis::tied) return 2;
    const Rank n = e.axis == Axis::tensor ? s.tensor
                   : e.axis == Axis::data ? s.data
                   : e.axis == Axis::kv   ? stages_[0].kv_copies
                                          : s.pipeline;
    return static_cast<std::size_t>(n);
  }

  void take(std::size_t stage, const Operation& o) {
    if (o.kind == Operation::Kind::compute) {
      sum_[stage].flops += o.flops, sum_[stage].bytes += stages_[stage].program.bytes_touched(o);
      if (sum_[stage].name.empty()) sum_[stage].name = o.name;
      return;
    }
    flush(stage);
    if (o.kind == Operation::Kind::wait) return void(waits_[stage].insert(tickets_[stage].at(o.ticket)));
    const Exchange& e = o.exchange;
    double bytes = stages_[stage].program.bytes_exchanged(o);
    if (e.kind == Exchange::Kind::send) return send(stage, e, bytes, o.name);
    if (e.kind != Exchange::Kind::all_reduce) bytes *= static_cast<double>(group_size(e));
    const std::string task = unique(stage, o.name);
    const bool across = e.axis == Axis::pipeline || e.axis == Axis::tied;
    if (across)
      for (std::size_t s = 0; s < stages_.size(); ++s) flush(s);
    std::string after = across ? "" : awaited(stage);
    // What runs beside other things begins when what came before it in this stage has ended.
    if (o.ticket != 0 && after.empty() && !last(stage).empty()) after = " after " + last(stage);
    tasks_ += fmt::format("{} {} {:.0f}B on {}{} stream {}\n", name(e.kind), task, bytes, group_name(e, stage), after,
                          o.ticket == 0 ? "main" : fmt::format("beside_{}", name(e.axis)));
    if (o.ticket != 0)
      tickets_[stage][o.ticket] = task;
    else
      last_[stage] = task;
  }

  void send(std::size_t stage, const Exchange& e, double bytes, const std::string& name) {
    const auto peer = static_cast<std::size_t>(e.peer);
    flush(peer);
    const std::string task = unique(stage, name);
    for (Rank d = 0; d < mesh_.shape().data; ++d)
      for (Rank t = 0; t < mesh_.shape().tensor; ++t) {
        const Rank from = mesh_.rank({.pipeline = static_cast<Rank>(stage), .data = d, .tensor = t});
        const Rank to = mesh_.rank({.pipeline = static_cast<Rank>(peer), .data = d, .tensor = t});
        tasks_ += fmt::format("send_recv {}_{} {:.0f}B from {} to {} stream main\n", task, from, bytes, from, to);
      }
  }

  // Computations since the last exchange of the stage.
  void flush(std::size_t stage) {
    Sum& s = sum_[stage];
    if (s.name.empty() && waits_[stage].empty()) return;
    const std::string task = unique(stage, s.name.empty() ? "wait" : s.name);
    tasks_ += fmt::format("compute {} {:.0f}FLOP {:.0f}B on stage{}{} stream main\n", task, s.flops, s.bytes, stage,
                          awaited(stage));
    last_[stage] = task;
    s = {};
  }

  std::string awaited(std::size_t stage) {
    std::string text;
    for (const std::string& task : waits_[stage]) text += (text.empty() ? " after " : " ") + task;
    waits_[stage].clear();
    return text;
  }

  const std::string& last(std::size_t stage) { return last_[stage]; }
  std::string unique(std::size_t stage, const std::string& name) {
    return fmt::format("{}_{}.{}", name, stage, ++count_);
  }

  struct Sum {
    std::string name;
    double flops = 0, bytes = 0;
  };
  const std::vector<Step>& stages_;
  const Mesh& mesh_;
  std::map<std::string, Groups> groups_;
  std::vector<Sum> sum_;
  std::vector<std::set<std::string>> waits_;
  std::vector<std::map<int, std::string>> tickets_;
  std::map<std::size_t, std::string> last_;
  std::string tasks_;
  std::int64_t count_ = 0;
};

}  // namespace

std::string workload_text(const std::vector<Step>& stages) { return Writing(stages).run(); }

}  // namespace trellis::train
