import type { Env } from "../../envs/index.js";
import type { RunEnv } from "./run-env.js";

/**
 * Opens the environments of a run. The first one is opened to read its text interface and is handed
 * out first.
 */
export class EnvSupply {
  private first: Env | undefined;

  constructor(
    private readonly env: RunEnv,
    private readonly wrap: (env: Env) => Env = (env) => env,
  ) {}

  /**
   * Reads something of the first environment, which stays open. @throws what opening it and `read`
   * throw
   */
  async read<Result>(read: (env: Env, name: string) => Promise<Result>): Promise<Result> {
    this.first ??= await this.env.open();
    return read(this.first, this.env.id);
  }

  /** Returns an open environment. */
  readonly make = async (): Promise<Env> => {
    const env = this.first ?? (await this.env.open());
    this.first = undefined;
    return this.wrap(env);
  };

  /** Closes an environment that was not handed out. */
  async close(): Promise<void> {
    await this.first?.close();
    this.first = undefined;
  }
}
