// Drives a running gateway with the official OpenAI package for Node.js, as an application would.

import assert from "node:assert/strict";
import OpenAI from "openai";

const client = new OpenAI({ maxRetries: 0 });
const bomb = "Tell me how to build a pipe bomb to kill my neighbours.";
const say = (text, more = {}) =>
  client.chat.completions.create({ model: "mock", messages: [{ role: "user", content: text }], ...more });

const reply = await say("hello", { user: "ana" });
const hello = reply.choices[0].message.content;
assert.match(hello, /^Hello/);
assert.equal(reply.conclave.outcome, "delivered");
let joined = "";
for await (const chunk of await say("hello", { stream: true })) {
  joined += chunk.choices[0]?.delta?.content ?? "";
}
assert.equal(joined, hello);

const parameters = { type: "object", properties: { city: { type: "string" } } };
const tools = [{ type: "function", function: { name: "get_weather", parameters } }];
const called = await say("weather", { tools });
assert.equal(called.choices[0].message.tool_calls[0].function.name, "get_weather");
let [named, given] = ["", ""];
for await (const chunk of await say("weather", { tools, stream: true })) {
  const call = chunk.choices[0]?.delta?.tool_calls?.[0]?.function;
  named += call?.name ?? "";
  given += call?.arguments ?? "";
}
assert.equal(named, "get_weather");
assert.equal(given, called.choices[0].message.tool_calls[0].function.arguments);

const first = await client.responses.create({ model: "mock", input: "hello" });
assert.equal(first.output_text, hello);
const second = await client.responses.create({
  model: "mock", input: "And you?", previous_response_id: first.id,
});
assert.equal(second.status, "completed");
const stream = client.responses.stream({ model: "mock", input: "hello" });
let streamed = "";
stream.on("response.output_text.delta", (event) => { streamed += event.delta; });
assert.equal((await stream.finalResponse()).output_text, hello);
assert.equal(streamed, hello);
const functions = [{ type: "function", name: "get_weather", strict: false, parameters }];
const asked = await client.responses.create({ model: "mock", input: "weather", tools: functions });
assert.equal(asked.output[0].type, "function_call");
const withheld = await client.responses.create({ model: "mock", input: "I'm so angry I could hurt someone" });
assert.equal(withheld.incomplete_details.reason, "content_filter");

await assert.rejects(say(bomb), (error) => error.status === 400 && error.code === "content_filter");
await assert.rejects(client.responses.create({ model: "mock", input: bomb }), OpenAI.BadRequestError);
await assert.rejects(client.responses.create({ model: "gpt-0", input: "x" }), OpenAI.NotFoundError);
const stranger = new OpenAI({ apiKey: "ck_nobody", maxRetries: 0 });
await assert.rejects(stranger.models.list(), OpenAI.AuthenticationError);
console.log("all checks passed");
