import { createInterface, type Interface } from "node:readline";
import { LlamaGymError } from "../../../core/errors.js";
import type { LanguageModel } from "../../../generation/language-model.js";
import type { GenerationOptions } from "../../../generation/generation-options.js";
import { Conversation } from "../../../models/text/index.js";
import type { GenerateArgs } from "../options/generation-options.js";
import { hasChatTemplate } from "../open-model.js";
import { UsageError } from "../options/parse-args.js";
import type { CompletionPrinter } from "../display/completion-printer.js";

const HELP = "/exit ends, /reset forgets the conversation, Ctrl-C stops a reply.";
const SIGINT_EXIT_CODE = 130;

interface ChatOptions extends Pick<GenerateArgs, "system" | "raw"> {
  readonly generation: GenerationOptions;
}

/** Reads lines from standard input and replies to each until /exit or the end; gives the exit status. */
export async function chat(model: LanguageModel, printer: CompletionPrinter, options: ChatOptions): Promise<number> {
  const session =
    options.raw || !hasChatTemplate(model) ? new RawTextSession(model, options) : new ChatSession(model, options);
  const isTerminal = process.stdin.isTTY === true;
  const input = createInterface({ input: process.stdin, output: process.stderr, terminal: isTerminal });
  const interrupt = new ChatInterrupt(input);
  const { device, threads } = model.causalLM.runtime;
  if (isTerminal)
    process.stderr.write(`${model.causalLM.config.modelType} on ${device}, ${threads} threads. ${HELP}\n`);
  const promptUser = () => {
    if (isTerminal) input.prompt();
  };
  promptUser();
  for await (const line of input) {
    if (interrupt.shouldQuit || line.trim() === "/exit" || line.trim() === "/quit") break;
    if (line.trim() === "/reset") session.reset();
    else if (line.trim() === "/help") process.stderr.write(`${HELP}\n`);
    else if (line.trim() !== "") {
      await interrupt.run((signal) => session.reply(line, printer, signal));
      if (interrupt.shouldQuit) break;
    }
    promptUser();
  }
  input.close();
  interrupt.release();
  return interrupt.shouldQuit ? SIGINT_EXIT_CODE : 0;
}

/** Ctrl-C: the first stops a reply that is running; with none running, or the second, the chat ends. */
class ChatInterrupt {
  shouldQuit = false;
  private active: AbortController | undefined;

  constructor(private readonly input: Interface) {
    input.on("SIGINT", this.onSignal);
    process.on("SIGINT", this.onSignal);
  }

  async run(task: (signal: AbortSignal) => Promise<void>): Promise<void> {
    this.active = new AbortController();
    try {
      await task(this.active.signal);
    } finally {
      this.active = undefined;
    }
  }

  release(): void {
    process.off("SIGINT", this.onSignal);
  }

  private readonly onSignal = (): void => {
    if (this.active !== undefined && !this.active.signal.aborted) {
      this.active.abort();
      return;
    }
    if (this.active !== undefined) process.exit(SIGINT_EXIT_CODE);
    this.shouldQuit = true;
    this.input.close();
  };
}

/** Turns that the model's chat template puts together. */
class ChatSession {
  private conversation: Conversation;
  private turnIndex = 0;

  constructor(
    private readonly model: LanguageModel,
    private readonly options: ChatOptions,
  ) {
    this.conversation = this.newConversation();
  }

  reset(): void {
    this.conversation = this.newConversation();
  }

  async reply(line: string, printer: CompletionPrinter, signal: AbortSignal): Promise<void> {
    const next = this.conversation.fork();
    next.add({ role: "user", content: line });
    try {
      const prompt = this.fitPrompt(next);
      const { seed, ...settings } = this.options.generation;
      const seeded = seed === undefined ? settings : { ...settings, seed: seed + this.turnIndex };
      const completion = await printer.print(this.model.stream(prompt, { ...seeded, signal }));
      this.turnIndex++;
      next.appendCompletion(completion.tokens);
      this.conversation = next;
    } catch (error) {
      printError(error);
    }
  }

  private newConversation(): Conversation {
    const { system } = this.options;
    return new Conversation(this.model.tokenizer, {
      messages: system === undefined ? [] : [{ role: "system", content: system }],
    });
  }

  /** Without the oldest turns where the context is full, which is told. */
  private fitPrompt(conversation: Conversation): readonly number[] {
    const { maxNewTokens = 1 } = this.options.generation;
    const maxPromptTokens = this.model.causalLM.config.maxPositions - maxNewTokens;
    let dropped = 0;
    while (conversation.promptIds().length > maxPromptTokens) {
      const count = conversation.dropOldestTurns();
      if (count === 0) break;
      dropped += count;
    }
    if (dropped > 0) process.stderr.write(`(The context is full: the oldest ${dropped} messages were left out.)\n`);
    return conversation.promptIds();
  }
}

/** Each line is a text to go on with, for models without a chat template. */
class RawTextSession {
  constructor(
    private readonly model: LanguageModel,
    private readonly options: ChatOptions,
  ) {
    if (options.system !== undefined) throw new UsageError("This model has no chat template, so it takes no --system.");
  }

  reset(): void {}

  async reply(line: string, printer: CompletionPrinter, signal: AbortSignal): Promise<void> {
    try {
      await printer.print(this.model.stream(line, { ...this.options.generation, signal }));
    } catch (error) {
      printError(error);
    }
  }
}

/** What is wrong with one message does not end the chat. */
function printError(error: unknown): void {
  if (!(error instanceof LlamaGymError) || error.code === "RUNTIME_FAILED") throw error;
  process.stderr.write(`${error.toString().replaceAll("\n", " ")}\n`);
}
