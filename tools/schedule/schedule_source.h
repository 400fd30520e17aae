// The subject of a schedule command: a collective that an algorithm is asked for, or a file with a schedule.
#pragma once
#include <optional>
#include <string>

#include "tools/schedule/request_options.h"

namespace trellis::tools {

struct ScheduleSource {
  std::optional<AlgorithmRequest> asked = {};
  std::string path = {};  // of the file, when there is no request
  bool in_place = false;  // for an MSCCL file that can be read both ways: read it as in place
};

// The collective that the word names; none when it is a file's name. Throws invalid_argument for a misspelt collective.
std::optional<schedule::Collective> collective_meant(const std::string& word);

// `word` is the name of a collective or of a file. The options go with a collective only, except --in-place.
ScheduleSource subject(const std::string& word, const RequestOptions&);
std::string in_words(const ScheduleSource&);

// Every rank's steps. Throws std::invalid_argument when they are too many to write out or the file holds no schedule,
// and std::system_error when it can't be read.
schedule::Schedule written_out(const ScheduleSource&);
bool too_large(const AlgorithmRequest&);
// Throws runtime_error with the fault when the schedule is wrong. `unproved`: the user wants it all the same.
void expect_proved(const schedule::Schedule&, const ScheduleSource&, bool unproved);

// The content of a file, a pipe or standard input ("-"), read once, because a pipe can be read only once.
struct FileText {
  std::string path, text;
};
FileText typed_file(const std::string& path);

// Whether it is a schedule in our text, MSCCL XML (.xml) or MSCCL++ (.json), by its name or its first characters.
bool holds_schedule(const FileText&);
// The schedule in it, proved. Throws invalid_argument when there is none, and runtime_error with the fault when it is
// wrong.
schedule::Schedule proved(const FileText&, bool in_place = false);

}  // namespace trellis::tools
