#include "ccl/failure/rank_dump_writer.h"

namespace trellis::ccl {

using nlohmann::json;

json part_of(const RankDump& d) {
  json pending = json::array(), seen = json::array();
  for (const PendingMessage& p : d.pending)
    pending.push_back({{"peer", p.peer}, {"receives", p.receives ? 1 : 0}, {"bytes", p.bytes}});
  for (const PeerSnapshot& s : d.seen)
    seen.push_back({{"operation", s.last.operation},
                    {"points", s.last.points ? 1 : 0},
                    {"division", s.last.division},
                    {"under_way", s.last.under_way ? 1 : 0},
                    {"call", s.last.call},
                    {"waits_for", s.waits_for},
                    {"process", s.process},
                    {"standing", name(s.standing)}});
  return {{"rank", d.rank},
          {"ranks", d.ranks},
          {"communicator", d.communicator},
          {"parent", d.parent},
          {"in_parent", d.in_parent},
          {"process", d.process},
          {"process_identity", d.process_identity},
          {"job_identity", d.job_identity},
          {"error", d.error},
          {"trouble", name(d.trouble)},
          {"blamed", d.blamed},
          {"signal", d.signal},
          {"later", d.later},
          {"absent", d.absent},
          {"waits_for", d.waits_for},
          {"step", d.step},
          {"pending", pending},
          {"seen", seen}};
}

}  // namespace trellis::ccl
