import type { LanguageModel } from "../generation/language-model.js";
import { ReplyText } from "../generation/reply-text.js";
import type { FinishReason, Reply } from "../generation/request.js";
import type { RandomStream } from "../tensor/random.js";
import { formKey, holdReply, type HeldReply, type ReplyForm } from "./reply-form.js";
import { ReplyMemory, type ReplyDraft } from "./reply-memory.js";
import type { ReplySettings } from "./settings.js";
import type { ScoredActions } from "./turn.js";

/** A reply as it was sampled, and its text. */
export interface SampledReply extends Omit<Reply, "plainLogProbs" | "values"> {
  readonly text: string;
  /** Of the state before each token, NaN where it is not known; undefined for an action that was drawn by its score. */
  readonly values?: readonly number[];
  /** The tokens among which each was drawn; undefined for a free reply. */
  readonly allowed: readonly Int32Array[] | undefined;
  /** For an action that was drawn by its score. */
  readonly scored?: ScoredActions;
}

export interface ReplyWish {
  readonly prompt: readonly number[];
  /** What the reply is held to. */
  readonly form?: ReplyForm;
  readonly random: RandomStream;
  /** Ends the reply where it stands. */
  readonly signal?: AbortSignal;
}

/** Greedy replies and choice lists that are kept. */
const KEPT = 8192;

/** Patterns that are kept; a compiled one may be large. */
const KEPT_PATTERNS = 16;

/** From here on a distribution is too large to keep many. */
const LARGE_VOCABULARY = 4096;

/**
 * Draws replies for many episodes at once: wishes made in the same turn of the event loop are one batch. What was found out about
 * a prompt that comes again is not computed again while the parameters stand.
 */
export class Replier {
  private readonly endTokens: ReadonlySet<number>;
  private readonly choices = new Map<string, HeldReply>();
  private readonly patterns = new Map<string, HeldReply>();
  private readonly greedy = new Map<string, Promise<SampledReply>>();
  private readonly memory = new ReplyMemory();
  /** Sums of the log-probabilities of the choices' tokens, by prompt and choices. */
  private readonly scores = new Map<string, Promise<readonly number[]>>();
  private version: number;

  constructor(
    readonly model: LanguageModel,
    readonly settings: ReplySettings,
  ) {
    this.endTokens = new Set(settings.ignoreEos ? [] : model.endTokenIds);
    this.version = model.causalLM.version;
  }

  /** The most tokens that a reply can have. Throws what `reply` throws for the form. */
  longest(form: ReplyForm | undefined, prompt: readonly number[] = []): number {
    return form === undefined ? this.settings.maxNewTokens : this.hold(form, prompt).longest;
  }

  /**
   * The tokens that a reply of this text would be sampled as, with the token or the string that ends it; undefined for a text that
   * is not in the form.
   */
  encode(text: string, { prompt, form }: Pick<ReplyWish, "prompt" | "form">): readonly number[] | undefined {
    if (form !== undefined) return this.hold(form, prompt).encode(text);
    const { tokenizer } = this.model;
    const end = this.turnEnd();
    const [stop = ""] = end === undefined ? this.settings.stop : [];
    return [...tokenizer.encodeContinuation(text + stop, prompt.at(-1)), ...(end === undefined ? [] : [end])];
  }

  /**
   * One reply. Throws INVALID_ARGUMENT for choices that tokenise alike and for a pattern that cannot be met,
   * CONTEXT_OVERFLOW for a prompt without room.
   */
  async reply(wish: ReplyWish): Promise<SampledReply> {
    if (this.version !== this.model.causalLM.version) this.forget();
    const { form } = wish;
    if (this.settings.scoring !== undefined && form !== undefined && "choices" in form)
      return this.drawByScore({ ...wish, choices: form.choices });
    if (this.settings.sampling.temperature > 0) return this.draw(wish);
    const key = keyOf(wish);
    return this.greedy.get(key) ?? this.drawGreedy(key, wish);
  }

  /** A reply that is kept, unless it is not whole. */
  private async drawGreedy(key: string, wish: ReplyWish): Promise<SampledReply> {
    if (this.greedy.size >= KEPT) this.greedy.clear();
    const drawn = this.draw(wish);
    this.greedy.set(key, drawn);
    let isWhole = false;
    try {
      const reply = await drawn;
      isWhole = reply.finishReason !== "aborted";
      return reply;
    } finally {
      if (!isWhole) this.greedy.delete(key);
    }
  }

  /** The end token that the chat template puts behind a reply, undefined where a string ends replies. */
  private turnEnd(): number | undefined {
    const { tokenizer } = this.model;
    if (this.settings.ignoreEos || tokenizer.chatTemplates.size === 0) return undefined;
    const { ids, assistantSpans } = tokenizer.encodeChat([
      { role: "user", content: "?" },
      { role: "assistant", content: "!" },
    ]);
    const start = assistantSpans.at(0)?.[0] ?? ids.length;
    return ids.slice(start).find((id) => this.endTokens.has(id)) ?? tokenizer.eosTokenId;
  }

  private forget(): void {
    this.greedy.clear();
    this.scores.clear();
    this.memory.clear();
    this.version = this.model.causalLM.version;
  }

