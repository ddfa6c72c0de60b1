#include "tests/support/chat_model.h"

#include <fstream>

#include "tests/support/byte_tokenizer.h"
#include "tests/support/tiny_model.h"

namespace octet::testing {

void write_chat_model(const std::filesystem::path& folder) {
  TinyModelSpec spec;
  spec.eos_token = kByteEos;
  spec.max_positions = 131072;  // a reply without end lasts long enough to be stopped
  make_tiny_model(spec).write(folder);
  std::ofstream(folder / "tokenizer.json") << byte_tokenizer_json();
  std::ofstream(folder / "chat_template.jinja")
      << "{% for m in messages %}{{ m.role }}: {{ m.content }}<|end|>{% endfor %}"
         "{% if add_generation_prompt %}assistant: {% endif %}";
}

}  // namespace octet::testing
