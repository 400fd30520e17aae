// Streams of tokens in files: text as bytes, plain 16- or 32-bit numbers (.bin), Megatron's pairs of .bin and .idx with
// its documents. For supervised fine-tuning: a .mask beside these, a byte for each token, 0 where it is not to be
// predicted; or lines of JSON with a prompt and a response (.jsonl), as bytes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "train/data/input_file.h"
#include "train/data/source.h"

namespace trellis::train {

class TokenFile {
 public:
  // token_bytes: of a .bin without .idx, 2 or 4; 0 is then an error. Throws system_error, or invalid_argument that
  // names the file and what was expected.
  TokenFile(const std::filesystem::path&, std::size_t token_bytes);
  const std::string& name() const { return name_; }
  std::size_t tokens() const { return tokens_; }
  // The first token of each document, and one past the last. A file without an index is one document.
  const std::vector<std::uint64_t>& documents() const { return documents_; }
  bool tells_documents() const { return tells_documents_; }  // an index or lines of JSON mark documents
  // read() and read_counts() throw runtime_error where the file was cut short since it was opened.
  void read(std::size_t first, std::size_t count, std::int32_t* out) const;
  // Whether predicting each token counts for the loss; it does not for tokens of a prompt.
  void read_counts(std::size_t first, std::size_t count, std::uint8_t* out) const;
  std::int32_t at(std::size_t i) const;
  DataFile identity() const;  // reads all of it

 private:
  void open_mask(const std::filesystem::path&);
  void read_records();
  std::string name_;
  std::unique_ptr<InputFile> file_, mask_;
  std::size_t width_ = 1, tokens_ = 0;
  bool tells_documents_ = false;
  std::vector<std::uint64_t> documents_;
  std::string text_;  // the tokens of .jsonl records; else the file's bytes are the tokens
  std::vector<std::uint8_t> counts_;
};

}  // namespace trellis::train
