import { randomUUID } from "node:crypto";
import { LlamaGymError } from "../../../core/errors.js";
import { REWARD_RULE } from "../../reward-limit.js";
import { closeEnv, type Env, type ResetOptions, type StepResult } from "../../env.js";
import type { Info } from "../../info.js";
import { getChoices } from "../../text-interface.js";
import { type JsonObject, type JsonValue, asJsonObject } from "../../../core/json.js";
import { toJson } from "../space-schema.js";

/** One client's environment on a server; calls are serialized. */
export class OpenEnvSession {
  private episodeId: string | undefined;
  private stepCount = 0;
  private hasEnded = false;
  private lastResult: { readonly observation: unknown; readonly info: Info } | undefined;
  private queue: Promise<unknown> = Promise.resolve();

  constructor(private readonly env: Env) {}

  get state(): JsonObject {
    return { episode_id: this.episodeId ?? null, step_count: this.stepCount };
  }

  /**
   * `data` has OpenEnv's `seed` and `episode_id`; other fields are reset options of the
   * environment.
   */
  reset(data: JsonObject): Promise<JsonObject> {
    const { seed, episode_id, ...options } = data;
    return this.enqueue(async () => {
      const result = await this.env.reset({
        ...(seed === undefined || seed === null ? {} : { seed: seed as ResetOptions["seed"] }),
        ...(Object.keys(options).length === 0 ? {} : { options }),
      });
      this.episodeId = typeof episode_id === "string" ? episode_id : randomUUID();
      this.stepCount = 0;
      return this.createReply(result, { reward: null, terminated: false, truncated: false });
    });
  }

  /**
   * `data` is `{ action }`, encoded by the action space, or `{ text }`, a completion for the text
   * interface.
   */
  step(data: JsonObject): Promise<JsonObject> {
    return this.enqueue(async () => {
      if (this.hasEnded) throw new LlamaGymError("ENV_NOT_RESET", "The episode has ended. Reset the environment.");
      const result = await this.env.step(this.action(data));
      // JSON would carry null, which clients read as 0.
      if (!Number.isFinite(result.reward))
        throw new LlamaGymError(
          "ENV_FAILED",
          `${this.env.toString()} returned the reward ${String(result.reward)} from step; it must be ${REWARD_RULE}.`,
        );
      this.stepCount++;
      return this.createReply(result, result);
    });
  }

  async close(): Promise<void> {
    await closeEnv(this.env);
  }

  private enqueue<T>(task: () => Promise<T>): Promise<T> {
    const result = this.queue.then(task);
    this.queue = result.catch(() => {});
    return result;
  }

  private action({ action, text }: JsonObject): unknown {
    const { env, lastResult } = this;
    if (action !== undefined && action !== null) {
      try {
        return env.actionSpace.decode(action);
      } catch (error) {
        throw new LlamaGymError("ENV_ACTION_INVALID", `This is no action: ${(error as Error).message}`, {
          cause: error,
        });
      }
    }
    if (typeof text !== "string" || env.text === undefined) {
      const advice = env.text === undefined ? "{ action }" : "{ action } or { text }";
      throw new LlamaGymError(
        "ENV_ACTION_INVALID",
        `A step needs ${advice}; the action space is ${env.actionSpace.toString()}.`,
      );
    }
    const parsed = env.text.parseAction(text, lastResult?.observation, lastResult?.info);
    if (parsed !== undefined) return parsed;
    throw new LlamaGymError("ENV_ACTION_INVALID", `No action is named in ${JSON.stringify(text.slice(0, 200))}.`);
  }

  private createReply(
    { observation, info }: { readonly observation: unknown; readonly info: Info },
    {
      reward,
      terminated,
      truncated,
    }: Pick<StepResult<unknown>, "terminated" | "truncated"> & { reward: number | null },
  ): JsonObject {
    const { env } = this;
    this.lastResult = { observation, info };
    this.hasEnded = terminated || truncated;
    const choices = env.text && getChoices(env.text, observation, info);
    return {
      observation: {
        observation: env.observationSpace.encode(observation),
        ...(env.text && { text: env.text.formatObservation(observation, info) }),
        ...(choices && { choices: choices as JsonValue }),
        info: asJsonObject(toJson(info)) ?? {},
        terminated,
        truncated,
      },
      reward,
      done: this.hasEnded,
    };
  }
}
