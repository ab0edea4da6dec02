import type { Env, ResetOptions, ResetResult, StepResult } from "../../envs/env.js";
import type { TextInterface } from "../../envs/text-interface.js";
import { PassThroughWrapper } from "../../envs/wrapper.js";
import type { JsonValue } from "../../core/json.js";
import type { EpisodeJudge } from "./episode-judge.js";

type Message = { readonly role: string; readonly content: string };

/** Adds a judge's score of the whole episode, in words, to its last reward. */
export class JudgedEnv extends PassThroughWrapper {
  protected override wrapperState: JsonValue = [];

  constructor(
    env: Env,
    private readonly judge: EpisodeJudge,
  ) {
    super(env);
  }

  override async reset(options?: ResetOptions): Promise<ResetResult<unknown>> {
    const result = await this.env.reset(options);
    const { systemPrompt, formatObservation } = this.requireText();
    this.messages = [
      { role: "system", content: systemPrompt },
      { role: "user", content: formatObservation(result.observation, result.info) },
    ];
    return result;
  }

  override async step(action: unknown): Promise<StepResult<unknown>> {
    const result = await this.env.step(action);
    const { formatAction, formatObservation } = this.requireText();
    this.messages = [
      ...this.messages,
      { role: "assistant", content: formatAction(action) },
      { role: "user", content: formatObservation(result.observation, result.info) },
    ];
    if (!result.terminated && !result.truncated) return result;
    return { ...result, reward: result.reward + (await this.judge.score(this.messages)) };
  }

  private get messages(): readonly Message[] {
    return this.wrapperState as unknown as readonly Message[];
  }

  private set messages(messages: readonly Message[]) {
    this.wrapperState = messages as unknown as JsonValue;
  }

  /** A run opens environments with a text interface only. */
  private requireText(): TextInterface<unknown, unknown> {
    return this.text!;
  }
}
