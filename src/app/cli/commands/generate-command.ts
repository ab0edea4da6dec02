import { text } from "node:stream/consumers";
import { compileToByteAutomaton, readPattern } from "../../../generation/constraints/text-pattern.js";
import type { LanguageModel } from "../../../generation/language-model.js";
import type { PromptInput } from "../../../generation/prompt/encode-prompt.js";
import { resolveOptions, type GenerationOptions } from "../../../generation/generation-options.js";
import { chat } from "../interactive/chat.js";
import { buildCommand } from "../options/build-command.js";
import { generateOptions, toGenerationOptions, type GenerateArgs } from "../options/generation-options.js";
import { hasChatTemplate, openModel } from "../open-model.js";
import { UsageError } from "../options/parse-args.js";
import { CompletionPrinter } from "../display/completion-printer.js";

export const generateCommand = buildCommand(
  "generate",
  "Generate text with a model; without --prompt, chat with it",
  generateOptions,
  generate,
);

async function generate(args: GenerateArgs): Promise<number> {
  const options = await toGenerationOptions(args);
  checkConflicts(options);
  if (args.raw && args.system !== undefined) throw new UsageError("--raw has no messages, so it takes no --system.");
  const started = performance.now();
  const model = await openModel(args.model, args);
  const printer = new CompletionPrinter({ ...args, loadSeconds: (performance.now() - started) / 1000 });
  try {
    if (args.prompt === undefined) return await chat(model, printer, { ...args, generation: options });
    const prompt = args.prompt === "-" ? (await text(process.stdin)).trimEnd() : args.prompt;
    await printer.print(model.stream(buildPrompt(model, prompt, args), options));
    return 0;
  } finally {
    await model.close();
  }
}

/** Options that contradict one another or are not supported are told before anything is loaded. */
function checkConflicts(options: GenerationOptions): void {
  try {
    resolveOptions(options);
    const pattern = readPattern(options);
    if (pattern !== undefined) compileToByteAutomaton(pattern);
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

/** The prompt as a message where the model has a chat template, else as a text to go on with. */
function buildPrompt(model: LanguageModel, prompt: string, { raw, system }: GenerateArgs): PromptInput {
  if (raw || !hasChatTemplate(model)) {
    if (system !== undefined) throw new UsageError("This model has no chat template, so it takes no --system.");
    return prompt;
  }
  const user = { role: "user", content: prompt };
  return system === undefined ? [user] : [{ role: "system", content: system }, user];
}
