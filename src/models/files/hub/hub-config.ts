import { fs, system } from "#platform";
import { LlamaGymError } from "../../../core/errors.js";

/** Environment variables. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Hub settings, read from the same environment variables as huggingface_hub. */
export interface HubConfig {
  /** Base URL without a trailing slash: HF_ENDPOINT or huggingface.co. */
  readonly endpoint: string;
  /** Cache folder: HF_HUB_CACHE, or hub/ in HF_HOME. */
  readonly cacheDir: string;
  /** Access token: HF_TOKEN, or the one stored by `hf auth login`. */
  readonly token: string | undefined;
  /** Whether network access is disabled: HF_HUB_OFFLINE. */
  readonly offline: boolean;
  /** Response timeout in milliseconds: HF_HUB_ETAG_TIMEOUT in seconds. */
  readonly responseTimeoutMs: number;
  /** Stall timeout of downloads in milliseconds: HF_HUB_DOWNLOAD_TIMEOUT in seconds. */
  readonly stallTimeoutMs: number;
  /** First retry delay in milliseconds; doubles each time. */
  readonly retryDelayMs: number;
}

/** Options that override the environment. */
export interface HubOptions {
  /** Cache folder. */
  readonly cacheDir?: string;
  /** Access token; false for none. */
  readonly token?: string | false;
}

const DEFAULT_ENDPOINT = "https://huggingface.co";
const DEFAULT_TIMEOUT_SECONDS = 10;

function isTrue(value: string | undefined): boolean {
  return ["1", "true", "yes", "on"].includes((value ?? "").toLowerCase());
}

function expandHome(path: string): string {
  return path === "~" || path.startsWith("~/") ? fs.join(system.homeFolder, path.slice(1)) : path;
}

/** Returns the first non-empty variable. */
function firstSet(environment: Environment, ...names: readonly string[]): string | undefined {
  return names.map((name) => environment[name]).find((value) => value !== undefined && value !== "");
}

function parseTimeoutMs(value: string | undefined): number {
  const seconds = Number(value);
  return 1000 * (seconds > 0 ? seconds : DEFAULT_TIMEOUT_SECONDS);
}

/**
 * Resolves the hub settings from options, environment and the stored token. @throws
 * INVALID_ARGUMENT for an invalid HF_ENDPOINT, HUB_UNAUTHORIZED for a malformed token.
 */
export async function resolveHubConfig(
  options: HubOptions = {},
  environment: Environment = system.env,
): Promise<HubConfig> {
  const cacheHome = firstSet(environment, "XDG_CACHE_HOME") ?? fs.join(system.homeFolder, ".cache");
  const home = expandHome(firstSet(environment, "HF_HOME") ?? fs.join(cacheHome, "huggingface"));
  const cacheDir =
    options.cacheDir ?? firstSet(environment, "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE") ?? fs.join(home, "hub");
  return {
    endpoint: readEndpoint(environment),
    cacheDir: expandHome(cacheDir),
    token: await readToken(options, environment, home),
    offline: isTrue(environment.HF_HUB_OFFLINE) || isTrue(environment.TRANSFORMERS_OFFLINE),
    responseTimeoutMs: parseTimeoutMs(environment.HF_HUB_ETAG_TIMEOUT),
    stallTimeoutMs: parseTimeoutMs(environment.HF_HUB_DOWNLOAD_TIMEOUT),
    retryDelayMs: 500,
  };
}

function readEndpoint(environment: Environment): string {
  const endpoint = (firstSet(environment, "HF_ENDPOINT") ?? DEFAULT_ENDPOINT).replace(/\/+$/u, "");
  if (URL.canParse(endpoint) && /^https?:/u.test(endpoint)) return endpoint;
  throw new LlamaGymError(
    "INVALID_ARGUMENT",
    `HF_ENDPOINT must be a URL such as ${DEFAULT_ENDPOINT}, got "${endpoint}".`,
  );
}

async function readToken(options: HubOptions, environment: Environment, home: string): Promise<string | undefined> {
  if (options.token === false) return undefined;
  if (options.token !== undefined) return validateToken(options.token);
  if (isTrue(environment.HF_HUB_DISABLE_IMPLICIT_TOKEN)) return undefined;
  const envToken = firstSet(environment, "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN");
  if (envToken !== undefined) return validateToken(envToken);
  const path = expandHome(firstSet(environment, "HF_TOKEN_PATH") ?? fs.join(home, "token"));
  return validateToken(await fs.readText(path).catch(() => ""));
}

function validateToken(token: string): string | undefined {
  const trimmed = token.trim();
  if (/^[\x21-\x7e]*$/u.test(trimmed)) return trimmed === "" ? undefined : trimmed;
  throw new LlamaGymError(
    "HUB_UNAUTHORIZED",
    "The access token (HF_TOKEN or the stored one) contains invalid characters. Set a valid HF_TOKEN.",
  );
}
