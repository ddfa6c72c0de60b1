#include "octet/server/service.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <ctime>

#include "octet/base/check.h"
#include "octet/server/fingerprint.h"

namespace octet::server {
namespace {

constexpr int kRetrySeconds = 5;

// A token's spelling is at least as long as its text in every vocabulary that Octet reads.
std::size_t longest_token(const text::Tokenizer& tokenizer) {
  std::size_t longest = 1;
  for (text::TokenId id = 0; id < tokenizer.vocabulary_size(); ++id) {
    if (const auto token = tokenizer.token(id)) longest = std::max(longest, token->size());
  }
  return longest;
}

}  // namespace

Service::Service(std::vector<std::string> names, std::optional<std::chrono::nanoseconds> watchdog)
    : names_(std::move(names)), watchdog_(watchdog), created_(std::time(nullptr)) {
  OCTET_CHECK(!names_.empty());
}

void Service::publish(std::unique_ptr<engine::Replica> replica) {
  auto model = std::make_shared<ServedModel>();
  if (replica->tokenizer) model->longest_token = longest_token(*replica->tokenizer);
  model->configuration_hash = configuration_hash(*replica);
  model->replica = std::move(replica);
  const std::lock_guard lock(mutex_);
  model_ = std::move(model);
}

void Service::begin_drain() { draining_ = true; }

std::shared_ptr<ServedModel> Service::model() const {
  const std::lock_guard lock(mutex_);
  return model_;
}

ApiResult<> Service::alive() const {
  const std::shared_ptr<ServedModel> model = this->model();
  if (!model || !watchdog_) return {};
  const std::chrono::nanoseconds stalled(model->replica->engine->stalled_ns());
  if (stalled <= *watchdog_) return {};
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(stalled).count();
  return std::unexpected(
      unavailable(fmt::format("the engine has work and has made no progress for {} s", seconds), kRetrySeconds));
}

ApiResult<std::shared_ptr<ServedModel>> Service::available() const {
  std::shared_ptr<ServedModel> model = this->model();
  if (draining_) return std::unexpected(unavailable("the server is shutting down", kRetrySeconds));
  if (!model) return std::unexpected(unavailable("the model is still loading", kRetrySeconds));
  return model;
}

ApiResult<std::shared_ptr<ServedModel>> Service::admit() {
  auto model = available();
  if (!model) ++unavailable_;
  return model;
}

void Service::count_answer(std::string_view route, int status) {
  const std::lock_guard lock(mutex_);
  ++answers_[{std::string(route), status}];
}

Service::AnswerCounts Service::answers() const {
  const std::lock_guard lock(mutex_);
  return answers_;
}

bool Service::serves(std::string_view name) const { return std::ranges::find(names_, name) != names_.end(); }

std::string Service::names_text() const { return fmt::format("{}", fmt::join(names_, ", ")); }

}  // namespace octet::server
