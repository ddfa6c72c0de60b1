#include "octet/text/template_form.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace octet::text {
namespace {

constexpr RenderLimits kProbeLimits{
    .max_steps = 500'000, .max_output_bytes = std::size_t{1} << 20, .max_memory_bytes = std::size_t{16} << 20};
// Probes that pass these limits; beyond them the template is taken as one that renders nothing. It is probed dozens of
// times, so that one made to take long would otherwise take that many times as long.
constexpr int kMaxExhausted = 4;
// Words that no template writes by itself.
constexpr const char* kFirst = "octetprobeone";
constexpr const char* kSecond = "octetprobetwo";
constexpr const char* kArgument = "octetprobeargument";
constexpr const char* kKey = "octetprobekey";
constexpr const char* kRole = "octetproberole";

// What became of a probe.
enum class Grade { kFails, kHidden, kShown };

bool holds(const std::string& text, std::string_view word) { return text.find(word) != std::string::npos; }

bool holds_any(const std::string& text, std::initializer_list<std::string_view> words) {
  return std::ranges::any_of(words, [&](std::string_view word) { return holds(text, word); });
}

char ascii_lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

Json message(const char* role, Json content) { return {{"role", role}, {"content", std::move(content)}}; }

Json parts(std::initializer_list<const char*> texts) {
  Json list = Json::array();
  for (const char* text : texts) list.push_back({{"type", "text"}, {"text", text}});
  return list;
}

// An assistant's message that calls a function. Some templates demand ids of nine letters and digits.
Json call_message(Json content, Json arguments) {
  Json out = {{"role", "assistant"}};
  if (!content.is_discarded()) out["content"] = std::move(content);
  Json function = {{"name", "probe"}, {"arguments", std::move(arguments)}};
  out["tool_calls"] = Json::array({{{"id", "probe0001"}, {"type", "function"}, {"function", std::move(function)}}});
  return out;
}

Json tool_message(Json content) {
  Json out = message("tool", std::move(content));
  out["tool_call_id"] = "probe0001";
  out["name"] = "probe";
  return out;
}

Json absent() { return Json(Json::value_t::discarded); }

class Prober {
 public:
  Prober(const ChatTemplate& chat_template, const Json& variables)
      : chat_template_(chat_template), variables_(variables) {}

  TemplateForm detect();

 private:
  Json user() const { return message("user", form_.user.text ? Json("Hi") : parts({"Hi"})); }
  Json call_chat() const { return Json::array({user(), call_, result_}); }
  std::optional<std::string> render(const Json& messages, bool with_tools);
  // The best grade with tools and without them.
  template <typename Judge>
  Grade grade(const Json& messages, const Judge& judge);
  Grade grade_word(const Json& messages, const char* word);

  Grade grade_arguments(const Json& arguments);
  void detect_calls();
  void detect_call_content();
  // The form of the content at messages[at].
  ContentForm content_form(const Json& messages, std::size_t at);
  bool knows_role(const std::string& role);

  const ChatTemplate& chat_template_;
  const Json& variables_;
  int exhausted_ = 0;
  TemplateForm form_;
  Json call_ = call_message("", Json::object());  // a call that the template renders
  Json result_ = tool_message("4");
};

std::optional<std::string> Prober::render(const Json& messages, bool with_tools) {
  if (exhausted_ >= kMaxExhausted) return std::nullopt;
  RenderInput input;
  input.messages = messages;
  input.variables = variables_;
  input.keep_nulls = std::ranges::any_of(messages, [](const Json& one) {
    const auto content = one.find("content");
    return content != one.end() && content->is_null();
  });
  if (with_tools) {
    const Json schema = {{"type", "object"},
                         {"properties", {{kKey, {{"type", "string"}, {"description", "A word."}}}}},
                         {"required", Json::array({kKey})}};
    const Json function = {{"name", "probe"}, {"description", "Looks."}, {"parameters", schema}};
    input.tools = Json::array({{{"type", "function"}, {"function", function}}});
  }
  auto rendered = chat_template_.render(input, kProbeLimits);
  if (rendered) return std::move(rendered->text);
  if (rendered.error().code == ErrorCode::kExhausted) ++exhausted_;
  return std::nullopt;
}

template <typename Judge>
Grade Prober::grade(const Json& messages, const Judge& judge) {
  Grade best = Grade::kFails;
  for (const bool with_tools : {false, true}) {
    const auto text = render(messages, with_tools);
    if (text) best = std::max(best, judge(*text) ? Grade::kShown : Grade::kHidden);
    if (best == Grade::kShown) break;
  }
  return best;
}

Grade Prober::grade_word(const Json& messages, const char* word) {
  return grade(messages, [&](const std::string& text) { return holds(text, word); });
}

// The best that any chat around such a call gives; that chat is kept for the probes that follow.
Grade Prober::grade_arguments(const Json& arguments) {
  const std::string garbled = arguments.is_string() ? fmt::format("\\\"{}", kKey) : fmt::format("'{}'", kKey);
  const auto judge = [&](const std::string& text) { return holds(text, kArgument) && !holds(text, garbled); };
  Grade best = Grade::kFails;
  for (const Json& content : {Json(""), absent(), Json(nullptr)}) {
    for (const Json& result : {tool_message("4"), tool_message(parts({"4"})), Json()}) {
      const Json call = call_message(content, arguments);
      Json messages = Json::array({user(), call});
      if (!result.is_null()) messages.push_back(result);
      best = std::max(best, grade(messages, judge));
      if (best != Grade::kShown) continue;
      call_ = call;
      if (!result.is_null()) result_ = result;
      return best;
    }
  }
  return best;
}

void Prober::detect_calls() {
  const Grade as_text = grade_arguments(Json(fmt::format("{{\"{}\": \"{}\"}}", kKey, kArgument)));
  const Json object = {{kKey, kArgument}};
  const Grade as_object = grade_arguments(object);
  using Arguments = TemplateForm::Arguments;
  form_.arguments = as_text == as_object  ? Arguments::kAsGiven
                    : as_text < as_object ? Arguments::kObjects
                                          : Arguments::kStrings;
  form_.shows_calls = std::max(as_text, as_object) == Grade::kShown;
}

// A call without text: which content makes it come out.
void Prober::detect_call_content() {
  const auto grade_of = [&](const Json& content) {
    Json chat = call_chat();
    chat[1].erase("content");
    if (!content.is_discarded()) chat[1]["content"] = content;
    return grade_word(chat, kArgument);
  };
  const Grade empty = grade_of(""), missing = grade_of(absent()), null = grade_of(nullptr);
  form_.call = content_form(call_chat(), 1);
  form_.call.absent = missing >= empty;
  form_.call_wants_null = null > std::max(empty, missing);
}

ContentForm Prober::content_form(const Json& messages, std::size_t at) {
  const auto grade_of = [&](const Json& content) {
    Json chat = messages;
    chat[at]["content"] = content;
    return grade(chat, [&](const std::string& text) {
      const bool shown = holds(text, kFirst) && (content.is_string() || holds(text, kSecond));
      // A list printed as such.
      const bool garbled = holds_any(text, {"'type': 'text'", "\"type\": \"text\"", "\"type\":\"text\""});
      return shown && !garbled;
    });
  };
  const Grade as_text = grade_of(kFirst), as_parts = grade_of(parts({kFirst, kSecond}));
  Json without = messages;
  without[at].erase("content");
  ContentForm form;
  form.text = as_text >= as_parts;
  form.parts = as_parts >= as_text;
  form.absent = grade(without, [](const std::string&) { return true; }) != Grade::kFails;
  return form;
}

// Does the role come out otherwise than a made-up one, which templates that print any role print too, in whatever case?
bool Prober::knows_role(const std::string& role) {
  const auto with = [&](const std::string& name) {
    auto text =
        render(Json::array({message(name.c_str(), form_.system.text ? Json(kFirst) : parts({kFirst})), user()}), false);
    if (text) std::ranges::transform(*text, text->begin(), ascii_lower);
    return text;
  };
  const auto text = with(role);
  if (!text || !holds(*text, kFirst)) return false;
  auto made_up = with(kRole);
  if (!made_up) return true;
  for (std::size_t at = 0; (at = made_up->find(kRole, at)) != std::string::npos;) {
    made_up->replace(at, std::string_view(kRole).size(), role);
  }
  return *made_up != *text;
}

TemplateForm Prober::detect() {
  form_.user = content_form(Json::array({message("user", "Hi")}), 0);
  form_.system = content_form(Json::array({message("system", "Be brief."), user()}), 0);
  form_.assistant = content_form(Json::array({user(), message("assistant", "Hello"), user()}), 1);
  detect_calls();
  const auto content = [](const ContentForm& form) { return form.text ? Json(kFirst) : parts({kFirst}); };
  if (form_.shows_calls) {
    form_.tool = content_form(call_chat(), 2);
    detect_call_content();
    Json chat = call_chat();
    chat[2]["content"] = content(form_.tool);
    form_.tool_role = grade_word(chat, kFirst) == Grade::kShown;
  } else {
    form_.tool = form_.user;
    form_.call = form_.assistant;
  }
  const Json system_chat = Json::array({message("system", content(form_.system)), user()});
  form_.system_role = grade_word(system_chat, kFirst) == Grade::kShown;
  form_.shows_tools = holds(render(Json::array({user()}), true).value_or(""), kKey);
  form_.developer_role = knows_role("developer");
  return form_;
}

std::string joined(const Json& content) {
  std::string text;
  for (std::size_t i = 0; i < content.size(); ++i) {
    if (i > 0) text += '\n';
    const Json& part = content[i];
    if (part.is_string()) text += part.get_ref<const std::string&>();
    if (!part.is_object()) continue;
    const auto found = part.find("text");
    if (found != part.end() && found->is_string()) text += found->get_ref<const std::string&>();
  }
  return text;
}

bool is_all_text(const Json& content) {
  return std::ranges::all_of(content, [](const Json& part) {
    if (part.is_string()) return true;
    return part.is_object() && part.contains("text") && part["text"].is_string();
  });
}

// JSON as Python's json.dumps writes it, which is what models saw.
void write_spaced(const Json& value, std::string& out) {
  if (value.is_object()) {
    out += '{';
    for (const auto& [key, item] : value.items()) {
      if (out.back() != '{') out += ", ";
      out += dump_json(key);
      out += ": ";
      write_spaced(item, out);
    }
    out += '}';
  } else if (value.is_array()) {
    out += '[';
    for (std::size_t i = 0; i < value.size(); ++i) {
      if (i > 0) out += ", ";
      write_spaced(value[i], out);
    }
    out += ']';
  } else {
    out += dump_json(value);
  }
}

Result<> adapt_arguments(TemplateForm::Arguments wanted, Json& arguments, const std::string& path) {
  if (wanted == TemplateForm::Arguments::kStrings && !arguments.is_string()) {
    std::string text;
    write_spaced(arguments, text);
    arguments = std::move(text);
  }
  if (wanted != TemplateForm::Arguments::kObjects || !arguments.is_string()) return {};
  const std::string& text = arguments.get_ref<const std::string&>();
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) {
    arguments = Json::object();
    return {};
  }
  auto parsed = parse_json(text, {.allow_duplicate_keys = true});
  if (!parsed || !parsed->is_object()) {
    return fail(ErrorCode::kInvalid, "{}: the chat template of this model needs a JSON object here: {}", path,
                parsed ? "this is JSON of another kind" : parsed.error().message);
  }
  arguments = *std::move(parsed);
  return {};
}

const ContentForm& form_of(const TemplateForm& form, std::string_view role, bool calls) {
  if (calls) return form.call;
  if (role == "system" || role == "developer") return form.system;
  if (role == "assistant") return form.assistant;
  return role == "tool" || role == "function" ? form.tool : form.user;
}

void adapt_content(const ContentForm& form, ContentFormat format, Json& message) {
  const bool to_text = format == ContentFormat::kString || (format == ContentFormat::kAuto && !form.parts);
  const bool to_parts = format == ContentFormat::kParts || (format == ContentFormat::kAuto && !form.text);
  const auto content = message.find("content");
  if (content == message.end() || content->is_null()) {
    if (!form.absent) message["content"] = "";
  } else if (content->is_array()) {
    if (to_text && is_all_text(*content)) *content = joined(*content);
  } else if (content->is_string() && to_parts) {
    *content = Json::array({{{"type", "text"}, {"text", *content}}});
  }
}

// A call without text comes out only with content null: an empty one becomes that.
void adapt_null(Json& message) {
  const auto content = message.find("content");
  const bool empty = content == message.end() || content->is_null() || (content->is_string() && *content == "");
  if (empty) message["content"] = nullptr;
}

}  // namespace

