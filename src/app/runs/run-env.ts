import { defineSettings, integer, selectSettings, type Settings } from "../../core/settings.js";
import { findSpec, FrameStackText, openEnv, type Env, type KnownReturns } from "../../envs/index.js";
import "../../text-world/index.js";

/** Settings of the environment of a run; those in `wrappers` add a wrapper. */
export const envSettings = defineSettings(
  {
    maxEpisodeSteps: integer({
      min: 1,
      common: true,
      description: "Maximum number of steps per episode. Default: the environment's limit.",
    }),
    frameStack: integer({
      min: 2,
      description: "Number of observations that a prompt shows: the current one and those before it. Default: one.",
    }),
  },
  { group: "Environment", scope: "env" },
);

type EnvSettings = Partial<Settings<typeof envSettings>>;

/**
 * The wrappers of a run's environment by their settings, in the order in which they are applied.
 */
const wrappers: { readonly [Name in keyof EnvSettings]?: (env: Env, value: NonNullable<EnvSettings[Name]>) => Env } = {
  frameStack: (env, stackSize) => new FrameStackText(env, { stackSize }),
};

/** An environment as it is stored in the config of a run. */
export interface EnvConfig extends EnvSettings {
  readonly env: string;
  readonly envOptions?: Readonly<Record<string, unknown>>;
}

/** The environment of a run: its id, its own options, its step limit and its wrappers. */
export class RunEnv {
  readonly id: string;
  readonly options: Readonly<Record<string, unknown>>;
  readonly settings: EnvSettings;

  /** Takes the environment out of a config, whose other settings are ignored. */
  constructor(config: EnvConfig) {
    ({ env: this.id, envOptions: this.options = {} } = config);
    this.settings = selectSettings(envSettings, config);
  }

  /** Whether it is the registered environment, without other options, another limit or wrappers. */
  get isAsRegistered(): boolean {
    return Object.keys(this.options).length === 0 && Object.keys(this.settings).length === 0;
  }

  /** The known mean returns; undefined for an environment that is not as registered. */
  get knownReturns(): KnownReturns | undefined {
    return this.isAsRegistered ? findSpec(this.id)?.knownReturns : undefined;
  }

  /** Opens an environment, to be closed when done. @throws as `openEnv` */
  async open(): Promise<Env> {
    const { maxEpisodeSteps } = this.settings;
    const limit = maxEpisodeSteps === undefined ? {} : { maxEpisodeSteps };
    const env = await openEnv(this.id, { ...this.options, ...limit });
    try {
      return this.wrap(env);
    } catch (error) {
      await env.close();
      throw error;
    }
  }

  /** Returns the part of a config that describes the environment. */
  toJson(): EnvConfig & Pick<Required<EnvConfig>, "envOptions"> {
    return { env: this.id, envOptions: { ...this.options }, ...this.settings };
  }

  private wrap(env: Env): Env {
    const names = Object.keys(wrappers) as (keyof EnvSettings)[];
    return names.reduce((inner, name) => {
      const value = this.settings[name];
      return value === undefined ? inner : wrappers[name]!(inner, value);
    }, env);
  }
}

/** Returns the environment of a run's config; undefined for a run without one. */
export function findRunEnv({ env, ...config }: Partial<EnvConfig>): RunEnv | undefined {
  return env === undefined ? undefined : new RunEnv({ ...config, env });
}
