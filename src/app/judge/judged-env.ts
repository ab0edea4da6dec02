import { type Env, type ResetOptions, type ResetResult, type StepResult, Wrapper } from "../../envs/index.js";
import type { JsonValue } from "../../core/json.js";
import type { EpisodeJudge } from "./episode-judge.js";

type Message = { readonly role: string; readonly content: string };

/** Adds a judge's scores to the rewards of an environment; returns it unchanged without a judge. */
export function withJudge(env: Env, judge: EpisodeJudge | undefined): Env {
  return judge === undefined ? env : new JudgedEnv(env, judge);
}

/**
 * An environment with a text interface whose last reward of an episode includes a judge's score of
 * the conversation.
 */
export class JudgedEnv extends Wrapper {
  protected override wrapperState: JsonValue = [];

  constructor(
    env: Env,
    private readonly judge: EpisodeJudge,
  ) {
    super(env);
  }

  override async reset(options?: ResetOptions): Promise<ResetResult<unknown>> {
    const result = await this.env.reset(options);
    const text = this.text!;
    this.messages = [
      { role: "system", content: text.systemPrompt },
      { role: "user", content: text.formatObservation(result.observation, result.info) },
    ];
    return result;
  }

  override async step(action: unknown): Promise<StepResult<unknown>> {
    const result = await this.env.step(action);
    const text = this.text!;
    this.messages = [
      ...this.messages,
      { role: "assistant", content: text.formatAction(action) },
      { role: "user", content: text.formatObservation(result.observation, result.info) },
    ];
    if (!result.terminated && !result.truncated) return result;
    return { ...result, reward: result.reward + (await this.judge.score(this.messages)) };
  }

  private get messages(): readonly Message[] {
    return this.wrapperState as unknown as readonly Message[];
  }

  private set messages(messages: readonly Message[]) {
    this.wrapperState = messages;
  }
}
