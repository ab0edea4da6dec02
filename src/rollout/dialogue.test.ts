import { describe, expect, it } from "vitest";
import { chatTemplates, testTokenizer } from "../../test/support/text.js";
import { Dialogue } from "./dialogue.js";
import { PromptWriter } from "./prompt-writer.js";
import type { DialogueSettings } from "./settings.js";

const settings: DialogueSettings = {
  historyTurns: Infinity,
  contextPolicy: "drop-oldest",
  maxContext: 10_000,
  replyPrefix: "",
};

function setUp(template: string | undefined, options: Partial<DialogueSettings> = {}, systemPrompt?: string) {
  const tokenizer = testTokenizer("gpt2", template);
  const writer = new PromptWriter(tokenizer, options.replyPrefix);
  const open = () => new Dialogue(writer, systemPrompt ?? "Rules.", { ...settings, ...options });
  const read = (dialogue: Dialogue, room = 4) => tokenizer.decode(dialogue.prompt(() => room));
  const reply = (dialogue: Dialogue, text: string) => {
    dialogue.prompt(() => 4);
    dialogue.accept([...tokenizer.encode(text, { addSpecialTokens: false }), tokenizer.eosTokenId!]);
  };
  const play = (turns: number) => {
    const dialogue = open();
    for (let turn = 1; turn < turns; turn++) {
      dialogue.show(`State ${turn}`);
      reply(dialogue, "up");
    }
    dialogue.show("Now");
    return dialogue;
  };
  return { tokenizer, open, read, reply, play };
}

/** Chat templates by what becomes of the system prompt. */
const { chatml, alternating } = chatTemplates;
const message = (role: string, content: string) => `<|im_start|>${role}\n${content}<|im_end|>\n`;
const header = "<|im_start|>assistant\n";

describe("Dialogue", () => {
  it("says the rules in a system message, and shows earlier turns", () => {
    const { read, play } = setUp(chatml);
    const turn = message("user", "State 1") + message("assistant", "up");
    expect(read(play(2))).toBe(message("system", "Rules.") + turn + message("user", "Now") + header);
  });

  it("says them in the first turn where the template takes no system message", () => {
    const { read, play } = setUp(alternating);
    expect(read(play(1))).toBe("[INST] Rules.\n\nNow [/INST]");
    expect(read(play(2))).toMatch(/^\[INST\] Rules\.\n\nState 1 \[\/INST\] ?up ?<\|im_end\|>\[INST\] Now \[\/INST\]$/);
  });

  it("is a transcript where there is no template", () => {
    const { read, play } = setUp(undefined);
    expect(read(play(2))).toMatch(/^Rules\.\n\nState 1\n\n>up(<\|im_end\|>)?\n\nNow\n\n>$/);
  });

  it("has no empty rules", () => {
    const { read, play } = setUp(chatml, {}, "");
    expect(read(play(1))).toBe(message("user", "Now") + header);
  });

  it.each([
    [0, "Rules.", ["Now"]],
    [1, "Rules.", ["State 3", "Now"]],
    [2, "Rules.", ["State 2", "State 3", "Now"]],
  ])("shows no more than %i earlier turns", (historyTurns, rules, states) => {
    const { read, play } = setUp(chatml, { historyTurns });
    const text = read(play(4));
    expect(text.startsWith(message("system", rules))).toBe(true);
    expect([...text.matchAll(/State \d|Now/g)].map(([found]) => found)).toEqual(states);
  });

  it.each([
    ["takes a system message", chatml],
    ["takes none", alternating],
  ])("leaves out the oldest turns of a full context, never the rules: the template %s", (_, template) => {
    const { tokenizer, read, play } = setUp(template, { maxContext: 90 });
    const dialogue = play(40);
    const text = read(dialogue, 10);
    const length = tokenizer.encode(text, { addSpecialTokens: false }).length;
    expect(length).toBeLessThanOrEqual(80);
    expect(length).toBeGreaterThan(50);
    expect(dialogue.forgottenTurns).toBeGreaterThan(20);
    expect(text.match(/Rules\./g)).toHaveLength(1);
    const states = [...text.matchAll(/State (\d+)/g)].map(([, number]) => Number(number));
    expect(states).toEqual(
      Array.from({ length: 39 - dialogue.forgottenTurns }, (_state, i) => dialogue.forgottenTurns + i + 1),
    );
    expect(text.indexOf("Rules.")).toBeLessThan(text.indexOf("State"));
  });

  it("keeps the rules where only so many turns are shown and the template takes no system message", () => {
    const { read, play } = setUp(alternating, { historyTurns: 1 });
    expect(read(play(4))).toMatch(/^\[INST\] Rules\.\n\nState 3 \[\/INST\].*\[INST\] Now \[\/INST\]$/s);
  });

  it("throws instead by the policy error, and where not even the last turn fits", () => {
    const strict = setUp(chatml, { maxContext: 60, contextPolicy: "error" });
    expect(() => strict.play(40)).toThrow(/CONTEXT_OVERFLOW|need more than the context of 60. Set contextPolicy/);
    const tiny = setUp(chatml, { maxContext: 12 }).play(1);
    expect(() => tiny.prompt(() => 4)).toThrow("Not even the last turn alone fits");
  });

  it("asks how much room the reply to the very prompt needs", () => {
    const { play } = setUp(chatml, { maxContext: 100 });
    const dialogue = play(40);
    const lengths: number[] = [];
    const prompt = dialogue.prompt((ids) => {
      lengths.push(ids.length);
      return ids.length > 60 ? 1000 : 4;
    });
    expect(prompt.length).toBe(lengths.at(-1));
    expect(prompt.length).toBeLessThanOrEqual(60);
  });

  it("shows an observation in place of one that got no reply", () => {
    const { open, read, reply } = setUp(chatml);
    const dialogue = open();
    dialogue.show("Wrong");
    dialogue.prompt(() => 4);
    dialogue.show("State 1");
    reply(dialogue, "up");
    dialogue.show("Wrong again");
    dialogue.show("Now");
    const turn = message("user", "State 1") + message("assistant", "up");
    expect(read(dialogue)).toBe(message("system", "Rules.") + turn + message("user", "Now") + header);
  });

  it("goes on from a saved state as if it had not stopped", () => {
    for (const template of [chatml, alternating]) {
      for (const historyTurns of [0, 2, Infinity]) {
        const { open, read, reply, play } = setUp(template, { historyTurns, maxContext: 80 });
        const dialogue = play(12);
        dialogue.prompt(() => 4);
        const copy = open();
        copy.show("Now");
        copy.setState(JSON.parse(JSON.stringify(dialogue.getState())) as ReturnType<Dialogue["getState"]>);
        for (const each of [dialogue, copy]) {
          reply(each, "left");
          each.show("Then");
        }
        expect(read(copy)).toBe(read(dialogue));
      }
    }
  });

  it("begins each reply with the prefix", () => {
    const { read, play } = setUp(chatml, { replyPrefix: "Action:" });
    expect(read(play(2)).endsWith(`${message("user", "Now")}${header}Action:`)).toBe(true);
    const single = setUp(chatml, { replyPrefix: "Action:", historyTurns: 0 });
    expect(single.read(single.play(2)).endsWith(`${header}Action:`)).toBe(true);
  });

  it("needs an observation before a prompt", () => {
    expect(() =>
      setUp(chatml)
        .open()
        .prompt(() => 1),
    ).toThrow("needs an observation");
  });
});
