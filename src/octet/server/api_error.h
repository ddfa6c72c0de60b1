// The one error envelope: {"error": {"message", "type", "param", "code"}}.
#pragma once
#include <fmt/format.h>

#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "octet/base/error.h"
#include "octet/server/http_message.h"

namespace octet::server {

struct ApiError {
  int status = 400;
  std::string type;                  // "BadRequestError"; for errors of form and of HTTP itself the status' phrase
  std::optional<std::string> param;  // the field at fault
  std::string message;
  std::optional<int> retry_after;  // seconds
};

template <typename T = void>
using ApiResult = std::expected<T, ApiError>;

// A field of the right type whose value cannot be served.
ApiError bad_value(std::optional<std::string> param, std::string message);
// A body or field of the wrong form; param is the path inside the body ("messages.0.role"), or empty.
ApiError bad_form(std::string_view path, std::string message);
ApiError model_not_found(std::string_view asked, std::string_view served);
ApiError unavailable(std::string message, int retry_after);
ApiError queue_full(std::string message);
ApiError internal_error(std::string message);
// Errors of HTTP itself: 404, 405, 413, 431 ...
ApiError http_error(int status, std::string message);
// What another room reports: kInvalid and kUnsupported are the client's fault, kExhausted is a full queue.
ApiError from_error(const Error& error, std::optional<std::string> param = {});

std::string error_json(const ApiError& error);
HttpResponse error_response(const ApiError& error);
// The envelope of a family of routes.
using ErrorForm = HttpResponse (*)(const ApiError& error);

// At most `limit` bytes of what a client sent, for a message.
std::string excerpt(std::string_view text, std::size_t limit = 64);

}  // namespace octet::server
