// `octet render`: the text that a model sees of a chat.
#include <cstdio>
#include <ctime>

#include "apps/octet/commands.h"
#include "apps/octet/line_io.h"
#include "apps/octet/model_templates.h"
#include "apps/octet/template_flag.h"
#include "octet/base/flags.h"
#include "octet/base/json.h"
#include "octet/text/chat_templates.h"

namespace {

using octet::ErrorCode;
using octet::fail;
using octet::Json;
using octet::Result;
using octet::text::NamedTemplate;
using octet::text::RenderInput;

constexpr std::size_t kMaxRequest = std::size_t{256} << 20;
constexpr octet::JsonLimits kJsonLimits{.max_bytes = kMaxRequest, .max_depth = 120};

struct RenderFlags {
  std::optional<std::string> chat_template, model, now, name;
  bool jsonl = false, as_served = false;
};

octet::FlagTable flag_table(RenderFlags& f) {
  const octet::Flag flags[] = {
      {.names = "--chat-template",
       .group = "template",
       .target = &f.chat_template,
       .help = "Jinja template: a file, or the template itself",
       .fallback = "that of --model"},
      {.names = "--model",
       .group = "template",
       .target = &f.model,
       .help = "a model's folder or GGUF file: its template, its bos_token and the like"},
      {.names = "--template-name",
       .group = "template",
       .target = &f.name,
       .help = "which of the model's templates",
       .fallback = "tool_use where the request has tools and there is one, else default"},
      {.names = "--jsonl",
       .group = "input and output",
       .target = &f.jsonl,
       .help = "one request a line in, one {\"text\":...} or {\"error\":...} a line out"},
      {.names = "--as-served",
       .group = "input and output",
       .target = &f.as_served,
       .help = "bring the messages into the template's form first, as octet serve does"},
      {.names = "--now",
       .group = "input and output",
       .target = &f.now,
       .help = "what the template takes as the time: seconds since 1970, or as in \"2025-03-14 09:26:53\"",
       .fallback = "the clock"},
  };
  return {"octet render", "Renders a chat: the exact text that a model sees.", flags};
}

constexpr const char* kEpilog =
    R"text(A request is a JSON object on standard input. Its fields, all but the first optional:
  messages                 a list of {"role": ..., "content": ...}, as the template is to see them
  tools, documents         lists, or null
  add_generation_prompt    default true
  continue_final_message   the text ends right behind the final message; default false
  variables                other names the template sees: bos_token, enable_thinking ...
  chat_template_kwargs     the same, as clients of octet serve send them
Other fields are not looked at. Messages go to the template as they are, as with transformers' apply_chat_template;
--as-served shows what octet serve makes of them: a list of text parts becomes one string where the template takes no
list, the arguments of a tool call become an object where it wants one, and so on.

The text is printed without a line end of its own. An error names the template's line; the exit status is then 1.

examples
  echo '{"messages": [{"role": "user", "content": "Hi"}]}' | octet render --model model.gguf
  octet render --chat-template chat.jinja --now "2025-03-14 09:26:53" < request.json
  octet render --model DIR --jsonl < requests.jsonl > prompts.jsonl
)text";

Result<ModelTemplates> load(const RenderFlags& f) {
  octet::formats::TextFiles files;
  if (f.model) {
    auto read = read_model_texts(*f.model);
    if (!read) return within("--model", std::move(read).error());
    files = *std::move(read);
  }
  if (f.chat_template) {
    OCTET_TRY(std::string text, chat_template_source(*f.chat_template));
    files.chat_templates = {{"default", std::move(text)}};
  } else if (files.chat_templates.empty()) {
    return fail(ErrorCode::kNotFound, "--model {}: it has no chat template; --chat-template names one",
                f.model.value_or(""));
  }
  return parse_templates(std::move(files));
}

Result<bool> flag_of(const Json& request, const char* name, bool otherwise) {
  const auto found = request.find(name);
  if (found == request.end() || found->is_null()) return otherwise;
  if (!found->is_boolean()) return fail(ErrorCode::kInvalid, "{}: expected true or false", name);
  return found->get<bool>();
}

// null where the request has none.
Result<Json> field_of(Json& request, const char* name, Json::value_t type) {
  const auto found = request.find(name);
  if (found == request.end() || found->is_null()) return Json();
  if (found->type() != type) {
    return fail(ErrorCode::kInvalid, "{}: expected {}", name, type == Json::value_t::array ? "a list" : "an object");
  }
  return std::move(*found);
}

