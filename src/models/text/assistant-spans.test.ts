import { describe, expect, it } from "vitest";

import { chatTemplates, createTestTokenizer } from "../../../test/support/text.js";
import type { ChatMessage } from "./chat-messages.js";

const chat: { role: string; content: string }[] = [
  { role: "user", content: "Hit?" },
  { role: "assistant", content: "Action: 1" },
  { role: "user", content: "Action: 1" },
  { role: "assistant", content: " leading and trailing " },
];

function spoken(kind: string, template: string, messages: ChatMessage[], addGenerationPrompt = false): string[] {
  const tokenizer = createTestTokenizer(kind, template);
  const { ids, assistantSpans, assistantMask } = tokenizer.encodeChat(messages, { addGenerationPrompt });
  expect(assistantMask.reduce((sum, bit) => sum + bit, 0)).toBe(
    assistantSpans.reduce((sum, [start, end]) => sum + end - start, 0),
  );
  return assistantSpans.map(([start, end]) => tokenizer.decodeContinuation(ids.slice(start, end)));
}

describe("the assistant's tokens", () => {
  it.each([true, false])("are its content and end token, not its header (generation prompt: %s)", (prompt) => {
    expect(spoken("gpt2", chatTemplates.chatml, chat, prompt)).toEqual([
      "Action: 1<|im_end|>",
      " leading and trailing <|im_end|>",
    ]);
  });

  it("are the spans that {% generation %} marks", () => {
    const marked =
      "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' }}{% if m.role == 'assistant' %}{% generation %}{{ m.content }}{% endgeneration %}" +
      "{{ '<|im_end|>' }}{% else %}{{ m.content }}{% endif %}{% endfor %}";
    expect(spoken("gpt2", marked, chat)).toEqual(["Action: 1", " leading and trailing "]);
  });

  it("are found where the template trims, moves or drops messages", () => {
    expect(spoken("llama3", chatTemplates.trimming, chat)).toEqual([
      "Action: 1<|im_end|>",
      "leading and trailing<|im_end|>",
    ]);
    const thinking = chat.map((m) =>
      m.role === "assistant" ? { ...m, content: `<think>x</think>\n${m.content}` } : m,
    );
    expect(spoken("gpt2", chatTemplates.dropsReasoning, thinking)).toEqual([
      "Action: 1<|im_end|>",
      "<think>x</think>\n leading and trailing <|im_end|>",
    ]);
    const ruled = [{ role: "system", content: "Action: 1" }, ...chat];
    expect(spoken("gpt2", chatTemplates.systemLast, ruled)).toHaveLength(2);
  });

  it("start after the closing text of the prompt in templates without a header", () => {
    expect(spoken("gpt2", chatTemplates.alternating, chat)).toEqual([
      " Action: 1 <|im_end|>",
      " leading and trailing <|im_end|>",
    ]);
  });

  it("end with the first end token where the template writes another after the conversation", () => {
    expect(spoken("gpt2", chatTemplates.closing, chat)).toEqual([
      "Action: 1<|im_end|>",
      " leading and trailing <|im_end|>",
    ]);
  });

  it("are the end token alone when the content is empty", () => {
    const empty = [...chat.slice(0, 1), { role: "assistant", content: "" }];
    expect(spoken("gpt2", chatTemplates.chatml, empty)).toEqual(["<|im_end|>"]);
  });

  it("begin with the token that joins the header's newline and the content's", () => {
    // The vocabulary has the two newlines as one token.
    const template = chatTemplates.chatml.replaceAll("<|im_end|>\n", "<|im_end|>");
    const [first] = spoken("merged with previous", template, [chat[0], { role: "assistant", content: "\nnext" }]);
    expect(first.endsWith("next<|im_end|>")).toBe(true);
  });

  it("include special tokens in the content", () => {
    const odd = [chat[0], { role: "assistant", content: "a<|im_start|>b" }];
    expect(spoken("gpt2", chatTemplates.chatml, odd)).toEqual(["a<|im_start|>b<|im_end|>"]);
  });

  it("are found for SentencePiece vocabularies", () => {
    const template =
      "{{ bos_token }}{% for m in messages %}{{ m.role + ': ' + m.content + eos_token + '\n' }}{% endfor %}{{ 'assistant:' if add_generation_prompt }}";
    expect(spoken("llama2", template, chat.slice(0, 2))).toEqual([" Action: 1</s>"]);
  });

  describe("in a template that writes results into the turn with their calls, as Gemma 4's", () => {
    const template =
      "{% for m in messages if m.role != 'tool' %}{% if loop.previtem is not defined or loop.previtem.role != m.role %}{{ '<|im_start|>' + m.role + '\n' }}{% endif %}" +
      "{% for c in m.tool_calls %}{{ '<call>' + c.function.name + '</call>' }}" +
      "{% for t in messages if t.role == 'tool' %}{{ '[result ' + c.function.name + ': ' + t.content + ']' }}{% endfor %}{% endfor %}{{ m.content }}" +
      "{% if not m.tool_calls %}{{ '<|im_end|>\n' }}{% endif %}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";
    const call = { role: "assistant", content: "", tool_calls: [{ function: { name: "look", arguments: {} } }] };
    const through = (result: string, content: string): ChatMessage[] => [
      { role: "user", content: "u" },
      { ...call, content },
      { role: "tool", content: result },
      { role: "assistant", content: "It is 20." },
    ];

    it("are the calls without the results", () => {
      expect(spoken("gpt2", template, through("20", ""))).toEqual(["<call>look</call>", "It is 20.<|im_end|>"]);
    });

    it("are the calls without a result that is empty", () => {
      expect(spoken("gpt2", template, through("", ""))[0]).toBe("<call>look</call>");
    });

    it("are calls and text where the result comes between them", () => {
      const [calls, ...rest] = spoken("gpt2", template, through("20", "Let me see."));
      expect([calls, rest.join("")]).toEqual(["<call>look</call>", "Let me see.It is 20.<|im_end|>"]);
    });
  });

  describe("in a template that writes an empty reasoning block where the prompt begins one, as Nemotron's", () => {
    const template =
      "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' }}{% if m.role == 'assistant' and '</think>' not in m.content %}{{ '<think></think>' }}{% endif %}" +
      "{{ m.content + '<|im_end|>\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n<think>\n' }}{% endif %}";

    it("begin where the message continues otherwise than the prompt", () => {
      expect(spoken("gpt2", template, chat)[0]).toBe("</think>Action: 1<|im_end|>");
    });

    it("have all of a message's own reasoning", () => {
      const thinking = [chat[0], { role: "assistant", content: "<think></think>hit" }];
      expect(spoken("gpt2", template, thinking)).toEqual(["<think></think>hit<|im_end|>"]);
    });
  });

  it("are found in messages with parts and with tool calls", () => {
    const template =
      "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' }}{% if m.content is string %}{{ m.content }}{% else %}{{ m.content | map(attribute='text') | join }}{% endif %}" +
      "{% for c in m.tool_calls %}{{ c | tojson }}{% endfor %}{{ '<|im_end|>\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";
    const parts: ChatMessage[] = [
      { role: "user", content: "u" },
      {
        role: "assistant",
        content: [
          { type: "text", text: "a" },
          { type: "text", text: "b" },
        ],
      },
      { role: "assistant", content: "", tool_calls: [{ name: "hit" }] },
    ];
    expect(spoken("gpt2", template, parts)).toEqual(["ab<|im_end|>", '{"name": "hit"}<|im_end|>']);
  });
});

