// In which form a chat template takes messages: found out from the template itself, by rendering small chats and
// looking at what comes out.
#pragma once
#include <cstdint>
#include <string_view>

#include "octet/base/error.h"
#include "octet/base/json.h"
#include "octet/text/chat_template.h"

namespace octet::text {

// Which contents of a message a template renders as it should.
struct ContentForm {
  bool text = true;    // a string
  bool parts = true;   // a list of {"type": "text", "text": ...}
  bool absent = true;  // no content at all
};

struct TemplateForm {
  enum class Arguments { kAsGiven, kObjects, kStrings };

  ContentForm system, user, assistant, tool;
  ContentForm call;                           // of an assistant's message with tool calls
  bool call_wants_null = false;               // without text such a message is rendered only where its content is null
  Arguments arguments = Arguments::kAsGiven;  // kAsGiven: either form is right, or neither shows
  bool shows_calls = false;                   // tool calls come out at all
  bool shows_tools = false;                   // what a tool's schema says comes out
  bool system_role = false;                   // what a message of this role says comes out
  bool tool_role = false;
  bool developer_role = false;  // as a role of its own: not merely as any word would
};

// Renders some dozens of chats under small limits; a template that fails on all of them gets the form that changes
// nothing. variables: as in RenderInput.
TemplateForm detect_form(const ChatTemplate& chat_template, const Json& variables);

enum class ContentFormat {
  kAuto,    // as the client gave it wherever the template takes that
  kString,  // always a string
  kParts,   // always a list of parts
};

// Brings input.messages, as clients of the OpenAI API send them, into the template's form: content between string and
// list of parts (joined by line ends), "" for a missing content, arguments of tool calls between JSON text and object,
// the role developer to system. Whatever the template takes stays as it is. Error: arguments that are no JSON object
// where the template needs one; the message names them by path ("messages.2.tool_calls.0.function.arguments").
Result<> adapt_messages(const TemplateForm& form, ContentFormat format, RenderInput& input);

}  // namespace octet::text
