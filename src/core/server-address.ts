import { invalidArgument } from "./errors.js";
import { describeValue } from "./format.js";

/** How a server is reached. */
export interface ServerAccess {
  /** Name of the option with the address. */
  readonly name: string;
  readonly address: unknown;
  /** An address, for messages. */
  readonly example: string;
  /** The key, if there is one. */
  readonly apiKey?: unknown;
  /** Where a key belongs, such as "OPENAI_API_KEY". */
  readonly keyHome: string;
}

/**
 * Checks the address of a server and its key. @throws INVALID_ARGUMENT for an address that is not
 * of http or https or has a password, and a key that no header may have; no message has the key.
 */
export function checkServerAccess({ name, address, example, apiKey, keyHome }: ServerAccess): void {
  const url = typeof address === "string" && URL.canParse(address) ? new URL(address) : undefined;
  // What stands before an @ may be a password.
  const given = typeof address === "string" && address.includes("@") ? "" : `, got ${describeValue(address)}`;
  if (url?.protocol !== "http:" && url?.protocol !== "https:")
    throw invalidArgument(`\`${name}\` must be a URL such as ${example}${given}.`);
  if (url.username !== "" || url.password !== "")
    throw invalidArgument(`\`${name}\` must be a URL without user and password. A key belongs in ${keyHome}.`);
  if (apiKey !== undefined) checkApiKey(apiKey, keyHome);
}

/**
 * @throws INVALID_ARGUMENT for a key that no header of HTTP may have; the message does not have the
 * key.
 */
export function checkApiKey(apiKey: unknown, keyHome: string): void {
  if (typeof apiKey === "string" && /^[\x20-\x7e]*$/u.test(apiKey)) return;
  throw invalidArgument(
    typeof apiKey === "string"
      ? `The key in ${keyHome} contains a line break or another character that a header cannot have. Remove it.`
      : `\`apiKey\` must be a string, got a ${typeof apiKey}.`,
  );
}
