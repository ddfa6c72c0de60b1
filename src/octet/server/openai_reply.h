// The reply to a generation request: outputs come in on the engine's thread, answers go out on the connection's.
#pragma once
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "octet/engine/engine.h"
#include "octet/server/openai_answer.h"
#include "octet/server/reply.h"
#include "octet/server/request_log.h"
#include "octet/server/service.h"

namespace octet::server {

// A request that the engine can run: one per prompt, sinks not set.
struct PreparedRequest {
  std::vector<engine::Request> requests;
  AnswerFormat format;
};

// Every output of the engine becomes one event of a stream; events that wait for the client go out in one write.
class GenerationReply final : public Reply {
 public:
  // The options must outlive the reply.
  GenerationReply(std::shared_ptr<Waker> waker, const RequestLogOptions& log);
  ~GenerationReply() override;

  // From a worker's thread, one of these once:
  void fail(const ApiError& error);
  // Hands the requests to the engine: all or, with an error, none.
  void start(std::shared_ptr<ServedModel> model, PreparedRequest prepared, Service& service);
  // The client has gone: there is nothing to prepare for.
  bool abandoned() const;

  void poll(ReplyPart& part) override;
  void cut(const ApiError& error, ReplyPart& part) override;
  std::size_t backlog() const override;
  void abandon() override;
  const RequestSummary* summary() const override { return opened_ && builder_ ? &summary_ : nullptr; }

 private:
  class Mailbox;
  void end_with(const ApiError& error, ReplyPart& part);
  void cancel_all();
  void note(std::int32_t choice, const engine::Output& output);

  const RequestLogOptions& log_;
  std::shared_ptr<Mailbox> mailbox_;
  std::shared_ptr<ServedModel> model_;    // set before the mailbox opens
  std::optional<AnswerBuilder> builder_;  // likewise; then used on the connection's thread only
  RequestSummary summary_;
  bool opened_ = false;  // the mailbox is, and the connection's thread has seen it
  bool head_sent_ = false, ended_ = false;
};

}  // namespace octet::server
