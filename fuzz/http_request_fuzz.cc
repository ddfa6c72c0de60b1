// Bytes of a connection, as any client may send them: the HTTP parser in pieces of odd sizes, the route, the JSON body,
// and the checks of both generation routes.
#include <cstddef>
#include <cstdint>
#include <string>

#include "octet/base/check.h"
#include "octet/base/json.h"
#include "octet/server/http_parser.h"
#include "octet/server/openai_request.h"
#include "octet/server/router.h"

namespace {

using octet::server::ApiKind;
using octet::server::HttpParser;

octet::server::HttpLimits small_limits() {
  octet::server::HttpLimits limits;
  limits.header_bytes = 1024;
  limits.header_count = 16;
  limits.body_bytes = 8192;
  return limits;
}

octet::server::HttpResponse parsed(ApiKind kind, const std::string& body) {
  auto json = octet::server::parse_body(body);
  if (!json) return octet::server::error_response(json.error());
  auto request = octet::server::parse_generation_request(kind, *std::move(json), {});
  if (!request) return octet::server::error_response(request.error());
  OCTET_CHECK(kind == ApiKind::kChat ? !request->chat.messages.empty() : !request->prompts.empty());
  OCTET_CHECK(request->choices >= 1 && request->sampling.temperature >= 0 && request->sampling.top_p > 0);
  return {};
}

octet::server::Router make_router() {
  octet::server::Router router;
  for (const auto& [path, kind] :
       {std::pair{"/v1/chat/completions", ApiKind::kChat}, std::pair{"/v1/completions", ApiKind::kCompletion}}) {
    router.add("POST", path, [kind](octet::server::HttpRequest&& request, const auto&) {
      return octet::server::Answer(parsed(kind, request.body));
    });
  }
  router.add("GET", "/v1/models/*", [](auto&&, const auto&) { return octet::server::HttpResponse{}; });
  return router;
}

void check_answer(const octet::server::HttpResponse& response) {
  if (response.status < 400) return;
  auto envelope = octet::parse_json(response.body);
  OCTET_CHECK(envelope && envelope->contains("error") && (*envelope)["error"]["message"].is_string());
}

// What came of a request that cannot be read whole is answered, too, and cannot break the answer's lines.
void check_refusal(HttpParser& parser, std::string_view unread, const octet::server::Router& router) {
  auto begun = parser.begun(unread);
  for (const auto& [name, value] : begun.headers)
    OCTET_CHECK((name + value).find_first_of("\r\n") == std::string::npos);
  check_answer(router.refuse(std::move(begun), octet::server::http_error(400, "refused")));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const octet::server::HttpLimits limits = small_limits();
  static const octet::server::Router router = make_router();
  if (size == 0) return 0;
  const std::size_t piece = 1 + data[0];
  std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  std::string input;
  auto parser = std::make_unique<HttpParser>(limits);
  while (!rest.empty() || !input.empty()) {
    input += rest.substr(0, piece);
    const bool last = rest.size() <= piece;
    rest.remove_prefix(std::min(rest.size(), piece));
    const HttpParser::State state = parser->feed(input);
    OCTET_CHECK(input.size() <= limits.header_bytes + piece || state == HttpParser::State::kDone ||
                state == HttpParser::State::kFailed);
    if (state == HttpParser::State::kFailed) {
      OCTET_CHECK(parser->failure().status >= 400 && !parser->failure().message.empty());
      check_refusal(*parser, input, router);
      return 0;
    }
    if (state == HttpParser::State::kDone) {
      auto request = parser->take();
      OCTET_CHECK(request.body.size() <= limits.body_bytes && request.headers.size() <= limits.header_count);
      check_answer(std::get<octet::server::HttpResponse>(router.handle(std::move(request), nullptr)));
      parser = std::make_unique<HttpParser>(limits);
    } else if (last) {
      check_refusal(*parser, input, router);
      return 0;
    }
  }
  return 0;
}
