import { describe, expect, it } from "vitest";
import { chatTemplates, createTestTokenizer } from "../../../test/support/text.js";
import { PromptBuilder } from "./prompt-builder.js";
import { PromptRenderer } from "./prompt-renderer.js";
import type { PromptSettings } from "./rollout-settings.js";

const settings: PromptSettings = {
  historyTurns: Infinity,
  contextOverflow: "drop-oldest",
  maxContextLength: 10_000,
  completionPrefix: "",
};

function setUp(template: string | undefined, options: Partial<PromptSettings> = {}, systemPrompt?: string) {
  const tokenizer = createTestTokenizer("gpt2", template);
  const renderer = new PromptRenderer(tokenizer, options.completionPrefix);
  const open = () => new PromptBuilder(renderer, systemPrompt ?? "Rules.", { ...settings, ...options });
  const read = (promptBuilder: PromptBuilder, room = 4) => tokenizer.decode(promptBuilder.build(() => room));
  const reply = (promptBuilder: PromptBuilder, text: string) => {
    promptBuilder.build(() => 4);
    promptBuilder.addCompletion([...tokenizer.encode(text, { addSpecialTokens: false }), tokenizer.eosTokenId!]);
  };
  const play = (turns: number) => {
    const promptBuilder = open();
    for (let turn = 1; turn < turns; turn++) {
      promptBuilder.addObservation(`State ${turn}`);
      reply(promptBuilder, "up");
    }
    promptBuilder.addObservation("Now");
    return promptBuilder;
  };
  return { tokenizer, open, read, reply, play };
}

/** Chat templates with and without a system role. */
const { chatml, alternating } = chatTemplates;
const message = (role: string, content: string) => `<|im_start|>${role}\n${content}<|im_end|>\n`;
const header = "<|im_start|>assistant\n";

describe("PromptBuilder", () => {
  it("renders the system prompt as a system message, followed by earlier turns", () => {
    const { read, play } = setUp(chatml);
    const turn = message("user", "State 1") + message("assistant", "up");
    expect(read(play(2))).toBe(message("system", "Rules.") + turn + message("user", "Now") + header);
  });

  it("renders the system prompt in the first turn if the template has no system role", () => {
    const { read, play } = setUp(alternating);
    expect(read(play(1))).toBe("[INST] Rules.\n\nNow [/INST]");
    expect(read(play(2))).toMatch(/^\[INST\] Rules\.\n\nState 1 \[\/INST\] ?up ?<\|im_end\|>\[INST\] Now \[\/INST\]$/);
  });

  it("renders a transcript without a template", () => {
    const { read, play } = setUp(undefined);
    expect(read(play(2))).toMatch(/^Rules\.\n\nState 1\n\n>up(<\|im_end\|>)?\n\nNow\n\n>$/);
  });

  it("leaves out an empty system prompt", () => {
    const { read, play } = setUp(chatml, {}, "");
    expect(read(play(1))).toBe(message("user", "Now") + header);
  });

  it.each([
    [0, "Rules.", ["Now"]],
    [1, "Rules.", ["State 3", "Now"]],
    [2, "Rules.", ["State 2", "State 3", "Now"]],
  ])("includes at most %i earlier turns", (historyTurns, rules, states) => {
    const { read, play } = setUp(chatml, { historyTurns });
    const text = read(play(4));
    expect(text.startsWith(message("system", rules))).toBe(true);
    expect([...text.matchAll(/State \d|Now/g)].map(([found]) => found)).toEqual(states);
  });

  it.each([
    ["has a system role", chatml],
    ["has none", alternating],
  ])("drops the oldest turns of a full context, never the system prompt: the template %s", (_, template) => {
    const { tokenizer, read, play } = setUp(template, { maxContextLength: 90 });
    const promptBuilder = play(40);
    const text = read(promptBuilder, 10);
    const length = tokenizer.encode(text, { addSpecialTokens: false }).length;
    expect(length).toBeLessThanOrEqual(80);
    expect(length).toBeGreaterThan(50);
    expect(promptBuilder.droppedTurns).toBeGreaterThan(20);
    expect(text.match(/Rules\./g)).toHaveLength(1);
    const states = [...text.matchAll(/State (\d+)/g)].map(([, number]) => Number(number));
    expect(states).toEqual(
      Array.from({ length: 39 - promptBuilder.droppedTurns }, (_state, i) => promptBuilder.droppedTurns + i + 1),
    );
    expect(text.indexOf("Rules.")).toBeLessThan(text.indexOf("State"));
  });

  it("keeps the system prompt with limited history if the template has no system role", () => {
    const { read, play } = setUp(alternating, { historyTurns: 1 });
    expect(read(play(4))).toMatch(/^\[INST\] Rules\.\n\nState 3 \[\/INST\].*\[INST\] Now \[\/INST\]$/s);
  });

  it("throws with the policy error, and if even the last turn does not fit", () => {
    const strict = setUp(chatml, { maxContextLength: 60, contextOverflow: "error" });
    expect(() => strict.play(40)).toThrow(/exceed the context of 60 tokens. Set contextOverflow/);
    const tiny = setUp(chatml, { maxContextLength: 12 }).play(1);
    expect(() => tiny.build(() => 4)).toThrow("Even the last turn alone does not fit");
  });

  it("asks for the reserved tokens of each prompt it tries", () => {
    const { play } = setUp(chatml, { maxContextLength: 100 });
    const promptBuilder = play(40);
    const lengths: number[] = [];
    const prompt = promptBuilder.build((ids) => {
      lengths.push(ids.length);
      return ids.length > 60 ? 1000 : 4;
    });
    expect(prompt.length).toBe(lengths.at(-1));
    expect(prompt.length).toBeLessThanOrEqual(60);
  });

  it("replaces an observation without a completion", () => {
    const { open, read, reply } = setUp(chatml);
    const promptBuilder = open();
    promptBuilder.addObservation("Wrong");
    promptBuilder.build(() => 4);
    promptBuilder.addObservation("State 1");
    reply(promptBuilder, "up");
    promptBuilder.addObservation("Wrong again");
    promptBuilder.addObservation("Now");
    const turn = message("user", "State 1") + message("assistant", "up");
    expect(read(promptBuilder)).toBe(message("system", "Rules.") + turn + message("user", "Now") + header);
  });

  it("continues identically from a saved state", () => {
    for (const template of [chatml, alternating]) {
      for (const historyTurns of [0, 2, Infinity]) {
        const { open, read, reply, play } = setUp(template, { historyTurns, maxContextLength: 80 });
        const promptBuilder = play(12);
        promptBuilder.build(() => 4);
        const copy = open();
        copy.addObservation("Now");
        copy.setState(JSON.parse(JSON.stringify(promptBuilder.getState())) as ReturnType<PromptBuilder["getState"]>);
        for (const each of [promptBuilder, copy]) {
          reply(each, "left");
          each.addObservation("Then");
        }
        expect(read(copy)).toBe(read(promptBuilder));
      }
    }
  });

  it("ends each prompt with the completion prefix", () => {
    const { read, play } = setUp(chatml, { completionPrefix: "Action:" });
    expect(read(play(2)).endsWith(`${message("user", "Now")}${header}Action:`)).toBe(true);
    const single = setUp(chatml, { completionPrefix: "Action:", historyTurns: 0 });
    expect(single.read(single.play(2)).endsWith(`${header}Action:`)).toBe(true);
  });

  it("requires an observation", () => {
    expect(() =>
      setUp(chatml)
        .open()
        .build(() => 1),
    ).toThrow("no observation to build a prompt from");
  });
});
