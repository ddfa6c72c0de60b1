// How far the predictions of a model in one configuration are from those in another.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace octet::bench {

// One prediction of the reference.
class Prediction {
 public:
  explicit Prediction(std::span<const float> logits) : logits_(logits), probabilities_(logits.size()) {
    const double largest = *std::ranges::max_element(logits);
    double sum = 0;
    for (std::size_t i = 0; i < logits.size(); ++i) sum += probabilities_[i] = std::exp(logits[i] - largest);
    for (double& probability : probabilities_) probability /= sum;
    log_sum_ = largest + std::log(sum);
  }
  double log_probability(std::size_t token) const { return logits_[token] - log_sum_; }
  std::span<const float> logits() const { return logits_; }
  const std::vector<double>& probabilities() const { return probabilities_; }
  // The likeliest token, the lowest among equals.
  std::size_t best() const { return static_cast<std::size_t>(std::ranges::max_element(logits_) - logits_.begin()); }

 private:
  std::span<const float> logits_;
  std::vector<double> probabilities_;
  double log_sum_;
};

// What one prediction adds to the figures.
struct PredictionFigures {
  double loss = 0;                        // -ln of the probability of the token that comes
  double loss_change = 0;                 // from the reference's
  double divergence = 0;                  // Kullback-Leibler, of this prediction from the reference, in nats
  bool agrees = false;                    // on the likeliest token
  double squared_error = 0, squares = 0;  // of the logits
};

inline PredictionFigures held_against(const Prediction& reference, std::span<const float> logits,
                                      std::size_t next_token) {
  PredictionFigures figures;
  const std::size_t best = static_cast<std::size_t>(std::ranges::max_element(logits) - logits.begin());
  const double largest = logits[best];
  double sum = 0, expected_difference = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const double wanted = reference.logits()[i], difference = wanted - logits[i];
    sum += std::exp(logits[i] - largest);
    expected_difference += reference.probabilities()[i] * difference;
    figures.squared_error += difference * difference;
    figures.squares += wanted * wanted;
  }
  const double log_sum = largest + std::log(sum), token = static_cast<double>(logits[next_token]);
  const double reference_log_sum =
      static_cast<double>(reference.logits()[next_token]) - reference.log_probability(next_token);
  figures.loss = log_sum - token;
  figures.loss_change = figures.loss + reference.log_probability(next_token);
  // Rounding may leave a little less than nothing.
  figures.divergence = std::max(expected_difference + log_sum - reference_log_sum, 0.0);
  figures.agrees = best == reference.best();
  return figures;
}

struct Mean {
  double value = 0, error = 0;  // error: standard error, predictions taken as independent
};

inline Mean mean_of(std::span<const double> values) {
  if (values.empty()) return {};
  const auto count = static_cast<double>(values.size());
  double sum = 0, squares = 0;
  for (const double value : values) sum += value;
  const double mean = sum / count;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return {.value = mean, .error = values.size() < 2 ? 0 : std::sqrt(squares / (count - 1) / count)};
}

// One configuration over all predictions.
class QualityFigures {
 public:
  void add(const PredictionFigures& figures) {
    losses_.push_back(figures.loss);
    loss_changes_.push_back(figures.loss_change);
    divergences_.push_back(figures.divergence);
    agreements_ += figures.agrees ? 1 : 0;
    squared_error_ += figures.squared_error;
    squares_ += figures.squares;
  }

  double perplexity() const { return std::exp(mean_of(losses_).value); }
  Mean loss_change() const { return mean_of(loss_changes_); }  // of ln(perplexity)
  Mean divergence() const { return mean_of(divergences_); }
  // The divergence that this share of the predictions does not pass.
  double divergence_quantile(double share) const {
    if (divergences_.empty()) return 0;
    std::vector<double> sorted = divergences_;
    std::ranges::sort(sorted);
    return sorted[static_cast<std::size_t>(share * static_cast<double>(sorted.size() - 1))];
  }
  // Share of the predictions whose likeliest token is the reference's.
  double agreement() const {
    return divergences_.empty() ? 0 : static_cast<double>(agreements_) / static_cast<double>(divergences_.size());
  }
  // Mean squared difference of the logits over their mean square.
  double nmse() const { return squares_ == 0 ? 0 : squared_error_ / squares_; }

 private:
  std::vector<double> losses_, loss_changes_, divergences_;
  std::int64_t agreements_ = 0;
  double squared_error_ = 0, squares_ = 0;
};

}  // namespace octet::bench
