import { readFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { LlamaGymError } from "../../../core/errors.js";

/** The environment variables, `process.env` or a test's own. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Where the hub is, where its files are kept and who asks; Python's huggingface_hub reads the same variables. */
export interface HubConfig {
  /** The hub's address, without a slash at its end: HF_ENDPOINT, or huggingface.co. */
  readonly endpoint: string;
  /** The folder of the cache: HF_HUB_CACHE, or hub/ in HF_HOME. */
  readonly cacheDir: string;
  /** The access token: HF_TOKEN, or what `hf auth login` stored. */
  readonly token: string | undefined;
  /** Whether the network must not be used: HF_HUB_OFFLINE. */
  readonly offline: boolean;
  /** How long an answer may take, in milliseconds: HF_HUB_ETAG_TIMEOUT in seconds. */
  readonly responseTimeoutMs: number;
  /** How long a download may stand still, in milliseconds: HF_HUB_DOWNLOAD_TIMEOUT in seconds. */
  readonly stallTimeoutMs: number;
  /** The first pause before something is tried again, in milliseconds; it doubles each time. */
  readonly retryDelayMs: number;
}

/** What a caller may set; the environment gives the rest. */
export interface HubOptions {
  /** Another folder for the cache. */
  readonly cacheDir?: string;
  /** Another access token; false for none. */
  readonly token?: string | false;
}

const DEFAULT_ENDPOINT = "https://huggingface.co";
const DEFAULT_TIMEOUT_SECONDS = 10;

function isTrue(value: string | undefined): boolean {
  return ["1", "true", "yes", "on"].includes((value ?? "").toLowerCase());
}

function expandHome(path: string): string {
  return path === "~" || path.startsWith("~/") ? join(homedir(), path.slice(1)) : path;
}

/** The first of the variables that is set to something. */
function firstSet(environment: Environment, ...names: readonly string[]): string | undefined {
  return names.map((name) => environment[name]).find((value) => value !== undefined && value !== "");
}

function parseTimeoutMs(value: string | undefined): number {
  const seconds = Number(value);
  return 1000 * (seconds > 0 ? seconds : DEFAULT_TIMEOUT_SECONDS);
}

/**
 * Reads the settings from the environment, and the stored token.
 * Throws INVALID_ARGUMENT for an HF_ENDPOINT that is no address, HUB_UNAUTHORIZED for a token that cannot be one.
 */
export async function resolveHubConfig(
  options: HubOptions = {},
  environment: Environment = process.env,
): Promise<HubConfig> {
  const cacheHome = firstSet(environment, "XDG_CACHE_HOME") ?? join(homedir(), ".cache");
  const home = expandHome(firstSet(environment, "HF_HOME") ?? join(cacheHome, "huggingface"));
  const cacheDir =
    options.cacheDir ?? firstSet(environment, "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE") ?? join(home, "hub");
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
    `HF_ENDPOINT is "${endpoint}", not an address such as ${DEFAULT_ENDPOINT}. Correct or unset it.`,
  );
}

async function readToken(options: HubOptions, environment: Environment, home: string): Promise<string | undefined> {
  if (options.token === false) return undefined;
  if (options.token !== undefined) return validateToken(options.token);
  if (isTrue(environment.HF_HUB_DISABLE_IMPLICIT_TOKEN)) return undefined;
  const envToken = firstSet(environment, "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN");
  if (envToken !== undefined) return validateToken(envToken);
  const path = expandHome(firstSet(environment, "HF_TOKEN_PATH") ?? join(home, "token"));
  return validateToken(await readFile(path, "utf8").catch(() => ""));
}

function validateToken(token: string): string | undefined {
  const trimmed = token.trim();
  if (/^[\x21-\x7e]*$/u.test(trimmed)) return trimmed === "" ? undefined : trimmed;
  throw new LlamaGymError(
    "HUB_UNAUTHORIZED",
    "The access token (HF_TOKEN, or the stored one) holds characters that no token has. Set HF_TOKEN anew.",
  );
}
