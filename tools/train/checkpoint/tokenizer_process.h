// The tokenizer of a folder, which the Python package reads in a process of its own: text to tokens and back.
#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

namespace trellis::tools {

// Whether the folder has a tokenizer of Hugging Face or sentencepiece.
bool has_tokenizer(const std::filesystem::path& folder);

class TokenizerProcess {
 public:
  // Throws runtime_error where no interpreter has the packages, or the folder's tokenizer cannot be read.
  explicit TokenizerProcess(const std::filesystem::path& folder);
  ~TokenizerProcess();
  TokenizerProcess(const TokenizerProcess&) = delete;
  TokenizerProcess& operator=(const TokenizerProcess&) = delete;

  std::size_t size() const { return size_; }
  const std::vector<std::int32_t>& ends() const { return ends_; }  // tokens after which a text is over
  std::vector<std::int32_t> prompt(const std::string& text);       // with the tokens that stand before every text
  std::string text(std::span<const std::int32_t> tokens);

 private:
  void start(const std::string& python);
  nlohmann::json asked(const nlohmann::json& question);
  nlohmann::json answer();
  struct Close {
    void operator()(std::FILE* f) const { std::fclose(f); }
  };
  std::string folder_;
  int child_ = -1;
  std::unique_ptr<std::FILE, Close> to_, from_;
  std::size_t size_ = 0;
  std::vector<std::int32_t> ends_;
};

}  // namespace trellis::tools
