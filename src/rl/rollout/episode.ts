import { invalidArgument, LlamaGymError } from "../../core/errors.js";
import type { Info } from "../../envs/index.js";
import type { RandomStream } from "../../core/random/random-stream.js";
import { PromptBuilder, type PromptBuilderState } from "./prompt-builder.js";
import { toExtraction, type Extraction } from "./extraction.js";
import type { PromptRenderer } from "./prompt-renderer.js";
import type { TokenDistribution } from "../../engine/runtime/index.js";
import type { CompletionSampler, TurnCompletion, TurnRequest } from "./completion-sampler.js";
import type { OutputConstraint } from "../../generation/index.js";
import type { AgentInterface } from "./agent-interface.js";
import { awaitAgent, constraintFor, callAgent } from "./call-agent.js";
import type { RolloutSettings } from "./rollout-settings.js";
import type { Turn } from "./trajectory.js";

/** An observation that awaits a completion. */
interface PendingObservation<Observation> {
  readonly observation: Observation;
  readonly info: Info;
  readonly constraint: OutputConstraint | undefined;
  /** As the prompt contains it. */
  readonly text: string;
}

/** A completion and the action extracted from it. */
export interface EpisodeStep<Action> {
  readonly action: Action;
  readonly turn: Turn;
}

/** Options of `Episode.act`. */
export interface ActOptions {
  readonly signal?: AbortSignal;
  /** Names the environment in messages. */
  readonly location?: string;
  /** Adds a recording to the turn. */
  readonly record?: boolean;
  /** Text of the completion, written by hand; by default it is sampled. */
  readonly completion?: string | undefined;
  /** Returns no action for a completion without one, instead of the fallback's. Default false. */
  readonly allowsNoAction?: boolean;
}

/**
 * An agent in one episode: builds prompts from observations, samples completions and extracts
 * actions.
 */
export class Episode<Observation = unknown, Action = unknown> {
  private readonly promptBuilder: PromptBuilder;
  private pending: PendingObservation<Observation> | undefined;

  constructor(
    private readonly agent: AgentInterface<Observation, Action>,
    private readonly sampler: CompletionSampler,
    renderer: PromptRenderer,
    private readonly settings: RolloutSettings<Observation, Action>,
    private readonly random: RandomStream,
    /** The seat in a game of several players. */
    seat?: number,
  ) {
    const isSingleTurn = agent.formatPrompt !== undefined;
    const systemPrompt = isSingleTurn
      ? undefined
      : callAgent("getSystemPrompt", () => agent.getSystemPrompt(seat), "text", { isOptional: true });
    const { prompt } = settings;
    this.promptBuilder = new PromptBuilder(
      renderer,
      systemPrompt,
      isSingleTurn ? { ...prompt, historyTurns: 0 } : prompt,
    );
  }

  /** The last observation as the prompt contains it. */
  get observationText(): string | undefined {
    return this.pending?.text;
  }

  /** Returns the text of an observation in the prompt. */
  formatObservation(observation: Observation, info: Info): string {
    const { agent } = this;
    return agent.formatPrompt === undefined
      ? callAgent("formatObservation", () => agent.formatObservation(observation, info), "text")
      : callAgent("formatPrompt", () => agent.formatPrompt!(observation, info), "text");
  }

  /** Adds an observation to the prompt, as its own text by default. */
  observe(
    observation: Observation,
    info: Info,
    observationText: string = this.formatObservation(observation, info),
  ): void {
    const { agent } = this;
    this.pending = { observation, info, constraint: constraintFor(agent, observation, info), text: observationText };
    this.promptBuilder.addObservation(observationText);
  }

  /** Returns the tokens of the prompt for the last observation. */
  buildPrompt(): readonly number[] {
    return this.promptBuilder.build((tokens) => this.sampler.maxLength(this.pending?.constraint, tokens));
  }

  /** Returns the prompt of a final state, for its value; turns that do not fit are dropped. */
  bootstrapPrompt(): readonly number[] {
    return this.promptBuilder.build(() => 0, "drop-oldest");
  }

  /** Number of turns dropped from prompts because the context was full. */
  get droppedTurns(): number {
    return this.promptBuilder.droppedTurns;
  }

