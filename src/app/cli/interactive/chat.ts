import { createInterface } from "node:readline";
import { LlamaGymError } from "../../../core/errors.js";
import type { GenerationOptions, LanguageModel } from "../../../generation/index.js";
import { Conversation } from "../../../models/text/index.js";
import type { CompletionPrinter } from "../display/completion-printer.js";
import { SIGINT_EXIT_CODE } from "../interrupt-handler.js";
import { hasChatTemplate } from "../open-model.js";
import { UsageError } from "../options/usage-error.js";
import type { Reporter } from "../reporter.js";

const HELP = "/exit quits, /reset clears the conversation, Ctrl-C stops a completion.";

interface ChatOptions {
  readonly system: string | undefined;
  /** Continue lines as plain text, without the chat template. */
  readonly raw: boolean;
  readonly generation: GenerationOptions;
}

/** Completes each line of standard input until /exit or its end; returns the exit status. */
export async function chat(
  model: LanguageModel,
  printer: CompletionPrinter,
  options: ChatOptions,
  reporter: Reporter,
): Promise<number> {
  const session =
    options.raw || !hasChatTemplate(model)
      ? new RawTextSession(model, options)
      : new ChatSession(model, options, reporter.info);
  const isTerminal = process.stdin.isTTY === true;
  const input = createInterface({ input: process.stdin, output: process.stderr, terminal: isTerminal });
  // An interrupt stops the running completion. Without one, or at the second interrupt, the chat
  // ends.
  const interrupts = reporter.handleInterrupts();
  const { signal } = interrupts;
  input.on("SIGINT", interrupts.interrupt);
  signal.addEventListener("abort", () => input.close());
  const { device, threads } = model.causalLM.runtime;
  if (isTerminal) reporter.info(`${model.causalLM.config.modelType} on ${device}, ${threads} threads. ${HELP}`);
  const promptUser = () => {
    if (isTerminal) input.prompt();
  };
  promptUser();
  for await (const line of input) {
    const command = line.trim();
    if (signal.aborted || command === "/exit" || command === "/quit") break;
    if (command === "/reset") session.reset();
    else if (command === "/help") reporter.info(HELP);
    else if (command !== "")
      await interrupts.runTask((signal) =>
        session.respond(line, printer, signal).catch((error) => printMessageError(error, reporter)),
      );
    if (signal.aborted) break;
    promptUser();
  }
  input.close();
  return signal.aborted ? SIGINT_EXIT_CODE : 0;
}

/** Prints an error that one message caused; others end the chat. */
function printMessageError(error: unknown, reporter: Reporter): void {
  if (!(error instanceof LlamaGymError) || error.code === "RUNTIME_FAILED") throw error;
  reporter.fail(error);
}

/** A conversation through the model's chat template. */
class ChatSession {
  private conversation: Conversation;
  private turnIndex = 0;

  constructor(
    private readonly model: LanguageModel,
    private readonly options: ChatOptions,
    private readonly info: (message: string) => void,
  ) {
    this.conversation = this.newConversation();
  }

  reset(): void {
    this.conversation = this.newConversation();
  }

  async respond(line: string, printer: CompletionPrinter, signal: AbortSignal): Promise<void> {
    const next = this.conversation.fork();
    next.add({ role: "user", content: line });
    const prompt = this.fitPrompt(next);
    const { seed, ...settings } = this.options.generation;
    const seeded = seed === undefined ? settings : { ...settings, seed: seed + this.turnIndex };
    const completion = await printer.print(this.model.stream(prompt, { ...seeded, signal }));
    this.turnIndex++;
    next.appendCompletion(completion.tokens);
    this.conversation = next;
  }

  private newConversation(): Conversation {
    const { system } = this.options;
    return new Conversation(this.model.tokenizer, {
      messages: system === undefined ? [] : [{ role: "system", content: system }],
    });
  }

  /** Returns the prompt; drops the oldest turns, with a message, when the context is full. */
  private fitPrompt(conversation: Conversation): readonly number[] {
    const { maxNewTokens = 1 } = this.options.generation;
    const maxPromptTokens = this.model.causalLM.config.maxPositions - maxNewTokens;
    let dropped = 0;
    while (conversation.promptIds().length > maxPromptTokens) {
      const count = conversation.dropOldestTurns();
      if (count === 0) break;
      dropped += count;
    }
    if (dropped > 0) this.info(`(Context full: dropped the oldest ${dropped} messages.)`);
    return conversation.promptIds();
  }
}

/** Continues each line as plain text, for models without a chat template. */
class RawTextSession {
  constructor(
    private readonly model: LanguageModel,
    private readonly options: ChatOptions,
  ) {
    if (options.system !== undefined)
      throw new UsageError("--system needs a chat template, which this model does not have.");
  }

  reset(): void {}

  async respond(line: string, printer: CompletionPrinter, signal: AbortSignal): Promise<void> {
    await printer.print(this.model.stream(line, { ...this.options.generation, signal }));
  }
}
