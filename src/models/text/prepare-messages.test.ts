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
    return tokenizer.applyChatTemplate(tokenizer.prepareMessages(messages, { chatTemplate }), { chatTemplate });
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
  const prepared = tokenizer.prepareMessages(messages, { chatTemplate });
  expect(tokenizer.applyChatTemplate(prepared, { chatTemplate })).toBe('{"a": true}');
});

it.each([null, undefined])("gives calls with content %s an empty one where the template needs a text", (content) => {
  const calls = [{ function: { name: "f", arguments: {} } }];
  const messages = [
    { role: "user", content: "x" },
    { role: "assistant", content, tool_calls: calls },
  ];
  const prepare = (chatTemplate: string) => tokenizer.prepareMessages(messages, { chatTemplate })[1].content;
  expect(prepare("{% for message in messages %}{{ message.content.strip() }}{% endfor %}!")).toBe("");
  expect(prepare("{% for message in messages %}{{ message.content or '' }}{% endfor %}!")).toBe(content);
});

it("leaves messages that need no change as they are", () => {
  const messages = [{ role: "user", content: "x" }];
  expect(tokenizer.prepareMessages(messages, { chatTemplate: `${LOOP}${END}` })).toBe(messages);
});

describe("content", () => {
  const text = { role: "user", content: "ab" };
  const parts = { role: "user", content: ["a", "b"].map((part) => ({ type: "text", text: part })) };
  const forPart = "{% for m in messages %}{% for part in m.content %}{{ part.text }}{% endfor %}{% endfor %}";

  it("is one text for a template that would leave parts out, or print them as Python does", () => {
    for (const content of ["{% if m.content is string %}{{ m.content }}{% endif %}", "{{ m.content }}"])
      expect(
        tokenizer.prepareMessages([parts], { chatTemplate: `{% for m in messages %}${content}{% endfor %}` }),
      ).toEqual([text]);
  });

  it("has thinking as reasoning_content for a template that prints texts only", () => {
    const chatTemplate = "{% for m in messages %}<{{ m.reasoning_content }}>{{ m.content }}{% endfor %}";
    const thinking = { type: "thinking", thinking: [{ type: "text", text: "hm" }] };
    const message = { role: "assistant", content: [thinking, { type: "text", text: "b" }] };
    expect(tokenizer.prepareMessages([message], { chatTemplate })).toEqual([
      { role: "assistant", content: "b", reasoning_content: "hm" },
    ]);
    const encrypted = { role: "assistant", content: [{ type: "thinking", data: "x" }] };
    expect(tokenizer.prepareMessages([encrypted], { chatTemplate })).toEqual([encrypted]);
  });

  it("is a part for a template that prints parts only", () => {
    expect(tokenizer.prepareMessages([text], { chatTemplate: forPart })).toEqual([
      { role: "user", content: [{ type: "text", text: "ab" }] },
    ]);
  });

  it("stays what it is for a template that prints both", () => {
    const either = `{% if messages[0].content is string %}{{ messages[0].content }}{% else %}${forPart}{% endif %}`;
    const messages = [text, parts];
    expect(tokenizer.prepareMessages(messages, { chatTemplate: either })).toBe(messages);
  });
});
