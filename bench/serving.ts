import type { Bench, BenchCase, Context, Figures } from "./framework.js";
import { exportedPath, prepareExport } from "./smollm2.js";

/**
 * `clients` that each send one chat of some 40 prompt tokens and receive `new_tokens` tokens,
 * greedily. Count: sampled tokens.
 */
export type ServeWork = { work: "serve"; clients: number; new_tokens: number };

/**
 * `sessions` of a gateway that each make `calls` calls of `new_tokens` tokens, one after the other.
 * Count: sampled tokens.
 */
export type GatewayWork = { work: "gateway"; sessions: number; calls: number; new_tokens: number };

/**
 * `rounds` of `calls` calls of one token of the embedded model: by `model.generate`, over HTTP as
 * `llamagym serve` answers, and in a session of a gateway. Seconds: of all calls through the
 * gateway. Values: `added_ms` and `added_to_http_ms`, by which these take longer per call than
 * those without a server and than those over HTTP.
 */
export type LatencyWork = { work: "latency"; rounds: number; calls: number };

const NEW_TOKENS = 32;
/**
 * The first hundreds of calls run slower, until their code is compiled: the warm-up has 1,000. With
 * a small model, the gateway's part is not lost in the variation of the rest.
 */
const latency: LatencyWork = { work: "latency", rounds: 10, calls: 100 };

function defineSessions(sessions: number): BenchCase {
  const parameters: GatewayWork = { work: "gateway", sessions, calls: 2, new_tokens: 16 };
  return {
    name: `sessions_${sessions}`,
    parameters,
    metric: { kind: "rate", unit: "tokens/s" },
    peers: [],
    maxRuns: 5,
  };
}

/** The throughput of 64 sessions compared with that of one. */
function deriveGateway(ours: Figures): Figures {
  const speedup = ours.sessions_64 / ours.sessions_1;
  return Number.isFinite(speedup) ? { sessions_64_speedup: speedup } : {};
}

function defineCase(clients: number): BenchCase {
  const parameters: ServeWork = { work: "serve", clients, new_tokens: NEW_TOKENS };
  return { name: `clients_${clients}`, parameters, metric: { kind: "rate", unit: "tokens/s" }, maxRuns: 5 };
}

const peer = (dtype: "F32" | "Q8") => ({
  environment: "node",
  script: "node/serving.mjs",
  arguments: (context: Context) => ["--model", exportedPath(context, dtype), "--threads", `${context.threads}`],
});

export const bench: Bench = {
  name: "serve",
  description:
    "SmolLM2-135M behind `llamagym serve` (float32, over HTTP) and in node-llama-cpp (llama.cpp, in its process) with the same " +
    `weights in float32 and Q8_0: clients that each send a chat and receive ${NEW_TOKENS} tokens, all at once. Then \`createGateway\` ` +
    `in float32: ${latency.rounds * latency.calls} calls of one token of the embedded model by one session and, by turns, the same calls without a gateway, in the process and over HTTP; 1 and 64 sessions.`,
  ours: {
    module: "ours/serving.js",
    arguments: (context) => ["--model", exportedPath(context, "F32"), "--threads", `${context.threads}`],
  },
  peers: { "llama.cpp_f32": peer("F32"), "llama.cpp_q8": { ...peer("Q8"), ratio: false } },
  prepare: async (context) => {
    for (const dtype of ["F32", "Q8"] as const) prepareExport(context, dtype);
  },
  cases: [
    ...[1, 8, 32].map(defineCase),
    {
      name: "gateway_calls",
      parameters: latency,
      metric: { kind: "seconds" },
      parts: [
        { name: "added_ms", unit: "ms", better: "lower" },
        { name: "added_to_http_ms", unit: "ms", better: "lower" },
      ],
      peers: [],
    },
    ...[1, 64].map(defineSessions),
  ],
  derive: deriveGateway,
};