TemplateForm detect_form(const ChatTemplate& chat_template, const Json& variables) {
  return Prober(chat_template, variables).detect();
}

Result<> adapt_messages(const TemplateForm& form, ContentFormat format, RenderInput& input) {
  if (!input.messages.is_array()) return fail(ErrorCode::kInvalid, "messages must be a list");
  for (std::size_t i = 0; i < input.messages.size(); ++i) {
    Json& message = input.messages[i];
    if (!message.is_object()) return fail(ErrorCode::kInvalid, "messages.{}: a message must be an object", i);
    const auto role = message.find("role");
    const std::string name = role != message.end() && role->is_string() ? role->get<std::string>() : "";
    if (name == "developer" && !form.developer_role) *role = "system";
    const auto calls = message.find("tool_calls");
    const bool has_calls = calls != message.end() && calls->is_array() && !calls->empty();
    for (std::size_t c = 0; has_calls && c < calls->size(); ++c) {
      Json& call = (*calls)[c];
      if (!call.is_object() || !call.contains("function") || !call["function"].is_object()) continue;
      const auto arguments = call["function"].find("arguments");
      if (arguments == call["function"].end() || arguments->is_null()) continue;
      OCTET_TRY_VOID(adapt_arguments(form.arguments, *arguments,
                                     fmt::format("messages.{}.tool_calls.{}.function.arguments", i, c)));
    }
    adapt_content(form_of(form, name, has_calls), format, message);
    if (has_calls && form.call_wants_null) {
      adapt_null(message);
      input.keep_nulls = true;
    }
  }
  return {};
}

}  // namespace octet::text
