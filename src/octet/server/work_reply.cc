#include "octet/server/work_reply.h"

#include <utility>

namespace octet::server {

void WorkReply::answer(HttpResponse response) {
  std::shared_ptr<Waker> waker;
  {
    const std::lock_guard lock(mutex_);
    response_ = std::move(response);
    waker = waker_;
  }
  if (waker) waker->wake();
}

bool WorkReply::abandoned() const {
  const std::lock_guard lock(mutex_);
  return waker_ == nullptr;
}

void WorkReply::poll(ReplyPart& part) {
  const std::lock_guard lock(mutex_);
  if (!response_) return;
  part.head = *std::exchange(response_, std::nullopt);
  part.end = ReplyPart::End::kDone;
}

void WorkReply::cut(const ApiError& error, ReplyPart& part) {
  abandon();
  part.head = error_form_(error);
  part.end = ReplyPart::End::kDone;
}

std::size_t WorkReply::backlog() const {
  const std::lock_guard lock(mutex_);
  return response_ ? response_->body.size() : 0;
}

void WorkReply::abandon() {
  const std::lock_guard lock(mutex_);
  waker_ = nullptr;
  response_.reset();
}

}  // namespace octet::server
