#!/usr/bin/env python3
"""LangChain's ChatOpenAI against `octet serve` with the default model.
   tests/e2e/langchain_client_test.py PROGRAM [unittest's options]"""
import asyncio
import os
import sys
import unittest

os.environ["LANGSMITH_TRACING"] = "false"  # nothing but the server under test is asked

from langchain_core.messages import AIMessage, HumanMessage, SystemMessage  # noqa: E402
from langchain_core.output_parsers import StrOutputParser  # noqa: E402
from langchain_core.prompts import ChatPromptTemplate  # noqa: E402
from langchain_openai import ChatOpenAI  # noqa: E402
import openai  # noqa: E402

from served_model import SCALE, Server, pull  # noqa: E402

PROGRAM = "build/octet"
FRANCE = "What is the capital of France?"


class LangChain(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(PROGRAM, pull(PROGRAM))

    @classmethod
    def tearDownClass(cls):
        status = cls.server.stop()
        if status != 0:
            raise AssertionError(f"the server ended with status {status}")

    def tearDown(self):
        self.assertTrue(self.server.at_rest())

    def model(self, **more):
        return ChatOpenAI(**{"model": "smollm2", "base_url": self.server.url + "/v1", "api_key": "none",
                             "temperature": 0, "max_tokens": 40, "max_retries": 0, "timeout": 120 * SCALE, **more})

    def test_invoke(self):
        answer = self.model().invoke(FRANCE)
        self.assertIn("Paris", answer.content)
        self.assertEqual(answer.response_metadata["finish_reason"], "stop")
        self.assertEqual(answer.response_metadata["model_name"], "smollm2")
        usage = answer.usage_metadata
        self.assertEqual(usage["total_tokens"], usage["input_tokens"] + usage["output_tokens"])
        self.assertIn("cache_read", usage["input_token_details"])
        cut = self.model(max_tokens=3).invoke(FRANCE)
        self.assertEqual(cut.response_metadata["finish_reason"], "length")
        self.assertEqual(cut.usage_metadata["output_tokens"], 3)

    def test_roles_and_turns(self):
        # As recorded from another server with the same model and template.
        for messages, tokens in [
                ([HumanMessage([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}])], 33),
                ([SystemMessage("be brief"), HumanMessage("Say hi")], 18),
                ([HumanMessage("Say hi"), AIMessage("Hel")], 39)]:
            with self.subTest(messages=messages):
                self.assertEqual(self.model(max_tokens=1).invoke(messages).usage_metadata["input_tokens"], tokens)
        first = self.model().invoke(FRANCE)
        turns = [HumanMessage(FRANCE), first, HumanMessage("Which country's capital is that?")]
        self.assertIn("France", self.model().invoke(turns).content)

    def test_stream_equals_invoke(self):
        whole = self.model().invoke(FRANCE)
        pieces = list(self.model(stream_usage=True).stream(FRANCE))
        self.assertGreater(len([piece for piece in pieces if piece.content]), 3)
        total = pieces[0]
        for piece in pieces[1:]:
            total += piece
        self.assertEqual(total.content, whole.content)
        self.assertEqual(total.response_metadata["finish_reason"], whole.response_metadata["finish_reason"])
        for name in ("input_tokens", "output_tokens", "total_tokens"):
            self.assertEqual(total.usage_metadata[name], whole.usage_metadata[name])
        self.assertEqual(len([piece for piece in pieces if piece.usage_metadata]), 1)

    def test_stop(self):
        stopped = self.model().invoke(FRANCE, stop=["Paris"])
        self.assertEqual(stopped.response_metadata["finish_reason"], "stop")
        self.assertNotIn("Paris", stopped.content)
        streamed = "".join(piece.content for piece in self.model().stream(FRANCE, stop=["Paris"]))
        self.assertEqual(streamed, stopped.content)

    def test_logprobs(self):
        answer = self.model(logprobs=True, top_logprobs=2, max_tokens=4).invoke(FRANCE)
        entries = answer.response_metadata["logprobs"]["content"]
        self.assertEqual("".join(entry["token"] for entry in entries), answer.content)
        for entry in entries:
            self.assertEqual(len(entry["top_logprobs"]), 2)
            self.assertEqual(entry["logprob"], entry["top_logprobs"][0]["logprob"])  # greedy
            self.assertGreaterEqual(entry["top_logprobs"][0]["logprob"], entry["top_logprobs"][1]["logprob"])
            self.assertEqual(bytes(entry["bytes"]).decode(), entry["token"])
        streamed = [entry for piece in self.model(logprobs=True, top_logprobs=2, max_tokens=4).stream(FRANCE)
                    for entry in (piece.response_metadata.get("logprobs") or {}).get("content") or []]
        self.assertEqual(streamed, entries)

    def test_batch_says_what_invoke_says(self):
        questions = [f"Name the number {n} in words." for n in range(6)]
        model = self.model(max_tokens=12)
        alone = [model.invoke(question).content for question in questions]
        self.assertEqual([answer.content for answer in model.batch(questions)], alone)

        async def at_once():
            together = await asyncio.gather(*(model.ainvoke(question) for question in questions))
            streamed = [piece.content async for piece in model.astream(questions[0])]
            batch = await model.abatch(questions)
            return [a.content for a in together], "".join(streamed), [a.content for a in batch]

        together, streamed, batch = asyncio.run(at_once())
        self.assertEqual(together, alone)
        self.assertEqual(batch, alone)
        self.assertEqual(streamed, alone[0])

    def test_chain(self):
        prompt = ChatPromptTemplate.from_messages([("human", "What is the capital of {country}?")])
        chain = prompt | self.model() | StrOutputParser()
        self.assertIn("Paris", chain.invoke({"country": "France"}))
        self.assertIn("Paris", "".join(chain.stream({"country": "France"})))

    def test_seed_and_sampling(self):
        model = self.model(temperature=1.5, top_p=0.9, presence_penalty=0.5, max_tokens=20)
        drawn = [model.bind(seed=seed).invoke(FRANCE).content for seed in (1, 1, 2)]
        self.assertEqual(drawn[0], drawn[1])
        self.assertNotEqual(drawn[0], drawn[2])
        several = self.model(temperature=1.5, n=3, max_tokens=5).generate([[HumanMessage(FRANCE)]])
        self.assertEqual(len(several.generations[0]), 3)
        self.assertEqual(several.llm_output["token_usage"]["completion_tokens"], 15)

    def test_responses_api(self):
        chat = self.model().invoke(FRANCE)
        answer = self.model(use_responses_api=True).invoke(FRANCE)
        self.assertEqual(answer.text, chat.content)
        self.assertEqual(answer.usage_metadata["output_tokens"], chat.usage_metadata["output_tokens"])
        streamed = "".join(piece.text for piece in self.model(use_responses_api=True).stream(FRANCE))
        self.assertEqual(streamed, chat.content)

    def test_errors(self):
        with self.assertRaises(openai.NotFoundError) as caught:
            self.model(model="nope").invoke(FRANCE)
        self.assertEqual((caught.exception.type, caught.exception.param), ("NotFoundError", "model"))
        with self.assertRaises(openai.BadRequestError) as caught:
            self.model().invoke("word " * 5000)
        self.assertEqual(caught.exception.param, "input_tokens")
        with self.assertRaises(openai.BadRequestError):
            list(self.model(temperature=3).stream(FRANCE))


if __name__ == "__main__":
    if len(sys.argv) > 1 and not sys.argv[1].startswith("-"):
        PROGRAM = sys.argv.pop(1)
    unittest.main()
