import { ChoiceConstraint } from "../generation/choices.js";
import type { LanguageModel } from "../generation/language-model.js";
import { ReplyText } from "../generation/reply-text.js";
import type { Reply } from "../generation/request.js";
import type { RandomStream } from "../tensor/random.js";
import type { ReplySettings } from "./settings.js";

/** A reply as it was sampled, and its text. */
export interface SampledReply extends Omit<Reply, "plainLogProbs"> {
  readonly text: string;
  /** The tokens among which each was drawn; undefined for a free reply. */
  readonly allowed: readonly Int32Array[] | undefined;
}

export interface ReplyWish {
  readonly prompt: readonly number[];
  /** The reply is one of these. */
  readonly choices?: readonly string[];
  readonly random: RandomStream;
  /** Ends the reply where it stands. */
  readonly signal?: AbortSignal;
}

/** Greedy replies and choice lists that are kept. */
const KEPT = 8192;

/**
 * Draws replies for many episodes at once: wishes made in the same turn of the event loop are one batch. Greedy replies to a
 * prompt that came before are not computed again while the parameters stand.
 */
export class Replier {
  private readonly endTokens: ReadonlySet<number>;
  private readonly constraints = new Map<string, ChoiceConstraint>();
  private readonly greedy = new Map<string, Promise<SampledReply>>();
  private version: number;

  constructor(
    readonly model: LanguageModel,
    readonly settings: ReplySettings,
  ) {
    this.endTokens = new Set(model.endTokenIds);
    this.version = model.causalLM.version;
  }

  /** The most tokens that a reply can have. */
  longest(choices: readonly string[] | undefined, prompt: readonly number[] = []): number {
    return choices === undefined ? this.settings.maxNewTokens : this.constraint(choices, prompt).longest;
  }

  /** One reply. Throws INVALID_ARGUMENT for choices that tokenise alike, CONTEXT_OVERFLOW for a prompt without room. */
  async reply(wish: ReplyWish): Promise<SampledReply> {
    if (this.settings.sampling.temperature > 0) return this.draw(wish);
    if (this.version !== this.model.causalLM.version || this.greedy.size >= KEPT) this.greedy.clear();
    this.version = this.model.causalLM.version;
    const key = `${wish.prompt.join()};${wish.choices?.join("\u0000") ?? ""}`;
    let reply = this.greedy.get(key);
    if (reply === undefined) this.greedy.set(key, (reply = this.draw(wish)));
    return reply;
  }

  private async draw({ prompt, choices, random, signal }: ReplyWish): Promise<SampledReply> {
    const { sampling, maxNewTokens, stop } = this.settings;
    const constraint = choices === undefined ? undefined : this.constraint(choices, prompt);
    const text = new ReplyText(this.model.tokenizer, {
      stop,
      stopTokens: this.endTokens,
      continuedFrom: prompt.at(-1),
    });
    const sampler = await this.model.sampler();
    const { plainLogProbs: _, ...reply } = await sampler.reply({
      prompt,
      settings: sampling,
      maxNewTokens: constraint?.longest ?? maxNewTokens,
      random: () => random.random(),
      stopTokens: constraint === undefined ? this.endTokens : NONE,
      stopWhen: () => text.stopped,
      constraint,
      onToken: (token) => void text.push(token),
      signal,
    });
    text.end();
    const { tokens } = reply;
    const allowed = constraint && tokens.map((_token, i) => constraint.allowed(tokens.slice(0, i)));
    return { ...reply, text: text.text, allowed };
  }

  private constraint(choices: readonly string[], prompt: readonly number[]): ChoiceConstraint {
    const previousToken = prompt.at(-1);
    const key = `${previousToken};${choices.join("\u0000")}`;
    let constraint = this.constraints.get(key);
    if (constraint === undefined) {
      const endToken = this.model.tokenizer.eosTokenId ?? this.model.endTokenIds.at(0);
      constraint = ChoiceConstraint.ofTexts(this.model.tokenizer, choices, { previousToken, endToken });
      if (this.constraints.size >= KEPT) this.constraints.clear();
      this.constraints.set(key, constraint);
    }
    return constraint;
  }
}

const NONE: ReadonlySet<number> = new Set();
