#include "schedule/formats/msccl_xml.h"
#include "schedule/formats/text.h"
#include "text/refuse.h"
#include "tools/program/command.h"
#include "tools/program/output.h"
#include "tools/program/output_option.h"
#include "tools/schedule/schedule_source.h"

namespace trellis::tools {
namespace {

struct Options {
  std::string word;
  RequestOptions request;
  std::string to;
  std::string output;
  bool unproved = false;
};

void add(CLI::App& app, Options& o) {
  app.add_option("schedule", o.word, "A collective, or a file: our text, MSCCL's XML or MSCCL++'s JSON")->required();
  add_request_options(app, o.request);
  app.add_option("--to", o.to, "text, or msccl-xml")->required();
  app.add_option("-o,--output", o.output, "Write here [standard output]")->check(output_file());
  app.add_flag("--unproved", o.unproved, "Write it without a proof");
}

int run(const Options& o) {
  if (o.to != "text" && o.to != "msccl-xml") text::refuse("--to {}: expected text or msccl-xml", o.to);
  const ScheduleSource what = subject(o.word, o.request);
  const schedule::Schedule s = written_out(what);
  expect_proved(s, what, o.unproved);
  write_output(o.output, o.to == "text" ? print(s) : export_msccl(s));
  return 0;
}

const RegisteredCommand convert("schedule convert", "Writes a schedule in another format",
                                "trellis schedule convert allreduce.xml --to text -o allreduce.txt\n"
                                "trellis schedule convert all_gather -a ring -d 8 --to msccl-xml -o ring.xml",
                                add, run);

}  // namespace
}  // namespace trellis::tools
