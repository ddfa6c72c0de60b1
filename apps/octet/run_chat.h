// A conversation with a model in this process, on the way that the server's chats take: the same fields, template,
// defaults and limits.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "octet/base/error.h"
#include "octet/base/json.h"
#include "octet/engine/replica.h"
#include "octet/engine/request.h"

namespace octet::run {

struct ReplyReport {
  engine::FinishReason finish = engine::FinishReason::kNone;  // kAbort: interrupted
  double first_token_seconds = 0;
  double tokens_per_second = 0;  // after the first one; 0 where there is no second
  std::int32_t prompt_tokens = 0, cached_tokens = 0, completion_tokens = 0;
};

class Chat {
 public:
  // fields: what every request carries besides its messages, as in a body of the server (temperature, seed ...).
  Chat(std::unique_ptr<engine::Replica> replica, Json fields);
  ~Chat();

  // False: the model has no chat template. It continues each text by itself; nothing is remembered.
  bool has_template() const;

  // Says this to the model and hands the reply to `show` as it comes. `interrupted` is asked some times a second; yes
  // stops the reply. What was said and replied, also in part, becomes part of the conversation; after an error nothing.
  Result<ReplyReport> ask(const std::string& text, const std::function<void(std::string_view)>& show,
                          const std::function<bool()>& interrupted);

  void set_system(std::string text) { system_ = std::move(text); }  // empty: none
  const std::string& system() const { return system_; }
  void reset() { turns_ = Json::array(); }  // the system prompt stays
  Json messages() const;                    // all of it, the system prompt first

 private:
  class Mailbox;
  std::string body(const std::string& text) const;
  // Takes outputs until the reply ends; all of its text goes to `show`.
  Result<ReplyReport> receive(Mailbox& mailbox, engine::RequestId id, const std::function<void(std::string_view)>& show,
                              const std::function<bool()>& interrupted);

  struct Served;
  std::unique_ptr<Served> served_;
  Json fields_;
  std::string system_;
  Json turns_ = Json::array();
};

}  // namespace octet::run
