import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { writeRandomModel } from "../../test/support/random-model.js";
import { AutoModelForCausalLM, type LanguageModel } from "../generation/index.js";
import { AgentDialogue } from "./agent-dialogue.js";

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

/** A model of 256 positions with another chat template. */
async function modelWith(edit: (template: string) => string | null): Promise<LanguageModel> {
  const { folder, remove } = await writeRandomModel();
  closers.push(remove);
  const path = join(folder, "tokenizer_config.json");
  const config = JSON.parse(await readFile(path, "utf8")) as { chat_template: string };
  await writeFile(path, JSON.stringify({ ...config, chat_template: edit(config.chat_template) }));
  const model = await AutoModelForCausalLM.fromPretrained(folder, { threads: 1 });
  closers.push(() => model.close());
  return model;
}

function promptOf(model: LanguageModel, turns: number, reserved = 4) {
  const dialogue = new AgentDialogue(model, "Rules.");
  for (let turn = 1; turn < turns; turn++) {
    dialogue.show(`State ${turn}`);
    dialogue.answer("up");
  }
  dialogue.show("Now");
  const { tokens, forgotten } = dialogue.prompt(reserved);
  return { text: model.tokenizer.decode(tokens, { skipSpecialTokens: false }), length: tokens.length, forgotten };
}

describe("AgentDialogue", () => {
  it("says the rules in a system message", async () => {
    const { text } = promptOf(await modelWith((template) => template), 2);
    expect(text).toBe(
      "<|im_start|>system\nRules.<|im_end|>\n<|im_start|>user\nState 1<|im_end|>\n<|im_start|>assistant\nup<|im_end|>\n" +
        "<|im_start|>user\nNow<|im_end|>\n<|im_start|>assistant\n",
    );
  });

  it("says them before the oldest turn that is left, where the template takes no system message", async () => {
    const refusal = "{% if messages[0]['role'] == 'system' %}{{ raise_exception('No system role') }}{% endif %}";
    const model = await modelWith((template) => refusal + template);
    expect(promptOf(model, 2).text).toMatch(/^<\|im_start\|>user\nRules\.\n\nState 1<\|im_end\|>/);
    const { text, length, forgotten } = promptOf(model, 40);
    expect(forgotten).toBeGreaterThan(0);
    expect(length).toBeLessThanOrEqual(252);
    expect(text).toMatch(new RegExp(`^<\\|im_start\\|>user\nRules\\.\n\nState ${forgotten + 1}<`));
  });

  it("is a transcript where there is no template", async () => {
    const model = await modelWith(() => null);
    expect(promptOf(model, 2).text).toBe("Rules.\n\nState 1\n> up\n\nNow\n>");
  });

  it("keeps the last turn even where it does not fit", async () => {
    const { forgotten, length } = promptOf(await modelWith((template) => template), 3, 250);
    expect(forgotten).toBe(2);
    expect(length).toBeGreaterThan(6);
  });
});
