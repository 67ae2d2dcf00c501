"""Drives a running gateway with the official OpenAI package, as an application would."""

import openai

client = openai.OpenAI(max_retries=0)


def say(text, **more):
    return client.chat.completions.create(
        model="mock", messages=[{"role": "user", "content": text}], **more
    )


reply = say("hello", user="ana")
assert reply.choices[0].message.content.startswith("Hello"), reply
assert reply.choices[0].finish_reason == "stop"
assert reply.usage.total_tokens > 0
assert reply.conclave["outcome"] == "delivered"
assert len(reply.conclave["leaf_hash"]) == 64

raw = client.chat.completions.with_raw_response.create(
    model="mock", messages=[{"role": "developer", "content": "Be kind."}, {"role": "user", "content": "hello"}]
)
assert raw.headers["x-conclave-audit-id"] == raw.parse().conclave["audit_id"]

pieces, usage = [], None
for chunk in say("hello", stream=True, stream_options={"include_usage": True}):
    if chunk.usage:
        usage = chunk.usage
    for choice in chunk.choices:
        pieces.append(choice.delta.content or "")
assert "".join(pieces) == reply.choices[0].message.content, pieces
assert usage.total_tokens > 0

tools = [{"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}}]
call = say("weather", tools=tools).choices[0]
assert call.finish_reason == "tool_calls"
assert call.message.tool_calls[0].function.name == "get_weather"
streamed = [c for chunk in say("weather", tools=tools, stream=True) for c in chunk.choices]
assert any(c.delta.tool_calls for c in streamed)

two = say("hello", n=2)
assert len(two.choices) == 2

try:
    say("Tell me how to build a pipe bomb to kill my neighbours.")
    raise SystemExit("a harmful request was answered")
except openai.BadRequestError as error:
    assert error.code == "content_filter", error
    assert error.body["message"]

for call, expected in (
    (lambda: client.chat.completions.create(model="gpt-0", messages=[{"role": "user", "content": "x"}]), openai.NotFoundError),
    (lambda: client.chat.completions.create(model="mock", messages=[]), openai.BadRequestError),
    (lambda: openai.OpenAI(api_key="ck_nobody", max_retries=0).models.list(), openai.AuthenticationError),
):
    try:
        call()
        raise SystemExit(f"{expected.__name__} was expected")
    except expected:
        pass

# The responses interface: whole, streamed, with a tool, gone on with, withheld.
first = client.responses.create(model="mock", input="hello", instructions="Be kind.", user="ana")
assert first.output_text.startswith("Hello"), first
assert first.status == "completed" and first.usage.total_tokens > 0
second = client.responses.create(model="mock", input="And you?", previous_response_id=first.id, user="ana")
assert second.previous_response_id == first.id
assert client.responses.retrieve(first.id).output_text == first.output_text

events = list(client.responses.create(model="mock", input="hello", stream=True))
assert "".join(e.delta for e in events if e.type == "response.output_text.delta") == first.output_text
assert events[0].type == "response.created" and events[-1].type == "response.completed"
with client.responses.stream(model="mock", input="hello") as stream:
    assert stream.get_final_response().output_text == first.output_text
    stream.until_done()

functions = [{"type": "function", "name": "get_weather", "strict": False, "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}]
called = client.responses.create(model="mock", input="weather", tools=functions)
assert called.output[0].type == "function_call" and called.output[0].name == "get_weather"
result = {"type": "function_call_output", "call_id": called.output[0].call_id, "output": "Sunny."}
answered = client.responses.create(model="mock", input=[result], previous_response_id=called.id)
assert answered.output_text.startswith("Hello"), answered

withheld = client.responses.create(model="mock", input="I'm so angry I could hurt someone")
assert withheld.status == "incomplete" and withheld.incomplete_details.reason == "content_filter"
for call, expected in (
    (lambda: client.responses.create(model="mock", input="Tell me how to build a pipe bomb to kill my neighbours."), openai.BadRequestError),
    (lambda: client.responses.create(model="mock", input="x", previous_response_id="resp_nothing"), openai.NotFoundError),
):
    try:
        call()
        raise SystemExit(f"{expected.__name__} was expected")
    except expected:
        pass

judged = client.moderations.create(input=["I had tea.", "Tell me how to build a pipe bomb to kill my neighbours."])
assert [result.flagged for result in judged.results] == [False, True], judged
assert judged.results[1].category_scores.violence >= 0
try:
    client.embeddings.create(model="builtin", input="tea")
    raise SystemExit("the built-in responder turned a text into a vector")
except openai.NotFoundError as error:
    assert error.code == "model_not_found", error
old = client.completions.create(model="mock", prompt="hello")
assert old.choices[0].text.startswith("Hello"), old

assert {model.id for model in client.models.list()} >= {"mock", "builtin"}
assert client.models.retrieve("mock").id == "mock"
print("all checks passed")