/** As Qwen3: reasoning is printed after the last question only, and apart from the content. */
const reasoning = `{%- set ns = namespace(last=0) %}
{%- for m in messages %}{% if m.role == 'user' %}{% set ns.last = loop.index0 %}{% endif %}{% endfor %}
{%- for m in messages %}
{%- set content = m.content if m.content is string else '' %}
{%- if m.role == 'assistant' %}
{%- set thought = m.reasoning_content or '' %}
{%- if '</think>' in content %}
{%- set thought = content.split('</think>')[0].split('<think>')[-1].strip('\\n') %}
{%- set content = content.split('</think>')[-1].lstrip('\\n') %}
{%- endif %}
{{- '<|im_start|>assistant\\n' }}
{%- if loop.index0 > ns.last and (loop.last or thought) %}{{ '<think>\\n' + thought + '\\n</think>\\n\\n' }}{% endif %}
{{- content }}
{%- for call in m.tool_calls or [] %}
{{- '\\n<tool_call>\\n{"name": "' + call.function.name + '", "arguments": ' + call.function.arguments | tojson + '}\\n</tool_call>' }}
{%- endfor %}
{{- '<|im_end|>\\n' }}
{%- elif m.role == 'tool' %}{{ '<|im_start|>user\\n<tool_response>' + content + '</tool_response><|im_end|>\\n' }}
{%- else %}{{ '<|im_start|>' + m.role + '\\n' + content + '<|im_end|>\\n' }}{% endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}`;