  private async draw(wish: ReplyWish): Promise<SampledReply> {
    const { prompt, form, random, signal } = wish;
    const { sampling, maxNewTokens, stop } = this.settings;
    const constraint = form === undefined ? undefined : this.hold(form, prompt);
    const longest = constraint?.longest ?? maxNewTokens;
    const stopTokens = constraint === undefined ? this.endTokens : NONE;
    const text = new ReplyText(this.model.tokenizer, {
      // A pattern's reply ends where the pattern lets it.
      stop: form === undefined || "choices" in form ? stop : [],
      stopTokens: this.endTokens,
      continuedFrom: prompt.at(-1),
    });
    const draft: ReplyDraft & { finishReason: FinishReason | undefined } = {
      tokens: [],
      logProbs: [],
      values: [],
      finishReason: undefined,
    };
    let read = 0;
    /** Why the reply is over, undefined while it is not. */
    const finishReason = (): FinishReason | undefined => {
      for (; read < draft.tokens.length; read++) text.push(draft.tokens[read]);
      const last = draft.tokens.at(-1);
      if (last === undefined) return undefined;
      if (stopTokens.has(last) || constraint?.allowed(draft.tokens).length === 0) return "stop";
      if (text.stopped) return "stop_string";
      return draft.tokens.length >= longest ? "length" : undefined;
    };
    const keeps = this.isRemembered(form);
    const key = keeps ? keyOf(wish) : "";
    const compute = async () => {
      const known = [...draft.tokens];
      const sampler = await this.model.sampler();
      const reply = await sampler.reply({
        prompt: [...prompt, ...known],
        settings: sampling,
        maxNewTokens: longest - known.length,
        random: () => random.random(),
        stopTokens,
        stopWhen: () => text.stopped,
        constraint: constraint && { allowed: (tokens) => constraint.allowed([...known, ...tokens]) },
        skipsForced: true,
        onDistribution: keeps
          ? (distribution, value) => this.memory.learn(key, draft.tokens, distribution, value)
          : undefined,
        onToken: (token) => {
          draft.tokens.push(token);
          finishReason();
        },
        signal,
      });
      draft.logProbs.push(...reply.logProbs);
      draft.values.push(...reply.values);
      draft.finishReason = reply.finishReason;
    };
    if (keeps) {
      const isOver = () => finishReason() !== undefined;
      await this.memory.complete(key, draft, { random: () => random.random(), isOver, compute });
    } else {
      await compute();
    }
    text.end();
    const { tokens, logProbs, values } = draft;
    return {
      tokens,
      logProbs,
      values,
      finishReason: draft.finishReason ?? finishReason()!,
      text: text.text,
      allowed: constraint && tokens.map((_token, i) => constraint.allowed(tokens.slice(0, i))),
    };
  }

  /** Draws one of the choices by their scores; at temperature 0 the best. */
  private async drawByScore(wish: ReplyWish & { readonly choices: readonly string[] }): Promise<SampledReply> {
    const { prompt, choices, random } = wish;
    const { temperature } = this.settings.sampling;
    const candidates = choices.map((choice) => this.model.tokenizer.encodeContinuation(choice, prompt.at(-1)));
    const key = `${prompt.join()};${choices.join("\u0000")}`;
    let sums = this.scores.get(key);
    if (sums === undefined) {
      if (this.scores.size >= KEPT) this.scores.clear();
      this.scores.set(key, (sums = this.scoreAll(prompt, candidates)));
    }
    const lengths = choices.map((choice, i) => this.scoringLength(choice, candidates[i]));
    const weights = lengths.map((length) => 1 / length / (temperature || 1));
    const scores = (await sums).map((sum, i) => sum * weights[i]);
    const largest = Math.max(...scores);
    const masses = scores.map((score) => Math.exp(score - largest));
    const total = masses.reduce((sum, mass) => sum + mass, 0);
    const chosen = temperature === 0 ? scores.indexOf(largest) : pick(masses, random.random() * total);
    return {
      tokens: candidates[chosen],
      logProbs: [scores[chosen] - largest - Math.log(total)],
      finishReason: "stop",
      text: choices[chosen],
      allowed: undefined,
      scored: { candidates, weights, chosen },
    };
  }

  private async scoreAll(prompt: readonly number[], candidates: readonly (readonly number[])[]): Promise<number[]> {
    const sampler = await this.model.sampler();
    const all = await Promise.all(candidates.map((candidate) => sampler.score(prompt, candidate)));
    return all.map((logProbs) => logProbs.reduce((sum, logProb) => sum + logProb, 0));
  }

  private scoringLength(choice: string, tokens: readonly number[]): number {
    if (this.settings.scoring === "token") return tokens.length;
    return this.settings.scoring === "word" ? Math.max(1, choice.trim().split(/\s+/).length) : 1;
  }

  /** Whether distributions are kept: not greedy replies', not large ones. */
  private isRemembered(form: ReplyForm | undefined): boolean {
    const { sampling } = this.settings;
    if (sampling.temperature === 0) return false;
    const isSmall = form !== undefined && "choices" in form;
    return isSmall || this.model.causalLM.config.vocabSize <= LARGE_VOCABULARY;
  }

  private hold(form: ReplyForm, prompt: readonly number[]): HeldReply {
    const previousToken = prompt.at(-1);
    const key = `${previousToken};${formKey(form)}`;
    const [kept, most] = "choices" in form ? [this.choices, KEPT] : [this.patterns, KEPT_PATTERNS];
    let held = kept.get(key);
    if (held === undefined) {
      held = holdReply(this.model, form, { previousToken, maxNewTokens: this.settings.maxNewTokens });
      if (kept.size >= most) kept.clear();
      kept.set(key, held);
    }
    return held;
  }
}

/** Equal for wishes whose replies are drawn from the same distribution. */
function keyOf({ prompt, form }: ReplyWish): string {
  return `${prompt.join()};${form === undefined ? "" : formKey(form)}`;
}

const NONE: ReadonlySet<number> = new Set();

/** Where the running sum of masses passes a number. */
function pick(masses: readonly number[], at: number): number {
  let remaining = at;
  const index = masses.findIndex((mass) => (remaining -= mass) < 0);
  return index === -1 ? masses.findLastIndex((mass) => mass > 0) : index;
}
