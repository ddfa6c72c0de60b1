// Reads what the reference implementations computed for the models under tests/golden (see its README).
#pragma once
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace octet::testing {

// Prompts and what follows them. Of GGUF models, a prompt with logits has no continuation, and the other way round.
struct GoldenRun {
  std::vector<std::int32_t> prompt;
  std::vector<std::int32_t> logit_positions;            // of the prompt
  std::vector<std::vector<float>> prompt_logits;        // one row per position above
  std::vector<std::int32_t> continuation;               // greedy
  std::vector<double> margins;                          // best minus second best, per token of the continuation
  std::vector<std::vector<float>> continuation_logits;  // the row that gave each token; may be empty
};

struct GoldenModel {
  std::vector<GoldenRun> runs;
  double peer_max_difference = 0;  // GGUF: llama.cpp against the reference, largest over logits of this very file
};

// tests/golden/models/NAME, one of its references. Fails the running test when it cannot be read.
GoldenModel read_golden_folder(const std::filesystem::path& folder, const std::string& computation = "main");
// tests/golden/gguf/NAME.gguf's neighbours.
GoldenModel read_golden_gguf(const std::filesystem::path& gguf);

// Gathers differences over many rows.
class LogitDifference {
 public:
  void add(std::span<const float> got, std::span<const float> reference);
  double largest() const { return largest_; }
  double nmse() const { return reference_squares_ > 0 ? squares_ / reference_squares_ : 0; }
  std::int64_t rows() const { return rows_; }

 private:
  double largest_ = 0, squares_ = 0, reference_squares_ = 0;
  std::int64_t rows_ = 0;
};

}  // namespace octet::testing
