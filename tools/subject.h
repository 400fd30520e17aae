// What a schedule command is about: a collective that an algorithm is asked for, or a file that holds a schedule.
#pragma once
#include <optional>
#include <string>

#include "tools/request_options.h"

namespace trellis::tools {

struct Subject {
  std::optional<Asked> asked = {};
  std::string path = {};  // of the file, when nothing is asked for
  bool in_place = false;  // of an MSCCL file that can be read both ways, the reading in place
};

// The collective that the word names; none: it is a file's name. Throws invalid_argument for what was meant as a name.
std::optional<schedule::Collective> collective_meant(const std::string& word);

// `word` is a collective's name or else a file's; the options go with a collective only,
// but for --in-place.
Subject subject(const std::string& word, const RequestOptions&);
std::string in_words(const Subject&);

// Every rank's steps. Throws std::invalid_argument when they are too many to write out, or when the file holds no
// schedule, and std::system_error when it can't be read.
schedule::Schedule written_out(const Subject&);
bool too_large(const Asked&);

// What a file, a pipe or standard input ("-") said: it is read once, as a pipe says it once.
struct TypedFile {
  std::string path, text;
};
TypedFile typed_file(const std::string& path);

// A schedule of ours, of MSCCL (.xml) or of MSCCL++ (.json), by its name or how it begins.
bool holds_schedule(const TypedFile&);
// The schedule in it, proved. Throws invalid_argument where there is none, and runtime_error with what is wrong with
// it.
schedule::Schedule proved(const TypedFile&, bool in_place = false);

}  // namespace trellis::tools
