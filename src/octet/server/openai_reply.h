// The reply to a generation request: outputs come in on the engine's thread, answers go out on the connection's.
#pragma once
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "octet/engine/engine.h"
#include "octet/server/answer_writer.h"
#include "octet/server/reply.h"
#include "octet/server/request_log.h"
#include "octet/server/service.h"

namespace octet::server {

// Requests that the engine can run, one per prompt, sinks not set; and what writes their answer.
struct PreparedRequest {
  std::vector<engine::Request> requests;
  std::unique_ptr<AnswerWriter> writer;
};

struct StreamOptions {
  std::chrono::milliseconds keep_alive{0};  // a comment where a stream was silent for so long; 0: none
  std::int32_t interval = 1;                // tokens of an event; the first of a choice goes out alone
};

// Every output of the engine becomes one event of a stream, or StreamOptions::interval of them; events that wait for
// the client go out in one write.
class GenerationReply final : public Reply {
 public:
  // The options must outlive the reply.
  GenerationReply(std::shared_ptr<Waker> waker, ErrorForm error_form, const RequestLogOptions& log,
                  const StreamOptions& stream = {});
  ~GenerationReply() override;

  // From a worker's thread, one of these once:
  void fail(const ApiError& error);
  // Hands the requests to the engine: all or, with an error, none.
  void start(std::shared_ptr<ServedModel> model, PreparedRequest prepared, Service& service);
  // The client has gone: there is nothing to prepare for.
  bool abandoned() const;

  void poll(ReplyPart& part) override;
  void cut(const ApiError& error, ReplyPart& part) override;
  std::chrono::milliseconds keep_alive_interval() const override { return stream_.keep_alive; }
  void keep_alive(ReplyPart& part) override;
  std::size_t backlog() const override;
  void abandon() override;
  const RequestSummary* summary() const override { return opened_ && writer_ ? &summary_ : nullptr; }

 private:
  class Mailbox;
  void open_stream(ReplyPart& part);
  void end_with(const ApiError& error, ReplyPart& part);
  void cancel_all();
  void note(std::int32_t choice, const engine::Output& output);

  const ErrorForm error_form_;
  const RequestLogOptions& log_;
  const StreamOptions stream_;
  std::shared_ptr<Mailbox> mailbox_;
  std::shared_ptr<ServedModel> model_;    // set before the mailbox opens
  std::unique_ptr<AnswerWriter> writer_;  // likewise; then used on the connection's thread only
  RequestSummary summary_;
  bool opened_ = false;  // the mailbox is, and the connection's thread has seen it
  bool head_sent_ = false, begun_ = false, ended_ = false;
};

}  // namespace octet::server
