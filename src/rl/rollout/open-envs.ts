import { errorMessage, LlamaGymError } from "../../core/errors.js";
import type { MaybePromise } from "../../core/maybe-promise.js";
import type { Env } from "../../envs/index.js";
import { withTimeout } from "../../core/with-timeout.js";
import { describeTimeout, limitCall, type CallLimit } from "./call-limit.js";

/**
 * Limit of `close`: an environment that does not answer any more must not delay the end of a run
 * for long.
 */
const CLOSE_TIMEOUT_SECONDS = 10;

/**
 * Creates environments one after another; if one fails, those created before are closed.
 * @throws ENV_FAILED for a factory that returns no environment or does not return in time, and what
 * it throws.
 */
export async function openEnvs(createEnv: () => MaybePromise<Env>, count: number, settings: CallLimit): Promise<Env[]> {
  const envs: Env[] = [];
  try {
    for (let i = 0; i < count; i++) {
      const env = await limitCall(settings, createEnv, {
        subject: () => "The function that creates environments",
        code: "ENV_FAILED",
      });
      checkEnvMethods(env);
      envs.push(env);
    }
  } catch (error) {
    await closeEnvs(envs, () => {});
    throw error;
  }
  return envs;
}

/**
 * Closes environments and empties the list. Failures are warnings, because the work with them is
 * done.
 */
export async function closeEnvs(envs: Env[], onWarning: (message: string) => void): Promise<void> {
  const closing = envs.splice(0).map(async (env) => {
    const close = async () => env.close();
    const describe = () => describeTimeout(`\`close\` of ${env.toString()}`, CLOSE_TIMEOUT_SECONDS);
    return withTimeout(close, CLOSE_TIMEOUT_SECONDS, () => new LlamaGymError("ENV_FAILED", describe()));
  });
  const failures = (await Promise.allSettled(closing)).filter((result) => result.status === "rejected");
  for (const cause of new Set(failures.map(({ reason }) => errorMessage(reason))))
    onWarning(`An environment was not closed: ${cause}`);
}

function checkEnvMethods(env: unknown): void {
  const { reset, step } = (env ?? {}) as Partial<Env>;
  if (typeof reset === "function" && typeof step === "function") return;
  throw new LlamaGymError(
    "ENV_FAILED",
    `The function that creates environments returned ${env === null ? "null" : typeof env}; it must return an Env.`,
  );
}