  /**
   * Samples a completion for the last observation and extracts the action.
   * @throws AGENT_NO_ACTION for a completion without an action, unless there is a fallback;
   * AGENT_FAILED if the agent's code throws or does not return in time; the signal's reason if it
   * is aborted.
   */
  async act({
    signal,
    location = "",
    record = false,
    completion: given,
    allowsNoAction = false,
  }: ActOptions = {}): Promise<EpisodeStep<Action>> {
    const { pending, settings } = this;
    if (pending === undefined)
      throw new LlamaGymError("INVALID_STATE", "The agent has no observation to act on; call `observe` first.");
    const { constraint, observation, info } = pending;
    const hint = callAgent("getTeacherHint", () => this.agent.getTeacherHint?.(observation, info), "text", {
      isOptional: true,
    });
    const prompt = this.buildPrompt();
    const maxAttempts = given === undefined ? 1 + settings.invalidAction.retries : 1;
    let attempts = 0;
    let completion: TurnCompletion;
    let extraction: Extraction<Action>;
    let distributions: (TokenDistribution | undefined)[];
    do {
      const current: (TokenDistribution | undefined)[] = (distributions = []);
      const onDistribution: TurnRequest["onDistribution"] = record
        ? (distribution, _value, index) => (current[index] = distribution)
        : undefined;
      completion =
        given === undefined
          ? await this.sampler.sample({ prompt, constraint, random: this.random, onDistribution, signal })
          : await this.sampler.score(prompt, given);
      signal?.throwIfAborted();
      attempts++;
      extraction = await this.parseAction(completion.text, pending, location);
    } while (extraction.kind === "failure" && attempts < maxAttempts);
    const { tokens, logProbs, values, allowedTokens, hasKeptTokens, actionCandidates, text, finishReason } = completion;
    const isValid = extraction.kind !== "failure";
    const action =
      extraction.kind !== "failure"
        ? extraction.value
        : allowsNoAction
          ? (undefined as Action)
          : await this.chooseFallback(pending, { text, reason: extraction.reason, location });
    this.promptBuilder.addCompletion(tokens);
    this.pending = undefined;
    const penalty = isValid ? 0 : settings.invalidAction.penalty;
    const turn: Turn = {
      prompt,
      tokens,
      logProbs,
      ...(values === undefined ? {} : { values }),
      allowedTokens,
      ...(hasKeptTokens === undefined ? {} : { hasKeptTokens }),
      ...(hint === undefined || hint === "" ? {} : { teacherHint: hint }),
      ...(actionCandidates === undefined ? {} : { actionCandidates }),
      text,
      finishReason,
      isValid,
      extraction: extraction.kind,
      attempts,
      penalty,
      ...(record
        ? { recording: { observation: pending.text, render: undefined, action: undefined, distributions } }
        : {}),
      reward: 0 - penalty,
    };
    return { action, turn };
  }

  /**
   * Computes the probabilities with which the choices for the last observation are sampled.
   * @throws INVALID_ARGUMENT for completions that are not constrained to choices.
   */
  async actionProbabilities(): Promise<ReadonlyMap<string, number>> {
    const { pending } = this;
    if (pending?.constraint === undefined || !("choices" in pending.constraint))
      throw invalidArgument(
        'Probabilities of actions need completions that are constrained to choices: set actionMode to "scored" or "choices".',
      );
    const { choices } = pending.constraint;
    const probabilities = await this.sampler.choiceProbabilities(this.buildPrompt(), choices);
    return new Map(choices.map((choice, i) => [choice, probabilities[i]]));
  }

  getState(): PromptBuilderState {
    return this.promptBuilder.getState();
  }

  /** Restores a saved state, with the last observation. */
  setState(state: PromptBuilderState, observation: Observation, info: Info): void {
    this.observe(observation, info);
    this.promptBuilder.setState(state);
  }

  private async parseAction(
    text: string,
    { observation, info }: PendingObservation<Observation>,
    location: string,
  ): Promise<Extraction<Action>> {
    const extract = () => this.agent.extractAction(text, observation, info);
    const context = ` for the completion ${JSON.stringify(text)}`;
    return toExtraction(await awaitAgent("extractAction", extract, this.settings, { context, location }));
  }

  private async chooseFallback(
    { observation, info }: PendingObservation<Observation>,
    { text, reason, location }: { readonly text: string; readonly reason: string; readonly location: string },
  ): Promise<Action> {
    const { fallback } = this.settings.invalidAction;
    if (fallback !== "error") {
      const choose = () => fallback(observation, this.random, info);
      return awaitAgent("invalidAction.fallback", choose, this.settings, { location });
    }
    throw new LlamaGymError(
      "AGENT_NO_ACTION",
      `extractAction found no action in the completion ${JSON.stringify(text)}.${reason && ` ${reason}`} Return an action for every ` +
        "completion, or set the option invalidAction: { retries, fallback, penalty }.",
    );
  }
}
