import { LlamaGymError } from "../../../core/errors.js";

const WANDB_MODES = ["online", "offline", "disabled"] as const;
export type WandbMode = (typeof WANDB_MODES)[number];

/** What a user may say about W&B; what is left out is read from W&B's own environment variables. */
export interface WandbOptions {
  /** WANDB_PROJECT. Without a project nothing is written or sent. */
  readonly project?: string;
  /** WANDB_MODE. Default: online. */
  readonly mode?: WandbMode;
  /** WANDB_ENTITY: a user or a team. Default: the key's own. */
  readonly entity?: string;
  /** WANDB_NAME: what the run is called. Default: W&B invents a name. */
  readonly name?: string;
  /** WANDB_RUN_GROUP: runs that belong together, such as the seeds of one setting. */
  readonly group?: string;
  /** WANDB_TAGS, separated by commas. */
  readonly tags?: readonly string[];
}

/** A run that W&B takes part in. */
export interface WandbConfig {
  readonly project: string;
  readonly mode: Exclude<WandbMode, "disabled">;
  readonly entity: string;
  readonly name: string;
  readonly group: string;
  readonly tags: readonly string[];
  /** WANDB_API_KEY; needed online only. */
  readonly apiKey: string | undefined;
  /** WANDB_BASE_URL, without a slash at the end. */
  readonly baseUrl: string;
}

const DEFAULT_BASE_URL = "https://api.wandb.ai";

/**
 * What of W&B a run uses: undefined where no project is named, or the mode is "disabled". Options go before variables.
 * Throws INVALID_ARGUMENT for a mode, a project name or an address that cannot be.
 */
export function resolveWandbConfig(
  options: WandbOptions = {},
  env: Readonly<Record<string, string | undefined>> = process.env,
): WandbConfig | undefined {
  const mode = parseMode(options.mode ?? env.WANDB_MODE ?? "online");
  const project = options.project ?? env.WANDB_PROJECT ?? "";
  if (project === "" && options.mode !== undefined && mode !== "disabled") {
    throw new LlamaGymError(
      "INVALID_ARGUMENT",
      `W&B is to run ${mode}, but has no project. Name one, in the options or in WANDB_PROJECT.`,
    );
  }
  if (project === "" || mode === "disabled") return undefined;
  if (project.length > 128 || /[/\\#?%:]/.test(project)) {
    throw new LlamaGymError(
      "INVALID_ARGUMENT",
      `"${project}" cannot name a W&B project: at most 128 characters, none of / \\ # ? % :. An entity has its own option.`,
    );
  }
  return {
    project,
    mode,
    entity: options.entity ?? env.WANDB_ENTITY ?? "",
    name: options.name ?? env.WANDB_NAME ?? "",
    group: options.group ?? env.WANDB_RUN_GROUP ?? "",
    tags: options.tags ?? env.WANDB_TAGS?.split(",").filter((tag) => tag !== "") ?? [],
    apiKey: env.WANDB_API_KEY === "" ? undefined : env.WANDB_API_KEY,
    baseUrl: parseBaseUrl(env.WANDB_BASE_URL),
  };
}

/** W&B's own client knows two more words for the same. */
function parseMode(value: string): WandbMode {
  const mode = value === "dryrun" ? "offline" : value === "run" ? "online" : value;
  const known = WANDB_MODES.find((name) => name === mode);
  if (known !== undefined) return known;
  throw new LlamaGymError(
    "INVALID_ARGUMENT",
    `The W&B mode is "${value}"; it must be one of ${WANDB_MODES.join(", ")}.`,
  );
}

function parseBaseUrl(url: string | undefined): string {
  if (url === undefined || url === "") return DEFAULT_BASE_URL;
  if (/^https?:\/\/[^/]/.test(url) && URL.canParse(url)) return url.replace(/\/+$/, "");
  throw new LlamaGymError(
    "INVALID_ARGUMENT",
    `WANDB_BASE_URL is "${url}"; it must be the address of a W&B server, such as ${DEFAULT_BASE_URL}.`,
  );
}
