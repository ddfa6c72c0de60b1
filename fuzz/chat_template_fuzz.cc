// A chat template from a model's folder, and the messages of a client: rendering ends with text in valid UTF-8 whose
// spans cover it, or with one error, within its limits. Input: the template, a NUL byte, the content of a message.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "octet/base/check.h"
#include "octet/base/utf8.h"
#include "octet/text/chat_template.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace octet::text;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t cut = input.find('\0');
  auto parsed = ChatTemplate::parse(std::string(input.substr(0, cut)));
  if (!parsed) {
    OCTET_CHECK(!parsed.error().message.empty());
    return 0;
  }
  RenderInput render;
  const std::string content =
      octet::repair_utf8(cut == std::string_view::npos ? "hi <|im_end|>" : input.substr(cut + 1));
  render.messages =
      octet::Json::array({{{"role", "system"}, {"content", "Be brief."}}, {{"role", "user"}, {"content", content}}});
  render.variables = {{"bos_token", "<s>"},
                      {"xs", {3, 1, 2}},
                      {"d", {{"b", 1}, {"a", {1, 2.5, nullptr, true}}}},
                      {"n", 7},
                      {"s", "  Hello, World! "},
                      {"words", {"pear", "Apple", "fig"}},
                      {"eos_token", "</s>"},
                      {"f", 2.0}};
  // Small limits, so that short inputs reach them.
  const RenderLimits limits{
      .max_steps = 20'000, .max_output_bytes = 1 << 16, .max_memory_bytes = 1 << 20, .max_depth = 200};
  const auto rendered = parsed->render(render, limits);
  if (!rendered) {
    OCTET_CHECK(!rendered.error().message.empty());
    return 0;
  }
  OCTET_CHECK(rendered->text.size() <= limits.max_output_bytes);
  OCTET_CHECK(octet::is_valid_utf8(rendered->text));
  std::size_t covered = 0;
  for (const TextSpan& span : rendered->spans) {
    OCTET_CHECK(span.begin == covered && span.end > span.begin);
    covered = span.end;
  }
  OCTET_CHECK(covered == rendered->text.size());
  return 0;
}
