#include "octet/server/api_error.h"

#include "octet/base/json.h"
#include "octet/base/utf8.h"

namespace octet::server {

ApiError bad_value(std::optional<std::string> param, std::string message) {
  return {400, "BadRequestError", std::move(param), std::move(message), {}};
}

ApiError bad_form(std::string_view path, std::string message) {
  return {400, "Bad Request", path.empty() ? "body" : fmt::format("body.{}", path), std::move(message), {}};
}

ApiError model_not_found(std::string_view asked, std::string_view served) {
  return {404,
          "NotFoundError",
          "model",
          fmt::format("the model \"{}\" is not served here; served: {}", excerpt(asked), served),
          {}};
}

ApiError unavailable(std::string message, int retry_after) {
  return {503, "ServiceUnavailableError", {}, std::move(message), retry_after};
}

ApiError queue_full(std::string message) { return {429, "TooManyRequestsError", {}, std::move(message), 1}; }

ApiError internal_error(std::string message) { return {500, "InternalServerError", {}, std::move(message), {}}; }

ApiError http_error(int status, std::string message) {
  return {status, std::string(reason_phrase(status)), {}, std::move(message), {}};
}

ApiError from_error(const Error& error, std::optional<std::string> param) {
  switch (error.code) {
    case ErrorCode::kInvalid:
    case ErrorCode::kUnsupported:
    case ErrorCode::kNotFound:
      return bad_value(std::move(param), error.message);
    case ErrorCode::kExhausted:
      return queue_full(error.message);
    case ErrorCode::kCancelled:
      return unavailable(error.message, 5);
    case ErrorCode::kIo:
      break;
  }
  return internal_error(error.message);
}

std::string error_json(const ApiError& error) {
  Json body;
  body["message"] = error.message;
  body["type"] = error.type;
  body["param"] = error.param ? Json(*error.param) : Json(nullptr);
  body["code"] = error.status;
  Json envelope;
  envelope["error"] = std::move(body);
  return dump_json(envelope);
}

HttpResponse error_response(const ApiError& error) {
  HttpResponse response{error.status, "application/json", error_json(error), {}};
  if (error.retry_after) response.headers.emplace_back("Retry-After", fmt::format("{}", *error.retry_after));
  return response;
}

std::string excerpt(std::string_view text, std::size_t limit) {
  if (text.size() <= limit) return repair_utf8(text);
  std::string_view cut = text.substr(0, limit);
  cut = cut.substr(0, utf8_prefix(cut).complete);
  return fmt::format("{}… ({} bytes)", cut, text.size());
}

}  // namespace octet::server
