import { fileURLToPath } from "node:url";
import { beforeAll, describe, expect, it } from "vitest";
import { AutoTokenizer } from "./auto-tokenizer.js";
import { stringifyJson, parseLosslessJson } from "../../core/lossless-json.js";
import type { Tokenizer } from "./tokenizer.js";

const folder = fileURLToPath(new URL("../../../test/fixtures/text/model", import.meta.url));
const LOOP = "{% for message in messages %}{{ message.content }}{% for call in message.tool_calls or [] %}";
const END = "{% endfor %}{% endfor %}";
/** Templates that print arguments, with what they print of an object. */
const TEMPLATES = {
  "an object": [`${LOOP}{{ call.function.arguments | tojson }}${END}`, '{"a": 10.0, "b": "c"}'],
  "an object of calls without functions": [`${LOOP}{{ call.arguments | tojson }}${END}`, '{"a": 10.0, "b": "c"}'],
  "an object, or text as it is": [
    `${LOOP}{% if call.function.arguments is string %}{{ call.function.arguments }}{% else %}{{ call.function.arguments | tojson }}{% endif %}${END}`,
    '{"a": 10.0, "b": "c"}',
  ],
  "an object, its names unquoted as Gemma 4's": [
    `${LOOP}{% set args = call.function.arguments %}{% if args is mapping %}{% for name, value in args | dictsort %}{{ name }}:{{ value }},{% endfor %}` +
      `{% else %}{{ args | tojson }}{% endif %}${END}`,
    "a:10.0,b:c,",
  ],
  "text only, as DeepSeek's": [
    `${LOOP}{{ '<call>' + call['function']['arguments'] }}${END}`,
    '<call>{"a": 10.0, "b": "c"}',
  ],
} as const;

let tokenizer: Tokenizer;
beforeAll(async () => {
  tokenizer = await AutoTokenizer.fromPretrained(folder);
});

describe.each(Object.entries(TEMPLATES))("a template that prints %s", (name, [chatTemplate, printed]) => {
  const render = (args: unknown) => {
    const call = name.includes("without")
      ? { name: "f", arguments: args }
      : { function: { name: "f", arguments: args } };
    const messages = [
      { role: "user", content: "x" },
      { role: "assistant", content: "", tool_calls: [call] },
    ];
    return tokenizer.applyChatTemplate(tokenizer.prepareToolCalls(messages, { chatTemplate }), { chatTemplate });
  };

  it("prints arguments that are an object or its JSON text", () => {
    const text = '{"a": 10.0, "b": "c"}';
    expect(render(parseLosslessJson(text))).toBe(`x${printed}`);
    expect(render(text)).toBe(`x${printed}`);
    expect(render(stringifyJson(parseLosslessJson(text)))).toBe(
      name.startsWith("text") ? 'x<call>{"a":10.0,"b":"c"}' : `x${printed}`,
    );
  });

  it("prints a broken call as it is", () => {
    expect(render('{"a": ')).toContain(
      name.startsWith("an object, or") || name.startsWith("text") ? '{"a": ' : '"{\\"a\\": "',
    );
  });
});

it("prints arguments as text where the template would print an object as Python does", () => {
  const chatTemplate = `${LOOP}{{ call.function.arguments }}${END}`;
  const call = { function: { name: "f", arguments: { a: true } } };
  const messages = [{ role: "assistant", content: "", tool_calls: [call] }];
  const prepared = tokenizer.prepareToolCalls(messages, { chatTemplate });
  expect(tokenizer.applyChatTemplate(prepared, { chatTemplate })).toBe('{"a": true}');
});

it("leaves messages without calls as they are", () => {
  const messages = [{ role: "user", content: "x" }];
  expect(tokenizer.prepareToolCalls(messages, { chatTemplate: "{{ broken" })).toBe(messages);
});
