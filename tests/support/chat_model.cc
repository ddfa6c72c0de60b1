#include "tests/support/chat_model.h"

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <vector>

#include "tests/support/byte_tokenizer.h"
#include "tests/support/tiny_model.h"

namespace octet::testing {

void write_chat_model(const std::filesystem::path& folder) {
  TinyModelSpec spec;
  spec.eos_token = kByteEos;
  spec.max_positions = 131072;  // a reply without end lasts long enough to be stopped
  TinyModel model = make_tiny_model(spec);
  // The likeliest token is never the end.
  std::vector<float>& head = model.tensors.at("lm_head.weight").values;
  std::fill_n(head.begin() + std::ptrdiff_t{spec.eos_token} * spec.hidden, spec.hidden, 0.0F);
  model.write(folder);
  std::ofstream(folder / "tokenizer.json") << byte_tokenizer_json();
  std::ofstream(folder / "chat_template.jinja")
      << "{% for m in messages %}{{ m.role }}: {{ m.content }}<|end|>{% endfor %}"
         "{% if add_generation_prompt %}assistant: {% endif %}";
}

}  // namespace octet::testing
