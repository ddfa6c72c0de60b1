// The routes: OpenAI's API, probes and metrics.
#pragma once
#include <memory>

#include "octet/server/openai_prepare.h"
#include "octet/server/router.h"
#include "octet/server/service.h"

namespace octet::server {

class OpenAiApi {
 public:
  // The service must outlive this.
  OpenAiApi(Service& service, ApiOptions options);
  ~OpenAiApi();

  // This must outlive the router's use.
  void add_routes(Router& router);
  // Ends the worker threads; requests still queued there are never answered. Before the service goes.
  void stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace octet::server
