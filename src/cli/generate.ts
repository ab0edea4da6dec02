import { text } from "node:stream/consumers";
import { compilePattern, patternOf } from "../generation/constraints/pattern.js";
import type { LanguageModel } from "../generation/language-model.js";
import type { PromptInput } from "../generation/prompt.js";
import { resolveOptions, type GenerationOptions } from "../generation/options.js";
import { chat } from "./chat.js";
import { command } from "./command.js";
import { generateOptions, generationOptions, type GenerateValues } from "./generation-options.js";
import { hasChatTemplate, openModel } from "./open-model.js";
import { UsageError } from "./options.js";
import { ReplyPrinter } from "./reply-printer.js";

export const generateCommand = command(
  "generate",
  "Generate text with a model; without --prompt, chat with it",
  generateOptions,
  generate,
);

async function generate(values: GenerateValues): Promise<number> {
  const settings = await generationOptions(values);
  checkTogether(settings);
  if (values.raw && values.system !== undefined)
    throw new UsageError("--raw has no messages, so it takes no --system.");
  const started = performance.now();
  const model = await openModel(values.model, values);
  const printer = new ReplyPrinter({ ...values, loadSeconds: (performance.now() - started) / 1000 });
  try {
    if (values.prompt === undefined) return await chat(model, printer, { ...values, settings });
    const prompt = values.prompt === "-" ? (await text(process.stdin)).trimEnd() : values.prompt;
    await printer.print(model.generate(promptOf(model, prompt, values), settings));
    return 0;
  } finally {
    await model.close();
  }
}

/** Options that contradict one another or are not supported are told before anything is loaded. */
function checkTogether(settings: GenerationOptions): void {
  try {
    resolveOptions(settings);
    const pattern = patternOf(settings);
    if (pattern !== undefined) compilePattern(pattern);
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

/** The prompt as a message where the model has a chat template, else as a text to go on with. */
function promptOf(model: LanguageModel, prompt: string, { raw, system }: GenerateValues): PromptInput {
  if (raw || !hasChatTemplate(model)) {
    if (system !== undefined) throw new UsageError("This model has no chat template, so it takes no --system.");
    return prompt;
  }
  const user = { role: "user", content: prompt };
  return system === undefined ? [user] : [{ role: "system", content: system }, user];
}
