#!/usr/bin/env python3
"""The openai client against `octet serve` with the default model.
   tests/e2e/openai_client_test.py PROGRAM [unittest's options]"""
import json
import subprocess
import sys
import threading
import unittest

import openai

from served_model import SCALE, Server, pull

PROGRAM = "build/octet"
FRANCE = [{"role": "user", "content": "What is the capital of France?"}]


class OpenAiClient(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(PROGRAM, pull(PROGRAM))
        cls.client = openai.OpenAI(base_url=cls.server.url + "/v1", api_key="none", max_retries=0,
                                   timeout=120 * SCALE)

    @classmethod
    def tearDownClass(cls):
        status = cls.server.stop()
        if status != 0:
            raise AssertionError(f"the server ended with status {status}")

    def tearDown(self):
        self.assertTrue(self.server.at_rest())

    def chat(self, **more):
        return self.client.chat.completions.create(
            **{"model": "smollm2", "messages": FRANCE, "temperature": 0, "max_completion_tokens": 40, **more})

    def test_models(self):
        self.assertEqual([model.id for model in self.client.models.list()], ["smollm2", "default"])
        self.assertEqual(self.client.models.retrieve("default").id, "default")

    def test_chat_knows_paris(self):
        answer = self.chat()
        self.assertIn("Paris", answer.choices[0].message.content)
        self.assertEqual(answer.choices[0].message.role, "assistant")
        self.assertEqual(answer.choices[0].finish_reason, "stop")
        self.assertEqual(answer.usage.total_tokens, answer.usage.prompt_tokens + answer.usage.completion_tokens)

    def test_printed_curl_knows_paris(self):
        done = subprocess.run(self.server.curl.strip() + " -s", shell=True, stdout=subprocess.PIPE, text=True, check=True)
        self.assertIn("Paris", json.loads(done.stdout)["choices"][0]["message"]["content"])

    def test_stream_equals_whole(self):
        whole = self.chat()
        parts, finish, usage, roles = [], None, None, []
        for chunk in self.chat(stream=True, stream_options={"include_usage": True}):
            if not chunk.choices:
                usage = chunk.usage
                continue
            delta = chunk.choices[0].delta
            roles += [delta.role] if delta.role else []
            parts.append(delta.content or "")
            finish = chunk.choices[0].finish_reason or finish
        self.assertEqual("".join(parts), whole.choices[0].message.content)
        self.assertEqual(finish, whole.choices[0].finish_reason)
        self.assertEqual(roles, ["assistant"])
        self.assertEqual((usage.prompt_tokens, usage.completion_tokens),
                         (whole.usage.prompt_tokens, whole.usage.completion_tokens))

    def test_prompts_have_the_tokens_of_the_reference(self):
        # As recorded from another server with the same model and template.
        for messages, tokens in [
                ([{"role": "user", "content": "Say hi"}], 32),
                ([{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}], 33),
                ([{"role": "developer", "content": "be brief"}, {"role": "user", "content": "Say hi"}], 18),
                ([{"role": "user", "content": "Say hi"}, {"role": "assistant", "content": "Hel"}], 39),
                ([{"role": "user", "content": "Say hi"},
                  {"role": "assistant", "content": None, "tool_calls": [
                      {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
                  {"role": "tool", "tool_call_id": "a", "content": "1"}], 44)]:
            with self.subTest(messages=messages):
                answer = self.chat(messages=messages, max_completion_tokens=1)
                self.assertEqual(answer.usage.prompt_tokens, tokens)

    def test_second_time_from_the_cache(self):
        messages = [{"role": "user", "content": "Count: " + " ".join(str(n) for n in range(100))}]
        first = self.chat(messages=messages, max_completion_tokens=8)
        second = self.chat(messages=messages, max_completion_tokens=8)
        self.assertEqual(first.choices[0].message.content, second.choices[0].message.content)
        self.assertGreater(second.usage.prompt_tokens_details.cached_tokens, 0)

    def test_completions(self):
        answer = self.client.completions.create(model="smollm2", prompt=["The sky is", "One two three"], max_tokens=4,
                                                temperature=0)
        self.assertEqual([choice.index for choice in answer.choices], [0, 1])
        self.assertEqual(answer.usage.completion_tokens, 8)
        echoed = self.client.completions.create(model="smollm2", prompt="The sky is", max_tokens=4, temperature=0,
                                                echo=True)
        self.assertEqual(echoed.choices[0].text, "The sky is" + answer.choices[0].text)
        streamed = self.client.completions.create(model="smollm2", prompt="The sky is", max_tokens=4, temperature=0,
                                                  stream=True)
        self.assertEqual("".join(chunk.choices[0].text for chunk in streamed), answer.choices[0].text)

    def test_stop_and_seed(self):
        stopped = self.chat(stop=["Paris"])
        self.assertEqual(stopped.choices[0].finish_reason, "stop")
        self.assertNotIn("Paris", stopped.choices[0].message.content)
        drawn = [self.chat(temperature=1.5, seed=seed).choices[0].message.content for seed in (1, 1, 2)]
        self.assertEqual(drawn[0], drawn[1])
        self.assertNotEqual(drawn[0], drawn[2])
        several = self.chat(temperature=1.5, seed=1, n=3, max_completion_tokens=5)
        self.assertEqual([choice.index for choice in several.choices], [0, 1, 2])

    def test_many_at_once_say_what_they_say_alone(self):
        questions = [f"Name the number {n} in words." for n in range(8)]

        def ask(question, into):
            messages = [{"role": "user", "content": question}]
            into[question] = self.chat(messages=messages, max_completion_tokens=12).choices[0].message.content

        alone, together = {}, {}
        for question in questions:
            ask(question, alone)
        threads = [threading.Thread(target=ask, args=(question, together)) for question in questions]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(together, alone)

    def test_cancel(self):
        before = self.server.metrics()["vllm:generation_tokens_total"]
        stream = self.chat(stream=True, max_completion_tokens=1900, extra_body={"ignore_eos": True})
        for _ in range(3):
            next(stream)
        stream.close()
        self.assertTrue(self.server.at_rest())
        self.assertLess(self.server.metrics()["vllm:generation_tokens_total"] - before, 1900)

    def respond(self, **more):
        return self.client.responses.create(
            **{"model": "smollm2", "input": FRANCE[0]["content"], "temperature": 0, "max_output_tokens": 40, **more})

    def test_responses(self):
        answer = self.respond()
        self.assertIn("Paris", answer.output_text)
        self.assertEqual(answer.status, "completed")
        chat = self.chat()
        self.assertEqual(answer.output_text, chat.choices[0].message.content)
        self.assertEqual(answer.usage.input_tokens, chat.usage.prompt_tokens)
        self.assertEqual(answer.usage.output_tokens, chat.usage.completion_tokens)
        cut = self.respond(max_output_tokens=4, instructions="You are brief.",
                           input=[{"role": "user", "content": [{"type": "input_text", "text": "Say hi"}]}])
        self.assertEqual((cut.status, cut.incomplete_details.reason), ("incomplete", "max_output_tokens"))
        self.assertEqual(cut.usage.output_tokens, 4)
        with self.assertRaises(openai.BadRequestError) as caught:
            self.respond(previous_response_id=answer.id)
        self.assertEqual(caught.exception.param, "previous_response_id")
        with self.assertRaises(openai.NotFoundError):
            self.client.responses.retrieve(answer.id)

    def test_streamed_responses(self):
        whole = self.respond()
        with self.client.responses.stream(model="smollm2", input=FRANCE[0]["content"], temperature=0,
                                          max_output_tokens=40) as stream:
            parts = [event.delta for event in stream if event.type == "response.output_text.delta"]
            final = stream.get_final_response()
        self.assertEqual("".join(parts), whole.output_text)
        self.assertEqual(final.output_text, whole.output_text)
        self.assertEqual(final.usage.output_tokens, whole.usage.output_tokens)
        numbers = [event.sequence_number for event in self.respond(stream=True)]
        self.assertEqual(numbers, list(range(len(numbers))))

    def test_errors(self):
        with self.assertRaises(openai.NotFoundError) as caught:
            self.chat(model="nope")
        self.assertEqual((caught.exception.type, caught.exception.param), ("NotFoundError", "model"))
        with self.assertRaises(openai.BadRequestError) as caught:
            self.chat(temperature=3)
        self.assertEqual((caught.exception.type, caught.exception.param), ("BadRequestError", "temperature"))
        with self.assertRaises(openai.BadRequestError) as caught:
            self.chat(messages=[{"role": "user", "content": "word " * 5000}])
        self.assertEqual(caught.exception.param, "input_tokens")
        with self.assertRaises(openai.BadRequestError) as caught:
            self.chat(response_format={"type": "json_object"})
        self.assertEqual(caught.exception.param, "response_format")
        with self.assertRaises(openai.NotFoundError):
            self.client.embeddings.create(model="smollm2", input="a")


if __name__ == "__main__":
    if len(sys.argv) > 1 and not sys.argv[1].startswith("-"):
        PROGRAM = sys.argv.pop(1)
    unittest.main()
