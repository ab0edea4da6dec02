import type { Bench, BenchCase, Context, Figures } from "./framework.js";
import { exportedPath, prepareExport } from "./smollm2.js";

/** `clients` that each send one chat of some 40 prompt tokens and receive `new_tokens` tokens, greedily. Count: sampled tokens. */
export type ServeWork = { work: "serve"; clients: number; new_tokens: number };

/** `sessions` of a gateway that each make `calls` calls of `new_tokens` tokens, one after the other. Count: sampled tokens. */
export type GatewayWork = { work: "gateway"; embedded: boolean; sessions: number; calls: number; new_tokens: number };

/** The chats of one session of `GatewayWork`, completed by the model without a gateway. */
export type DirectWork = Omit<GatewayWork, "work"> & { work: "direct" };

const NEW_TOKENS = 32;
const LATENCY_CALLS = 100;
// With a small model, the gateway's part of a call is not lost in the variation of the rest.
const latency = { embedded: true, sessions: 1, calls: LATENCY_CALLS, new_tokens: 1 };

function defineSessions(sessions: number): BenchCase {
  const parameters: GatewayWork = { work: "gateway", embedded: false, sessions, calls: 2, new_tokens: 16 };
  return {
    name: `sessions_${sessions}`,
    parameters,
    metric: { kind: "rate", unit: "tokens/s" },
    peers: [],
    maxRuns: 5,
  };
}

/** Latency that the gateway adds to a call, and the throughput of 64 sessions compared with that of one. */
function deriveGateway(ours: Figures): Figures {
  const figures = {
    gateway_added_ms: (1000 * (ours.gateway_calls - ours.direct_calls)) / LATENCY_CALLS,
    sessions_64_speedup: ours.sessions_64 / ours.sessions_1,
  };
  return Object.fromEntries(Object.entries(figures).filter(([, value]) => Number.isFinite(value)));
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
    `in float32: ${LATENCY_CALLS} calls of one token of the embedded model by one session and the same calls without a gateway; 1 and 64 sessions.`,
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
    { name: "direct_calls", parameters: { work: "direct", ...latency }, metric: { kind: "seconds" }, peers: [] },
    { name: "gateway_calls", parameters: { work: "gateway", ...latency }, metric: { kind: "seconds" }, peers: [] },
    ...[1, 64].map(defineSessions),
  ],
  derive: deriveGateway,
};
