#include <map>

#include "text/number_parsing.h"
#include "text/refuse.h"
#include "tools/program/cli_checks.h"
#include "tools/program/command.h"
#include "tools/program/output.h"
#include "tools/program/output_option.h"
#include "tools/schedule/draw/picture.h"
#include "tools/schedule/schedule_source.h"

namespace trellis::tools {
namespace {

struct Options {
  std::string word;
  RequestOptions request;
  std::string output;
  std::string rounds;
  std::string channel;
  std::string colours = "auto";
  bool down = false;
  bool unproved = false;
};

void add(CLI::App& app, Options& o) {
  app.add_option("schedule", o.word, "A collective, or a file that holds a schedule")->required();
  add_request_options(app, o.request);
  app.add_option("-o,--output", o.output, "Write the SVG here [standard output]")
      ->check(svg_file())
      ->check(output_file());
  app.add_option("--rounds", o.rounds, "Only these rounds: 1..4");
  app.add_option("--channel", o.channel, "Only this channel, or all [all, or 0 if the picture would be too crowded]");
  app.add_option("--colours", o.colours, "What colours stand for: data, channel, sender, or auto")
      ->capture_default_str();
  app.add_flag("--down", o.down, "Let time run downwards instead of to the right");
  app.add_flag("--unproved", o.unproved, "Draw it without a proof");
}

draw::ColourBy colours_named(const std::string& word) {
  using enum draw::ColourBy;
  const std::map<std::string, draw::ColourBy> known{
      {"auto", automatic}, {"data", data}, {"channel", channel}, {"sender", sender}};
  const auto found = known.find(word);
  if (found == known.end()) text::refuse("--colours {}: expected data, channel, sender or auto", word);
  return found->second;
}

std::int32_t channel_named(const std::string& word) {
  if (word == "all") return draw::all_channels;
  if (const auto channel = text::number<std::int32_t>(word, 0)) return *channel;
  text::refuse("--channel {}: expected all, or a channel's number", word);
}

int run(const Options& o) {
  draw::DrawOptions wish{.colours = colours_named(o.colours), .down = o.down};
  if (!o.rounds.empty()) wish.rounds = parse_span(o.rounds);
  if (!o.channel.empty()) wish.channel = channel_named(o.channel);
  const ScheduleSource what = subject(o.word, o.request);
  if (what.asked) wish.dims = what.asked->request.dims;
  const schedule::Schedule s = written_out(what);
  const std::string picture = draw::picture(s, wish);
  expect_proved(s, what, o.unproved);
  write_output(o.output, picture);
  return 0;
}

const RegisteredCommand draw_command(
    "schedule draw", "Draws a schedule as a space-time diagram in SVG",
    "trellis schedule draw all_reduce --algorithm ring --dims 8 -o ring.svg\n"
    "trellis schedule draw all_gather -a ring -d 16 --channels 2 --colours channel > lanes.svg\n"
    "trellis schedule draw all_reduce -a ring -d 32 --rounds 1..4 -o begin.svg",
    add, run);

}  // namespace
}  // namespace trellis::tools
