// Drives a server with the AI SDK and LangChain. Argument: the server's address. Prints one JSON document, which the
// test judges.
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { ChatOpenAI } from "@langchain/openai";
import { generateObject, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";

const [address] = process.argv.slice(2);
const provider = createOpenAICompatible({ name: "slipway", baseURL: `${address}/v1`, apiKey: "none",
  supportsStructuredOutputs: true,
  transformRequestBody: (body) => ({ ...body, chat_template_kwargs: { enable_thinking: false } }) });
const model = provider("pocket");
const report = z.object({ city: z.string().max(20), sky: z.enum(["sunny", "cloudy"]), celsius: z.int().min(-60).max(60) });
const question = "What is the weather in Paris?";
const results = {};

{
  const cities = [];
  const { textStream, text, steps } = streamText({ model, temperature: 0, maxRetries: 0, prompt: question,
    stopWhen: stepCountIs(3),
    tools: { get_weather: tool({ description: "Get the current weather of a city",
      inputSchema: z.object({ city: z.string() }),
      execute: async ({ city }) => { cities.push(city); return { temperature: 21, sky: "sunny" }; } }) } });
  let streamed = "";
  for await (const piece of textStream) streamed += piece;
  results.streamText = { cities, said: await text, streamed, steps: (await steps).length };
}

{
  const { object, finishReason } = await generateObject({ model, temperature: 0, maxRetries: 0, schema: report,
    prompt: question });
  results.generateObject = { object: report.parse(object), stop: finishReason };
}

{
  const chat = new ChatOpenAI({ model: "pocket", temperature: 0, apiKey: "none", maxRetries: 0,
    configuration: { baseURL: `${address}/v1` }, modelKwargs: { chat_template_kwargs: { enable_thinking: false } } });
  const structured = chat.withStructuredOutput(report, { method: "jsonSchema", name: "report" });
  results.withStructuredOutput = { object: report.parse(await structured.invoke(question)) };
}

console.log(JSON.stringify(results));