Result<RenderInput> read_request(std::string_view text, const Json& variables) {
  OCTET_TRY(Json request, octet::parse_json(text, kJsonLimits));
  if (!request.is_object()) return fail(ErrorCode::kInvalid, "the request must be a JSON object");
  RenderInput input;
  OCTET_TRY(input.messages, field_of(request, "messages", Json::value_t::array));
  if (input.messages.is_null()) return fail(ErrorCode::kInvalid, "messages: expected a list, found none");
  OCTET_TRY(input.tools, field_of(request, "tools", Json::value_t::array));
  OCTET_TRY(input.documents, field_of(request, "documents", Json::value_t::array));
  OCTET_TRY(input.continue_final_message, flag_of(request, "continue_final_message", false));
  OCTET_TRY(input.add_generation_prompt, flag_of(request, "add_generation_prompt", !input.continue_final_message));
  OCTET_TRY(const Json own, field_of(request, "variables", Json::value_t::object));
  OCTET_TRY(const Json client, field_of(request, "chat_template_kwargs", Json::value_t::object));
  input.variables = variables;
  if (!own.is_null()) input.variables.update(own);
  if (!client.is_null()) input.client_variables = client;
  return input;
}

class Renderer {
 public:
  Renderer(const RenderFlags& flags, const ModelTemplates& source, std::optional<std::int64_t> now)
      : flags_(flags), source_(source), now_(now) {}

  Result<std::string> render(std::string_view request) const {
    OCTET_TRY(RenderInput input, read_request(request, source_.variables));
    input.now = now_ ? *now_ : octet::text::local_time(std::time(nullptr));
    OCTET_TRY(const NamedTemplate* const chosen, choose(input.tools.is_array() && !input.tools.empty()));
    auto rendered = flags_.as_served ? chosen->render_adapted(std::move(input), octet::text::ContentFormat::kAuto)
                                     : chosen->code.render(input);
    if (!rendered) return std::unexpected(std::move(rendered).error());
    return std::move(rendered->text);
  }

 private:
  Result<const NamedTemplate*> choose(bool has_tools) const {
    if (!flags_.name) return source_.templates.choose(has_tools);
    if (const NamedTemplate* const found = source_.templates.find(*flags_.name)) return found;
    std::string names;
    for (const NamedTemplate& one : source_.templates.all()) names += (names.empty() ? "" : ", ") + one.name;
    return fail(ErrorCode::kNotFound, "--template-name {}: there is {}", *flags_.name, names);
  }

  const RenderFlags& flags_;
  const ModelTemplates& source_;
  std::optional<std::int64_t> now_;
};

std::string error_line(const octet::Error& error) { return json_line({{"error", error.message}}); }

int fail_with(const octet::Error& error) {
  fmt::print(stderr, "octet render: {}\n", error.message);
  return 1;
}

int run(const RenderFlags& flags, std::optional<std::int64_t> now) {
  const auto source = load(flags);
  if (!source) {
    // Whoever sends lines waits for as many.
    if (flags.jsonl) {
      const auto told = answer_lines(kMaxRequest, [&](std::string_view) { return error_line(source.error()); });
      if (!told) fail_with(told.error());
    }
    return fail_with(source.error());
  }
  const Renderer renderer(flags, *source, now);
  if (flags.jsonl) {
    const auto done = answer_lines(kMaxRequest, [&](std::string_view line) {
      const auto text = renderer.render(line);
      return text ? json_line({{"text", *text}}) : error_line(text.error());
    });
    return done ? 0 : fail_with(done.error());
  }
  const auto request = read_input(kMaxRequest);
  if (!request) return fail_with(request.error());
  const auto text = renderer.render(*request);
  if (!text) return fail_with(text.error());
  const auto printed = print_output(*text);
  return printed ? 0 : fail_with(printed.error());
}

}  // namespace

int render_command(int argc, char** argv) {
  RenderFlags flags;
  octet::FlagTable table = flag_table(flags);
  table.set_epilog(kEpilog);
  if (const auto status = octet::parse_command(table, argc, argv)) return *status;
  if (!flags.chat_template && !flags.model) {
    fmt::print(stderr, "octet render: --chat-template or --model is missing; octet render --help tells more\n");
    return 2;
  }
  std::optional<std::int64_t> now;
  if (flags.now) {
    const auto parsed = parse_time(*flags.now);
    if (!parsed) {
      fmt::print(stderr, "octet render: {}\n", parsed.error().message);
      return 2;
    }
    now = *parsed;
  }
  return run(flags, now);
}
