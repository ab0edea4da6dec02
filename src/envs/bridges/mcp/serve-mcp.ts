import type { Readable, Writable } from "node:stream";
import { asJsonObject } from "../../../core/json.js";
import { requireEnv, type Env } from "../../env.js";
import { parseMessage } from "../channel.js";
import { LineSplitter } from "../line-splitter.js";
import { MAX_MESSAGE_BYTES } from "../limits.js";
import { describeEnv } from "../open-env/describe-env.js";
import { OpenEnvSession } from "../open-env/open-env-session.js";
import { createEnvTools } from "./env-tools.js";
import { answerMcp, needsReply, PARSE_ERROR } from "./mcp-protocol.js";

/** Options of `serveMcp`. */
export interface ServeMcpOptions {
  /** Messages, one a line. Default: standard input. */
  readonly input?: Readable;
  /** Default: standard output, to which nothing else may then be written. */
  readonly output?: Writable;
  /** Ends the session. */
  readonly signal?: AbortSignal;
}

/**
 * Serves an environment to one client of the Model Context Protocol over standard input and output,
 * with the tools `reset` and `step`. Resolves when the input ends or `signal` is aborted, with the
 * environment closed.
 * @throws ENV_INVALID for something other than an Env
 */
export async function serveMcp(env: Env, options: ServeMcpOptions = {}): Promise<void> {
  const { input = process.stdin, output = process.stdout, signal } = options;
  const tools = createEnvTools(requireEnv(env, "The environment given to serveMcp()"), describeEnv(env));
  const session = new OpenEnvSession(env);
  const replies = new Set<Promise<void>>();
  const lines = new LineSplitter(MAX_MESSAGE_BYTES);
  const answer = async (line: string) => {
    const message = asJsonObject(parseMessage(line));
    if (message === undefined) output.write(`${JSON.stringify(PARSE_ERROR)}\n`);
    else if (needsReply(message)) output.write(`${JSON.stringify(await answerMcp(tools, session, message))}\n`);
  };
  const end = () => input.destroy();
  signal?.addEventListener("abort", end, { once: true });
  try {
    for await (const data of input as AsyncIterable<Buffer>) {
      for (const line of lines.push(data)) {
        const reply = answer(line).finally(() => replies.delete(reply));
        replies.add(reply);
      }
      if (lines.isTooLong) break;
    }
  } catch (error) {
    if (signal?.aborted !== true) throw error;
  } finally {
    signal?.removeEventListener("abort", end);
    await Promise.all(replies);
    await session.close();
  }
}
