#!/usr/bin/env python3
"""The anthropic client against `octet serve` with the default model.
   tests/e2e/anthropic_client_test.py PROGRAM [unittest's options]"""
import sys
import unittest

import anthropic

from served_model import SCALE, Server, pull

PROGRAM = "build/octet"
FRANCE = [{"role": "user", "content": "What is the capital of France?"}]
KEY = "e2e-key"
GREEDY = {"temperature": 0}  # the client no longer names it


class AnthropicClient(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(PROGRAM, pull(PROGRAM), "--api-key", KEY)
        cls.client = anthropic.Anthropic(base_url=cls.server.url, api_key=KEY, max_retries=0, timeout=120 * SCALE)

    @classmethod
    def tearDownClass(cls):
        cls.client.close()
        status = cls.server.stop()
        if status != 0:
            raise AssertionError(f"the server ended with status {status}")

    def tearDown(self):
        self.assertTrue(self.server.at_rest())

    def ask(self, **more):
        return self.client.messages.create(
            **{"model": "smollm2", "messages": FRANCE, "max_tokens": 40, "extra_body": GREEDY, **more})

    def test_message_knows_paris(self):
        answer = self.ask()
        self.assertIn("Paris", answer.content[0].text)
        self.assertEqual((answer.type, answer.role, answer.model), ("message", "assistant", "smollm2"))
        self.assertEqual(answer.stop_reason, "end_turn")
        self.assertIsNone(answer.stop_sequence)

    def test_stream_equals_whole(self):
        whole = self.ask()
        with self.client.messages.stream(model="smollm2", messages=FRANCE, max_tokens=40, extra_body=GREEDY) as stream:
            text = "".join(stream.text_stream)
            final = stream.get_final_message()
        self.assertEqual(text, whole.content[0].text)
        self.assertEqual(final.content[0].text, text)
        self.assertEqual(final.stop_reason, whole.stop_reason)
        self.assertEqual(final.usage.output_tokens, whole.usage.output_tokens)

    def test_prompts_have_the_tokens_of_the_reference(self):
        # As recorded from another server with the same model and template.
        hi = [{"role": "user", "content": "Say hi"}]
        answer = self.ask(messages=hi, max_tokens=4)
        self.assertEqual(answer.usage.input_tokens + answer.usage.cache_read_input_tokens, 32)
        self.assertEqual(answer.usage.output_tokens, 4)
        self.assertEqual(answer.stop_reason, "max_tokens")
        count = self.client.messages.count_tokens
        self.assertEqual(count(model="smollm2", messages=hi).input_tokens, 32)
        self.assertEqual(count(model="smollm2", messages=hi, system=[{"type": "text", "text": "be brief"}]).input_tokens,
                         18)

    def test_stop_sequence(self):
        stopped = self.ask(stop_sequences=["Paris"])
        self.assertEqual((stopped.stop_reason, stopped.stop_sequence), ("stop_sequence", "Paris"))
        self.assertNotIn("Paris", stopped.content[0].text)

    def test_begun_answer_is_continued(self):
        answer = self.ask(messages=FRANCE + [{"role": "assistant", "content": "The capital of France is"}],
                          max_tokens=2)
        self.assertEqual(answer.content[0].text.strip().rstrip("."), "Paris")

    def test_cancel(self):
        before = self.server.metrics()["vllm:generation_tokens_total"]
        story = [{"role": "user", "content": "Write a very long story about a river."}]
        with self.client.messages.stream(model="smollm2", messages=story, max_tokens=1900) as stream:
            for _ in range(5):
                next(stream)
        self.assertTrue(self.server.at_rest())
        self.assertLess(self.server.metrics()["vllm:generation_tokens_total"] - before, 1900)

    def test_errors(self):
        with self.assertRaises(anthropic.NotFoundError) as caught:
            self.ask(model="nope")
        self.assertEqual(caught.exception.body["error"]["type"], "not_found_error")
        with self.assertRaises(anthropic.BadRequestError) as caught:
            self.ask(tools=[{"name": "f", "input_schema": {"type": "object"}}])
        self.assertEqual(caught.exception.body["error"]["type"], "invalid_request_error")
        self.assertIn("tools", str(caught.exception))
        with self.assertRaises(anthropic.BadRequestError) as caught:
            self.ask(messages=[{"role": "user", "content": "word " * 5000}])
        self.assertIn("context", str(caught.exception))
        with self.assertRaises(anthropic.AuthenticationError) as caught:
            self.client.with_options(api_key="wrong").messages.create(model="smollm2", messages=FRANCE, max_tokens=1)
        self.assertEqual(caught.exception.body["error"]["type"], "authentication_error")
        with self.assertRaises(anthropic.NotFoundError) as caught:
            self.client.messages.batches.list()
        self.assertEqual(caught.exception.body["error"]["type"], "not_found_error")


if __name__ == "__main__":
    if len(sys.argv) > 1 and not sys.argv[1].startswith("-"):
        PROGRAM = sys.argv.pop(1)
    unittest.main()
