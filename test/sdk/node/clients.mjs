// Drives a server with the clients of OpenAI, Anthropic and Ollama for Node. Argument: the server's address. Prints one
// JSON document, which the test judges.
import Anthropic from "@anthropic-ai/sdk";
import { Ollama } from "ollama";
import OpenAI from "openai";

const [address] = process.argv.slice(2);
const model = "pocket";
const openai = new OpenAI({ baseURL: `${address}/v1`, apiKey: "none", maxRetries: 0 });
const anthropic = new Anthropic({ baseURL: address, apiKey: "none", maxRetries: 0 });
const ollama = new Ollama({ host: address });

const question = "What is the weather in Paris?";
const schema = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const description = "Get the current weather of a city";
const weather = '{"temperature": 21, "sky": "sunny"}';
const results = {};

// A tool loop that the client runs itself, on a stream.
{
  const cities = [];
  const runner = openai.chat.completions.runTools({
    model, temperature: 0, stream: true, messages: [{ role: "user", content: question }],
    chat_template_kwargs: { enable_thinking: false },
    tools: [{ type: "function", function: { name: "get_weather", description, parameters: schema, parse: JSON.parse,
      function: ({ city }) => { cities.push(city); return weather; } } }],
  });
  results.runTools = { cities, said: await runner.finalContent() };
}

{
  const stream = openai.responses.stream({ model, temperature: 0, input: question, reasoning: { effort: "none" },
    tools: [{ type: "function", name: "get_weather", description, parameters: schema, strict: false }] });
  let streamed = "";
  stream.on("response.function_call_arguments.delta", (e) => { streamed += e.delta; });
  const first = await stream.finalResponse();
  const call = first.output.find((item) => item.type === "function_call");
  const second = await openai.responses.create({ model, temperature: 0, reasoning: { effort: "none" },
    previous_response_id: first.id, input: [{ type: "function_call_output", call_id: call.call_id, output: weather }],
    tools: [{ type: "function", name: "get_weather", description, parameters: schema, strict: false }] });
  results.responses = { cities: [JSON.parse(call.arguments).city], said: second.output_text,
    streamed: streamed === call.arguments };
}

{
  const tools = [{ name: "get_weather", description, input_schema: schema }];
  const messages = [{ role: "user", content: question }];
  const first = await anthropic.messages.stream({ model, max_tokens: 200, temperature: 0, tools, messages }).finalMessage();
  const use = first.content.find((block) => block.type === "tool_use");
  messages.push({ role: "assistant", content: first.content },
    { role: "user", content: [{ type: "tool_result", tool_use_id: use.id, content: weather }] });
  const second = await anthropic.messages.create({ model, max_tokens: 200, temperature: 0, tools, messages });
  const thought = await anthropic.messages.stream({ model, max_tokens: 2000, temperature: 0,
    thinking: { type: "enabled", budget_tokens: 1024 }, messages: [{ role: "user", content: "Hello" }] }).finalMessage();
  results.anthropic = { cities: [use.input.city], said: second.content[0].text, stop: first.stop_reason,
    thinking: thought.content[0].type === "thinking" && thought.content[0].signature !== "" };
  try {
    await anthropic.messages.create({ model: "claude-x", max_tokens: 5, messages });
  } catch (e) {
    results.anthropic.refused = `${e.constructor.name} ${e.status}`;
  }
}

{
  const tools = [{ type: "function", function: { name: "get_weather", description, parameters: schema } }];
  const messages = [{ role: "user", content: question }];
  const said = { role: "assistant", content: "", tool_calls: [] };
  for await (const part of await ollama.chat({ model, think: false, stream: true, options: { temperature: 0 }, tools,
    messages })) {
    said.content += part.message.content;
    said.tool_calls.push(...(part.message.tool_calls ?? []));
  }
  messages.push(said, { role: "tool", tool_name: "get_weather", content: weather });
  const second = await ollama.chat({ model, think: false, options: { temperature: 0 }, tools, messages });
  const { models } = await ollama.list();
  const shown = await ollama.show({ model: models[0].model });
  results.ollama = { cities: said.tool_calls.map((call) => call.function.arguments.city), said: second.message.content,
    capabilities: shown.capabilities };
}

console.log(JSON.stringify(results));
