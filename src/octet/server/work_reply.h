// The reply to a request that a worker answers whole.
#pragma once
#include <memory>
#include <mutex>
#include <optional>

#include "octet/server/api_error.h"
#include "octet/server/reply.h"

namespace octet::server {

class WorkReply final : public Reply {
 public:
  WorkReply(std::shared_ptr<Waker> waker, ErrorForm error_form) : error_form_(error_form), waker_(std::move(waker)) {}

  // From a worker's thread, once.
  void answer(HttpResponse response);
  // The client has gone: nobody waits for an answer.
  bool abandoned() const;

  void poll(ReplyPart& part) override;
  void cut(const ApiError& error, ReplyPart& part) override;
  std::size_t backlog() const override;
  void abandon() override;

 private:
  const ErrorForm error_form_;
  mutable std::mutex mutex_;
  std::shared_ptr<Waker> waker_;  // null once abandoned
  std::optional<HttpResponse> response_;
};

}  // namespace octet::server