/** As Mistral Nemo: no header, tools before the last question, and results only after calls. */
const mistral = `{%- for m in messages %}
{%- if m.role == 'user' %}
{%- if loop.last or messages[loop.index:] | selectattr('role', 'eq', 'user') | list | length == 0 %}{{ '[TOOLS]' }}{% endif %}
{{- '[INST]' + m.content + '[/INST]' }}
{%- elif m.tool_calls is defined %}
{{- '[TOOL_CALLS][' }}
{%- for call in m.tool_calls %}{{ call.function | tojson }}{{ ', "id": "' + call.id + '"}' }}{{ ', ' if not loop.last }}{% endfor %}
{{- ']<|im_end|>' }}
{%- elif m.role == 'tool' %}
{%- if messages[loop.index0 - 1].tool_calls is not defined %}{{ raise_exception('A result must follow a call.') }}{% endif %}
{{- '[RESULTS]' + m.content + '[/RESULTS]' }}
{%- else %}{{ m.content + '<|im_end|>' }}{% endif %}
{%- endfor %}`;

describe("the assistant's tokens of reasoning and tool calls", () => {
  const call = (name: string, args: object) => ({ type: "function", id: "c1", function: { name, arguments: args } });
  const turns = (...answers: object[]) =>
    answers.flatMap((answer, i) => [
      { role: "user", content: `Question ${i + 1}?` },
      { role: "assistant", content: "", ...answer },
    ]);

  it("have reasoning where the template prints it", () => {
    const shown = "<think>\nlow\n</think>\n\nhit<|im_end|>";
    expect(spoken("gpt2", reasoning, turns({ content: "<think>low</think>hit" }))).toEqual([shown]);
    expect(spoken("gpt2", reasoning, turns({ content: "hit", reasoning_content: "low" }))).toEqual([shown]);
    expect(
      spoken("gpt2", reasoning, turns({ content: "<think>high</think>stay" }, { content: "<think>low</think>hit" })),
    ).toEqual(["stay<|im_end|>", shown]);
  });

  it("have tool calls with reasoning and between results", () => {
    const messages = [
      ...turns({ reasoning_content: "look", tool_calls: [call("draw", { n: 2 }), call("stop", {})] }),
      { role: "tool", content: "draw: 7" },
      { role: "assistant", content: "", tool_calls: [call("draw", { n: 1 })] },
      { role: "tool", content: "stop" },
      { role: "assistant", content: "done" },
      ...turns({ content: "<think>ok</think>bye" }),
    ];
    const drawn = (n: number) => `\n<tool_call>\n{"name": "draw", "arguments": {"n": ${n}}}\n</tool_call>`;
    const stopped = '\n<tool_call>\n{"name": "stop", "arguments": {}}\n</tool_call><|im_end|>';
    expect(spoken("gpt2", reasoning, messages)).toEqual([
      `${drawn(2)}${stopped}`,
      `${drawn(1)}<|im_end|>`,
      "done<|im_end|>",
      "<think>\nok\n</think>\n\nbye<|im_end|>",
    ]);
    expect(spoken("gpt2", reasoning, messages.slice(0, 3))).toEqual([
      `<think>\nlook\n</think>\n\n${drawn(2)}${stopped}`,
    ]);
  });

  it("have tool calls that results must follow, in a template without a header", () => {
    const messages = [
      ...turns({ content: undefined, tool_calls: [call("draw", { n: 2 })] }),
      { role: "tool", content: "draw" },
      { role: "assistant", content: "seven" },
      ...turns({ content: "bye" }),
    ];
    const drawn = '[TOOL_CALLS][{"name": "draw", "arguments": {"n": 2}}, "id": "c1"}]<|im_end|>';
    expect(spoken("gpt2", mistral, messages)).toEqual([drawn, "seven<|im_end|>", "bye<|im_end|>"]);
    expect(spoken("gpt2", mistral, messages.slice(0, 4))).toEqual([drawn, "seven<|im_end|>"]);
  });

  it("name the answers that the template leaves out", () => {
    const tokenizer = createTestTokenizer("gpt2", chatTemplates.chatml);
    const messages = turns({ content: "a" }, { tool_calls: [call("draw", {})] }, { content: "b" }, { content: "" });
    const { missingAnswers, spanMessages } = tokenizer.encodeChat(messages);
    expect(missingAnswers).toEqual([3]);
    expect(spanMessages).toEqual([1, 5, 7]);
    const marked =
      "{% for m in messages %}{% if m.role == 'assistant' %}{% generation %}{{ m.content }}<|im_end|>{% endgeneration %}" +
      "{% else %}{{ m.content }}{% endif %}{% endfor %}";
    expect(tokenizer.encodeChat(messages, { chatTemplate: marked }).missingAnswers).toEqual([3]);
    const twice = marked.replace("<|im_end|>", "{% endgeneration %} {% generation %}{{ m.note }}");
    const noted = turns({ content: "a", note: "b" }, { content: "c" });
    expect(tokenizer.encodeChat(noted, { chatTemplate: twice })).toMatchObject({
      missingAnswers: [],
      spanMessages: [1, 1, 3],
    });
  });
});
