"""Clients of a server on loopback, the same for Octet and llama-server: streamed completions of random token ids."""

import dataclasses
import http.client
import json
import math
import random
import threading
import time


@dataclasses.dataclass
class Answer:
    first: float = 0.0  # seconds from the request to its first token
    tokens: int = 0  # as the server counts them
    failure: str = ""


def octet_request(ids, tokens, cache):
    return "/v1/completions", {
        "model": "model", "prompt": ids, "max_tokens": tokens, "temperature": 0, "ignore_eos": True, "stream": True,
        "stream_options": {"include_usage": True}}


def llama_request(ids, tokens, cache):
    return "/completion", {
        "prompt": ids, "n_predict": tokens, "temperature": 0, "ignore_eos": True, "stream": True, "cache_prompt": cache}


REQUESTS = {"octet": octet_request, "llama": llama_request}


def read_events(lines):
    """The JSON objects of a stream of events."""
    for line in lines:
        if line.startswith(b"data: ") and line[6:].strip() != b"[DONE]":
            yield json.loads(line[6:])


def tokens_told(event):
    """The tokens of the whole answer, where the event tells them."""
    if event.get("usage"):
        return event["usage"]["completion_tokens"]
    return event.get("tokens_predicted", 0) if event.get("stop") else 0


def ask(api, port, ids, tokens, cache=False, timeout=600):
    path, body = REQUESTS[api](ids, tokens, cache)
    answer = Answer()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    start = time.perf_counter()
    try:
        connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        response = connection.getresponse()
        if response.status != 200:
            answer.failure = f"status {response.status}"
            return answer
        for event in read_events(response):
            answer.first = answer.first or time.perf_counter() - start
            answer.tokens = max(answer.tokens, tokens_told(event))
        if answer.tokens != tokens:
            answer.failure = f"{answer.tokens} tokens of {tokens}"
    except (OSError, http.client.HTTPException, ValueError) as error:
        answer.failure = str(error) or type(error).__name__
    finally:
        connection.close()
    return answer


def random_ids(draw, count, vocabulary):
    return [draw.randrange(min(300, vocabulary // 2), vocabulary - 10) for _ in range(count)]


def percentile(values, share):
    ordered = sorted(values)
    return ordered[max(1, math.ceil(share * len(ordered))) - 1]


def load(api, port, vocabulary, clients=16, requests=2, prompt=128, tokens=64, seed=1):
    """Clients that each send one request after another: output tokens per second, TTFT and failures."""
    answers = []

    def client(number):
        draw = random.Random(f"{seed} {number}")
        for _ in range(requests):
            answers.append(ask(api, port, random_ids(draw, prompt, vocabulary), tokens))

    start = time.perf_counter()
    threads = [threading.Thread(target=client, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - start
    whole = [answer for answer in answers if not answer.failure]
    failures = sorted({answer.failure for answer in answers if answer.failure})
    if len(whole) < len(answers):
        return {"failed": len(answers) - len(whole), "of": len(answers), "why": "; ".join(failures)}
    return {
        "value": sum(answer.tokens for answer in whole) / seconds,
        "ttft_p50": percentile([answer.first for answer in whole], 0.5),
        "ttft_p90": percentile([answer.first for answer in whole], 0.9)}


def cached_prefix(api, port, vocabulary, prefix=2000, suffix=16, seed=1):
    """TTFT of a prompt that is new, and of one that shares all but its end with it."""
    draw = random.Random(f"prefix {seed}")
    ask(api, port, random_ids(draw, 64, vocabulary), 4, cache=True)
    shared = random_ids(draw, prefix, vocabulary)
    cold, cached = (ask(api, port, shared + random_ids(draw, suffix, vocabulary), 1, cache=True) for _ in range(2))
    for answer in (cold, cached):
        if answer.failure:
            return {"failed": 1, "of": 2, "why": answer.failure}
    return {"value": cold.first / cached.first, "cold": cold.first, "cached": cached.first}
