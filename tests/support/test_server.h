// The whole server in this process, over an executor without a model. Tokens are bytes; the model is called "M", with
// the alias "M2".
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "octet/engine/engine.h"
#include "octet/server/front.h"
#include "octet/server/http_server.h"
#include "octet/server/openai_api.h"
#include "octet/server/request_log.h"
#include "octet/server/router.h"
#include "octet/server/service.h"
#include "tests/support/faulty_executor.h"
#include "tests/support/http_client.h"

namespace octet::testing {

constexpr std::string_view kTestTemplate =
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}";

struct TestServerOptions {
  std::string script = "Hello, world. ";  // what every sequence says, over and over
  bool experts = false;                   // its executor counts loads, see ScriptExecutor
  bool ends = false;                      // the script is followed by the end of the sequence
  std::chrono::microseconds step_time{0};
  std::unique_ptr<engine::Executor> executor;  // instead of a script
  std::shared_ptr<StepFaults> faults;          // none: no step is held back, none fails
  const Clock* clock = &SteadyClock::instance();
  bool tokenizer = true, chat_template = true;
  std::map<std::string, std::string> chat_templates = {{"default", std::string(kTestTemplate)}};
  std::unique_ptr<text::Tokenizer> other_tokenizer;  // instead of bytes
  bool load = true;                                  // false: the model is still loading; publish() ends that
  std::int32_t max_model_len = 2048, max_sequences = 16, max_waiting = 1024, max_admitted = 0, blocks = 4096,
               max_step_rows = 4096;
  engine::SchedulerConfig::Policy policy = engine::SchedulerConfig::Policy::kFcfs;
  std::int64_t max_queued_tokens = 0;
  bool prefix_caching = true;
  engine::HistogramBuckets histogram_buckets;
  server::HttpLimits limits;
  server::FrontOptions front;
  server::ApiOptions api;
  std::optional<server::TlsOptions> tls;
  int io_threads = 1;
  std::string host = "127.0.0.1";
};

class TestServer {
 public:
  explicit TestServer(TestServerOptions options = {});
  ~TestServer();

  int port() const { return http_->port(); }
  server::HttpServer& http() { return *http_; }
  server::Service& service() { return service_; }
  engine::Engine& engine() { return *service_.model()->replica->engine; }
  void publish();

  HttpReply post(std::string_view path, std::string_view body) { return http_post(port(), path, body); }
  HttpReply get(std::string_view path) { return http_get(port(), path); }
  // Waits until nothing runs or waits and every block is free or cached; false if that does not come.
  bool comes_to_rest();

 private:
  TestServerOptions options_;
  server::Service service_{{"M", "M2"}};
  server::Router router_;
  server::Front front_;
  server::RequestLog log_;
  std::unique_ptr<server::OpenAiApi> api_;
  std::unique_ptr<server::HttpServer> http_;
};

// Waits, 60 s at most, until the condition holds.
bool eventually(const std::function<bool()>& condition);

}  // namespace octet::testing
