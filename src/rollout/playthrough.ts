import { LlamaGymError } from "../errors.js";
import type { Info } from "../envs/info.js";
import type { RandomStream } from "../tensor/random.js";
import { Dialogue, type DialogueState } from "./dialogue.js";
import { asExtraction, type Extraction } from "./extraction.js";
import type { PromptWriter } from "./prompt-writer.js";
import type { Replier, SampledReply } from "./replier.js";
import type { ReplyForm } from "./reply-form.js";
import type { Role } from "./role.js";
import { failed, formOf, said } from "./said.js";
import type { PlaySettings } from "./settings.js";
import type { Turn } from "./turn.js";

/** What an agent sees before it replies. */
interface Situation<Observation> {
  readonly observation: Observation;
  readonly info: Info;
  readonly form: ReplyForm | undefined;
}

/** A reply that was taken for an action. */
export interface TakenTurn<Action> {
  readonly action: Action;
  readonly turn: Turn;
}

/** One episode from the agent's side: what it is shown, what it replies, and which action that means. */
export class Playthrough<Observation = unknown, Action = unknown> {
  private readonly dialogue: Dialogue;
  private situation: Situation<Observation> | undefined;

  /** The replier draws the replies; `random` decides them. */
  constructor(
    private readonly role: Role<Observation, Action>,
    private readonly replier: Replier,
    writer: PromptWriter,
    private readonly settings: PlaySettings<Observation, Action>,
    private readonly random: RandomStream,
  ) {
    const single = role.formatPrompt !== undefined;
    const systemPrompt = single
      ? undefined
      : said("getSystemPrompt", () => role.getSystemPrompt(), "text", { isOptional: true });
    const { dialogue } = settings;
    this.dialogue = new Dialogue(writer, systemPrompt, single ? { ...dialogue, historyTurns: 0 } : dialogue);
  }

  /** Shows the agent an observation. */
  observe(observation: Observation, info: Info): void {
    const { role } = this;
    const shown =
      role.formatPrompt === undefined
        ? said("formatObservation", () => role.formatObservation(observation, info), "text")
        : said("formatPrompt", () => role.formatPrompt!(observation, info), "text");
    this.situation = { observation, info, form: formOf(role, observation, info) };
    this.dialogue.show(shown);
  }

  /** The tokens of the prompt for what was last observed. */
  prompt(): readonly number[] {
    return this.dialogue.prompt((prompt) => this.replier.longest(this.situation?.form, prompt));
  }

  /** The prompt that ends in a state in which nothing is replied any more; what does not fit is left out. */
  finalPrompt(): readonly number[] {
    return this.dialogue.prompt(() => 0, "drop-oldest");
  }

  /** Turns that were left out of prompts because the context was full. */
  get forgottenTurns(): number {
    return this.dialogue.forgottenTurns;
  }

  /**
   * Draws the reply to what was last observed and reads the action out of it.
   * Throws AGENT_NO_ACTION for a reply without one where the settings say so, AGENT_FAILED when the agent's own code throws, and
   * the signal's reason when it comes before the reply is whole.
   */
  async reply(signal?: AbortSignal): Promise<TakenTurn<Action>> {
    const { situation, settings } = this;
    if (situation === undefined)
      throw new LlamaGymError("INVALID_STATE", "An agent replies to an observation; show one first.");
    const { form } = situation;
    const prompt = this.prompt();
    let attempts = 0;
    let reply: SampledReply;
    let found: Extraction<Action>;
    do {
      reply = await this.replier.reply({ prompt, form, random: this.random, signal });
      signal?.throwIfAborted();
      attempts++;
      found = await this.read(reply.text, situation);
    } while (found.kind === "failure" && attempts <= settings.invalidReply.retries);
    const { tokens, logProbs, values, allowed, scored, text, finishReason } = reply;
    const isValid = found.kind !== "failure";
    const action = found.kind === "failure" ? await this.fallback(situation, text, found.reason) : found.value;
    this.dialogue.accept(tokens);
    this.situation = undefined;
    const penalty = isValid ? 0 : settings.invalidReply.penalty;
    const turn: Turn = {
      prompt,
      tokens,
      logProbs,
      ...(values === undefined ? {} : { values }),
      allowed,
      ...(scored === undefined ? {} : { scored }),
      text,
      finishReason,
      isValid,
      extraction: found.kind,
      attempts,
      penalty,
      reward: 0 - penalty,
    };
    return { action, turn };
  }

  getState(): DialogueState {
    return this.dialogue.getState();
  }

  /** Goes on from a saved state, with the observation that was last shown. */
  setState(state: DialogueState, observation: Observation, info: Info): void {
    this.observe(observation, info);
    this.dialogue.setState(state);
  }

  private async read(text: string, { observation, info }: Situation<Observation>): Promise<Extraction<Action>> {
    try {
      return asExtraction(await this.role.extractAction(text, observation, info));
    } catch (error) {
      throw failed("extractAction", error, ` on the reply ${JSON.stringify(text)}`);
    }
  }

  private async fallback({ observation, info }: Situation<Observation>, text: string, reason: string): Promise<Action> {
    const { fallback } = this.settings.invalidReply;
    if (fallback !== "error") {
      try {
        return await fallback(observation, this.random, info);
      } catch (error) {
        throw failed("invalidReply.fallback", error);
      }
    }
    throw new LlamaGymError(
      "AGENT_NO_ACTION",
      `extractAction found no action in the reply ${JSON.stringify(text)}.${reason && ` ${reason}`} Let it always give one, or say what happens then ` +
        "by the option invalidReply: { retries, fallback, penalty }.",
    );
  }
}
