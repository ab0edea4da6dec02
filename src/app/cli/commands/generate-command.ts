import { text } from "node:stream/consumers";
import {
  compileToByteAutomaton,
  readPattern,
  resolveOptions,
  type GenerationOptions,
  type LanguageModel,
  type PromptInput,
} from "../../../generation/index.js";
import { CompletionPrinter } from "../display/completion-printer.js";
import { chat } from "../interactive/chat.js";
import { hasChatTemplate, openModel } from "../open-model.js";
import { defineCommand } from "../options/define-command.js";
import { generateOptions, toGenerationOptions, type GenerateArgs } from "../options/generation-options.js";
import { UsageError } from "../options/usage-error.js";
import type { Reporter } from "../reporter.js";

export const generateCommand = defineCommand({
  name: "generate",
  description: "Generates a completion of a prompt. Without --prompt, opens a chat.",
  examples: [
    { description: "Complete a prompt", args: 'generate -m embedded -p "14 or 20?"' },
    { description: "Chat with a Hugging Face model", args: "generate -m Qwen/Qwen2.5-0.5B-Instruct" },
  ],
  options: generateOptions,
  showsCommonOptions: true,
  run: generate,
});

async function generate(args: GenerateArgs, reporter: Reporter): Promise<number> {
  const options = await toGenerationOptions(args);
  checkConflicts(options);
  const { prompt, system, raw = false, json = false, stats = false } = args;
  if (raw && system !== undefined) throw new UsageError("--system needs a chat template. Leave out --raw or --system.");
  const startTime = performance.now();
  const model = await openModel(args.model, args, reporter);
  const printer = new CompletionPrinter(reporter, { json, stats, loadSeconds: (performance.now() - startTime) / 1000 });
  try {
    if (prompt === undefined) return await chat(model, printer, { system, raw, generation: options }, reporter);
    const promptText = prompt === "-" ? (await text(process.stdin)).trimEnd() : prompt;
    await printer.print(model.stream(buildPrompt(model, promptText, raw, system), options));
    return 0;
  } finally {
    await model.close();
  }
}

/** @throws UsageError for conflicting and unsupported options, before the model is loaded. */
function checkConflicts(options: GenerationOptions): void {
  try {
    resolveOptions(options);
    const pattern = readPattern(options);
    if (pattern !== undefined) compileToByteAutomaton(pattern);
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

/** Returns the prompt as messages for a model with a chat template, otherwise as plain text. */
function buildPrompt(model: LanguageModel, prompt: string, raw: boolean, system: string | undefined): PromptInput {
  if (raw || !hasChatTemplate(model)) {
    if (system !== undefined) throw new UsageError("--system needs a chat template, which this model does not have.");
    return prompt;
  }
  const user = { role: "user", content: prompt };
  return system === undefined ? [user] : [{ role: "system", content: system }, user];
}
